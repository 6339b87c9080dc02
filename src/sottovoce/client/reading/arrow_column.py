"""Columns of Apache Arrow: numbers, decimals, dates, moments, times of day and durations."""

from typing import Any

import numpy as np
import pyarrow as pa

from sottovoce.client.reading.column import Column, exact_floats
from sottovoce.client.reading.complaint import KINDS, bad_row
from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce.core.unit import NUMBER, Unit


def from_arrow(column: Any, where: str) -> Column:
    """Read a pyarrow Array or ChunkedArray of numbers, decimals, dates, times or durations."""
    types = pa.types
    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    of = column.type
    unit, whole = NUMBER, None
    if types.is_timestamp(of):
        unit = Unit("datetime", of.unit, of.tz or "")
    elif types.is_date(of):
        unit, column = Unit("date", "D"), column.cast(pa.date32())
    elif types.is_duration(of) or types.is_time(of):
        unit = Unit("duration", of.unit)
    elif types.is_float64(of) and column.num_chunks == 1 and column.null_count == 0:
        whole = column.chunk(0).to_numpy(zero_copy_only=True)
    elif not (types.is_integer(of) or types.is_floating(of) or types.is_decimal(of) or types.is_null(of)):
        raise _refused_arrow(column, where)
    counted = types.is_integer(of) or unit.kind != "number"
    bits = pa.int32() if types.is_date(of) or types.is_time32(of) else pa.int64()

    def stretch(start: int, stop: int) -> Floats:
        piece = column.slice(start, stop - start).combine_chunks()
        if isinstance(piece, pa.ChunkedArray):
            piece = pa.concat_arrays(piece.chunks) if piece.num_chunks else pa.array([], type=of)
        if not counted:
            floats: Floats = piece.cast(pa.float64()).to_numpy(zero_copy_only=False)
            return floats
        gone = piece.is_null().to_numpy(zero_copy_only=False) if piece.null_count else None
        whole_numbers = piece if types.is_integer(of) else piece.cast(bits)
        counts = (whole_numbers if gone is None else whole_numbers.fill_null(0)).to_numpy(zero_copy_only=False)
        floats = exact_floats(counts, where, start) if unit.kind == "number" else unit.to_float(counts.astype(np.int64))
        if gone is not None:
            floats[gone] = np.nan
        return floats

    return Column(unit, len(column), stretch, whole)


def _refused_arrow(column: Any, where: str) -> BadInput:
    """Say what an Arrow column that is neither number nor time holds, and from which row on."""
    types, of = pa.types, column.type
    if types.is_boolean(of):
        kind = "a truth value"
    elif str(of) in ("string", "large_string", "string_view"):
        kind = "text"
    else:
        kind = f"a value of type {str(of).split('<')[0].split('[')[0]}"
    row = next((row for row in range(len(column)) if column[row].is_valid), 0)
    return bad_row(where, row, kind, KINDS)

"""The one reader of columns: numpy, lists, Arrow, pandas and polars, each as float64 chunk by chunk."""

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from sottovoce.client.reading.column import NUMBERS, Accepts, Column, exact_floats, from_numpy
from sottovoce.client.reading.objects import from_objects
from sottovoce.core.arrays import Floats
from sottovoce.core.checks import kind_of, sentence
from sottovoce.core.unit import NUMBER, Unit


def open_column(column: Any, where: str, accepts: Accepts = NUMBERS) -> Column:
    """Find the reader for a column.

    Parameters
    ----------
    column
        A one-dimensional array-like: numpy (masked too), list, Arrow, pandas or polars. A contiguous column of float64
        with nothing missing is not copied.
    where
        The column, as the sentence of a refusal names it: "column 'hour' of X".
    accepts
        What it may hold: NUMBERS, decimals and truth values; or RECORDS, that is numbers, durations, dates or moments.

    Returns
    -------
    The column, read as float64 chunk by chunk, with NaN where a value is missing.

    Examples
    --------
    >>> open_column([3, True, None], "column 'hour' of X").chunk(0, 3)
    array([ 3.,  1., nan])
    >>> open_column([3, "four"], "column 'hour' of X")
    Traceback (most recent call last):
    sottovoce.client.reading.column.NotNumbers: Column 'hour' of X holds text in row 2: every argument must be \
neither a string nor a date but a number, so code it as numbers first
    """
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "O" and column.ndim == 1:
            return from_objects(column.tolist(), where, accepts)
        return from_numpy(column, where, accepts)
    if type(column).__module__.partition(".")[0] == "pyarrow":
        return _from_arrow(column, where, accepts)
    series = nw.from_native(column, allow_series=True, pass_through=True)
    if isinstance(series, nw.DataFrame | nw.LazyFrame):
        raise sentence(where, "is a data frame: give one of its columns")
    if isinstance(series, nw.Series):
        return _from_series(series, where, accepts)
    if isinstance(column, Sequence) and not isinstance(column, str | bytes | bytearray | memoryview):
        return from_objects(column, where, accepts)
    if hasattr(column, "__array__") or isinstance(column, bytearray | memoryview):
        return open_column(np.asarray(column), where, accepts)
    raise sentence(where, f"is {kind_of(column)}: give {accepts.array}")


def _from_series(series: "nw.Series[Any]", where: str, accepts: Accepts) -> Column:
    """Read a pandas or polars column with as little copying as its type allows."""
    dtype = series.dtype
    if dtype in (nw.Object, nw.Unknown):
        return from_objects(series.to_list(), where, accepts)
    if series.implementation.is_pandas_like() and dtype.is_numeric() and dtype != nw.Decimal:
        array = series.to_numpy() if dtype in (nw.Float64, nw.Float32) or not series.null_count() else None
        if array is not None and array.dtype.kind in "iuf":
            return from_numpy(array, where, accepts)
    try:
        arrow = series.to_arrow()
    except (TypeError, ValueError, NotImplementedError):  # Arrow's errors among them; their texts show values
        return from_objects(series.to_list(), where, accepts)
    return _from_arrow(arrow, where, accepts)


def _from_arrow(column: Any, where: str, accepts: Accepts) -> Column:
    """Read a pyarrow Array or ChunkedArray of numbers, decimals, dates, times, durations or truth values."""
    import pyarrow as pa

    types = pa.types
    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    if not isinstance(column, pa.ChunkedArray):
        raise sentence(where, f"is {kind_of(column)}: give {accepts.column}")
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_boolean(column.type) and accepts.truth:
        column = column.cast(pa.uint8())
    of = column.type
    number = types.is_integer(of) or types.is_floating(of) or types.is_decimal(of) or types.is_null(of)
    unit = NUMBER if number else _time_unit(of) if accepts.times else None
    if unit is None:
        first = next((row for row in range(len(column)) if column[row].is_valid), 0)
        raise accepts.refusal(where, first, _kind(of))
    if types.is_date(of):
        column = column.cast(pa.date32())
    whole = None
    if types.is_float64(of) and column.num_chunks == 1 and column.null_count == 0:
        whole = column.chunk(0).to_numpy(zero_copy_only=True)
    bits = pa.int32() if types.is_date(of) or types.is_time32(of) else pa.int64()

    def read(start: int, stop: int) -> Floats:
        piece = column.slice(start, stop - start).combine_chunks()
        if isinstance(piece, pa.ChunkedArray):
            piece = pa.concat_arrays(piece.chunks) if piece.num_chunks else pa.array([], type=of)
        if number and not types.is_integer(of):
            floats: Floats = piece.cast(pa.float64()).to_numpy(zero_copy_only=False)
            return floats
        gone = piece.is_null().to_numpy(zero_copy_only=False) if piece.null_count else None
        whole_numbers = piece if number else piece.cast(bits)
        counts = (whole_numbers if gone is None else whole_numbers.fill_null(0)).to_numpy(zero_copy_only=False)
        floats = exact_floats(counts, where, start) if number else unit.to_float(counts.astype(np.int64))
        if gone is not None:
            floats[gone] = np.nan
        return floats

    return Column(unit, len(column), read, whole)


def _time_unit(of: Any) -> Unit | None:
    """Find the unit of an Arrow type that counts time; None for any other."""
    from pyarrow import types

    if types.is_timestamp(of):
        return Unit("datetime", of.unit, of.tz or "")
    if types.is_date(of):
        return Unit("date", "D")
    return Unit("duration", of.unit) if types.is_duration(of) or types.is_time(of) else None


def _kind(of: Any) -> str:
    """Name what the values of an Arrow type are."""
    from pyarrow import types

    if types.is_boolean(of):
        return "a truth value"
    if str(of) in ("string", "large_string", "string_view"):
        return "text"
    if types.is_temporal(of):
        return "a duration" if types.is_duration(of) else "a date or time"
    return f"a value of type {str(of).split('<')[0].split('[')[0]}"

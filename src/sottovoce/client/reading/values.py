"""From any one-dimensional column (numpy, list, Arrow, pandas, polars) to the records of one site, checked first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from sottovoce.client.reading.column import Column, from_numpy
from sottovoce.client.reading.complaint import DROP, FINITE, bad_row, check_missing, kind_of, sentence
from sottovoce.client.reading.objects import from_objects
from sottovoce.client.record import Records
from sottovoce.core.arrays import Floats
from sottovoce.core.unit import Unit

_STRETCH = 1 << 16


class Reading(NamedTuple):
    """The records of one column, and how many missing values were left out."""

    records: Records
    dropped: int


@dataclass(frozen=True, repr=False, eq=False)
class Checked:
    """A column as float64, row by row: finite, but for NaN in `missing` rows; `owned` when nobody else holds it."""

    floats: Floats
    unit: Unit
    missing: int
    owned: bool


def read_values(column: Any, *, where: str, missing: str = "refuse") -> Reading:
    """Read a column into records, or refuse it in one sentence before anything is spent.

    Parameters
    ----------
    column
        A one-dimensional array-like: numpy (masked too), list, Arrow, pandas or polars; of numbers, decimals,
        durations, dates or datetimes. A contiguous array of float64 with nothing missing is used as it is, not copied.
    where
        The place, as the sentence of a refusal names it: "site 'north'".
    missing
        "refuse" missing values (NaN, None, NaT, null), or "drop" and count them. Infinite values are always refused.

    Returns
    -------
    The records, with their unit, and the number of missing values left out.

    Examples
    --------
    >>> read_values([3.0, None, 4.5], where="site 'north'", missing="drop")
    Reading(records=Records(2 records, values hidden), dropped=1)
    >>> read_values([3.0, "four"], where="site 'a'")
    Traceback (most recent call last):
    sottovoce.core.errors.BadInput: Site 'a' holds text in row 2: every record must be a number, a duration or a date
    """
    check_missing(missing)
    if isinstance(column, Records):
        return Reading(column, 0)
    checked = check_column(column, where=where, missing=missing)
    if not checked.missing:
        return Reading(Records(checked.floats, checked.unit), 0)
    return Reading(Records(_without_missing(checked), checked.unit), checked.missing)


def check_column(column: Any, *, where: str, missing: str) -> Checked:
    """Read a column into float64 of the same length, stretch by stretch; NaN stays only under missing="drop"."""
    source = _open(column, where)
    floats = np.empty(source.size) if source.whole is None else source.whole
    count = 0
    for start in range(0, source.size, _STRETCH):
        stop = min(start + _STRETCH, source.size)
        piece = source.stretch(start, stop) if source.whole is None else source.whole[start:stop]
        count += _count_missing(piece, where, start, missing)
        if source.whole is None:
            floats[start:stop] = piece
    return Checked(floats, source.unit, count, source.whole is None)


def _open(column: Any, where: str) -> Column:
    """Find the reader for a column."""
    if isinstance(column, np.ndarray):
        return from_numpy(column, where) if column.dtype.kind != "O" else _open_object_array(column, where)
    if type(column).__module__.partition(".")[0] == "pyarrow":
        return _open_arrow(column, where)
    series = nw.from_native(column, allow_series=True, pass_through=True)
    if isinstance(series, nw.DataFrame | nw.LazyFrame):
        raise sentence(where, "is a data frame: give one of its columns")
    if isinstance(series, nw.Series):
        return _open_series(series, where)
    if isinstance(column, Sequence) and not isinstance(column, str | bytes | bytearray | memoryview):
        return from_objects(column, where)
    if hasattr(column, "__array__") or isinstance(column, bytearray | memoryview):
        return _open(np.asarray(column), where)
    raise sentence(where, f"is {kind_of(column)}: give a one-dimensional array of records")


def _open_object_array(column: Any, where: str) -> Column:
    """Read a numpy array of Python objects."""
    if column.ndim != 1:
        raise sentence(where, f"has {column.ndim} dimensions: give a one-dimensional array")
    objects: list[Any] = column.tolist()
    return from_objects(objects, where)


def _open_arrow(column: Any, where: str) -> Column:
    """Read an Arrow column."""
    import pyarrow as pa

    from sottovoce.client.reading.arrow_column import from_arrow

    if not isinstance(column, pa.Array | pa.ChunkedArray):
        raise sentence(where, f"is {kind_of(column)}: give one column of records")
    return from_arrow(column, where)


def _open_series(series: "nw.Series[Any]", where: str) -> Column:
    """Read a pandas or polars column with as little copying as its type allows."""
    dtype = series.dtype
    if dtype in (nw.Object, nw.Unknown):
        return from_objects(series.to_list(), where)
    if series.implementation.is_pandas_like() and dtype.is_numeric() and dtype != nw.Decimal:
        array = series.to_numpy() if dtype in (nw.Float64, nw.Float32) or not series.null_count() else None
        if array is not None and array.dtype.kind in "iuf":
            return from_numpy(array, where)
    return _open_arrow(series.to_arrow(), where)


def _count_missing(piece: Floats, where: str, start: int, missing: str) -> int:
    """Count the missing values of a stretch; refuse what may not stay."""
    if np.isfinite(piece).all():
        return 0
    gone = np.isnan(piece)
    bad = ~np.isfinite(piece) if missing == "refuse" else np.isinf(piece)
    if bad.any():
        row = int(bad.argmax())
        if gone[row]:
            raise bad_row(where, start + row, "a missing value (NaN or null)", DROP)
        raise bad_row(where, start + row, "an infinite number", FINITE)
    return int(np.count_nonzero(gone))


def _without_missing(checked: Checked) -> Floats:
    """Move the present values together: within the array if it is ours, else into one of just their size."""
    source, kept = checked.floats, checked.floats.size - checked.missing
    target = source if checked.owned else np.empty(kept)
    end = 0
    for start in range(0, source.size, _STRETCH):
        piece = source[start : start + _STRETCH]
        present = piece[~np.isnan(piece)]
        target[end : end + present.size] = present
        end += present.size
    if checked.owned:
        target.resize(kept, refcheck=False)
    return target

"""From any one-dimensional column (numpy, list, Arrow, pandas, polars) to the records of one site, checked first."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sottovoce.client.reading.column import RECORDS
from sottovoce.client.reading.reader import open_column
from sottovoce.client.record import Records
from sottovoce.core.arrays import Floats
from sottovoce.core.checks import bad_row
from sottovoce.core.errors import BadInput
from sottovoce.core.unit import Unit

DROP = 'remove it, or leave all missing values out with missing="drop"'
FINITE = "remove it, or cap it at a finite value"

_CHUNK = 1 << 16  # rows


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


def check_missing(missing: str) -> None:
    """Refuse an unknown way to treat missing values."""
    if missing not in ("refuse", "drop"):
        raise BadInput(f'missing is {missing!r}: give missing="refuse" or missing="drop"')


def check_column(column: Any, *, where: str, missing: str) -> Checked:
    """Read a column into float64 of the same length, chunk by chunk; NaN stays only under missing="drop"."""
    source = open_column(column, where, RECORDS)
    floats = np.empty(source.size) if source.whole is None else source.whole
    count = 0
    for start, chunk in source.chunks(_CHUNK):
        count += _count_missing(chunk, where, start, missing)
        if source.whole is None:
            floats[start : start + chunk.size] = chunk
    return Checked(floats, source.unit, count, source.whole is None)


def _count_missing(chunk: Floats, where: str, start: int, missing: str) -> int:
    """Count the missing values of a chunk; refuse what may not stay."""
    if np.isfinite(chunk).all():
        return 0
    gone = np.isnan(chunk)
    bad = ~np.isfinite(chunk) if missing == "refuse" else np.isinf(chunk)
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
    for start in range(0, source.size, _CHUNK):
        chunk = source[start : start + _CHUNK]
        present = chunk[~np.isnan(chunk)]
        target[end : end + present.size] = present
        end += present.size
    if checked.owned:
        target.resize(kept, refcheck=False)
    return target

"""Columns with values beyond declared limits: `<5` and `>200` among numbers, or numbers with a column of marks beside.

What lies beyond a limit becomes the one number that stands for it (`core.censoring`), however it is written: as a
symbol, as a number that carries a mark, or as a number beyond the limit that somebody has put in its place. A cell
whose own limit reaches into the values between the declared ones is refused: how it compares with them is not known.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import narwhals as nw
import numpy as np

from sottovoce.client.reading.cells import (
    DATE,
    LIMIT,
    MARK,
    MISSING,
    MOMENT,
    NUMBER,
    CellKind,
    kind_of_cell,
    pattern,
    plain_number,
)
from sottovoce.client.reading.dialect import either, may_be_either
from sottovoce.client.reading.reader import is_missing
from sottovoce.core.arrays import Floats
from sottovoce.core.censoring import Censoring
from sottovoce.core.checks import bad_row, sentence
from sottovoce.core.errors import BadInput

Number = int | float | None

_SYMBOL = re.compile(r"\s*(<=|>=|=<|=>|[<>≤≥])\s*(.*?)\s*", re.DOTALL)
_WHOLE = re.compile(r"[+-]?\d{1,18}")
_BELOW, _ABOVE = ("<", "<=", "=<", "≤", "nd", "bdl", "u"), (">", ">=", "=>", "≥")
_EITHER, _NONE = ("true", "1", "1.0", "yes"), ("", "=", "false", "0", "0.0", "no")
_CLOSED = ("<=", "=<", "≤", ">=", "=>", "≥")
_INFINITE = CellKind("an infinite number", "remove it, or cap it at a finite value")
_UNLIKE = {
    MARK: "write <5 if it means below a limit of 5, and leave it empty if nothing was measured",
    LIMIT: "write it as <5 or >200",
    DATE: "values beyond limits are read among numbers alone",
    MOMENT: "values beyond limits are read among numbers alone",
}


def to_numbers(
    cells: Iterable[Any],
    limits: Censoring,
    place: str,
    *,
    decimal: str = ".",
    certain: bool = False,
    first_row: int = 0,
    in_file: bool = False,
) -> list[Any]:
    """Read cells of text as numbers, whole ones as such, and symbols as what stands for them; leave what is no text.

    >>> to_numbers(["7", "<5", "< 3", None, "200.5"], Censoring(low=5.0), "column 'lead'")
    [7, 0, 0, None, 200.5]
    """
    known: dict[str, Number] = {}
    numeral, unsure = re.compile(pattern(decimal)), re.compile(may_be_either("," if decimal == "." else "."))
    found = []
    for row, cell in enumerate(cells, start=first_row):
        if not isinstance(cell, str):
            found.append(cell)
            continue
        if cell not in known:
            sign, text = _parted(cell)
            if not sign and text in MISSING:
                known[cell] = None
            elif not numeral.match(text):
                kind = kind_of_cell(cell, decimal)
                kind = _INFINITE if kind == NUMBER else kind
                raise bad_row(place, row, kind.name, _UNLIKE.get(kind) or kind.advice + kind.option * in_file or _TEXT)
            elif not certain and unsure.match(text):
                raise either(place, "," if decimal == "." else ".")
            else:
                known[cell] = _coded(_number(plain_number(text, decimal)), sign, limits, place, row)
        found.append(known[cell])
    return found


_TEXT = "give numbers, and values beyond limits as <5 or >200"


def as_numbers(column: Any, limits: Censoring, where: str) -> Any:
    """Return a column without text: one of text or objects as a list of numbers, any other as it is."""
    cells = _objects(column)
    return column if cells is None else to_numbers(cells, limits, where)


def placed(floats: Floats, limits: Censoring, where: str, flags: Any = None, place: str = "") -> Floats:
    """Return numbers with what stands for those beyond a limit, and for those that a column of marks says are.

    ``where`` names the column of numbers in a refusal, ``place`` that of marks.
    """
    low, high = limits.codes
    below = floats <= limits.low if limits.low_closed else floats < limits.low
    above = floats >= limits.high if limits.high_closed else floats > limits.high
    if flags is not None:
        marks = _marks(flags, limits, place)
        if len(marks) != len(floats):
            raise sentence(place, f"has {len(marks):,} rows, and the values have {len(floats):,}: give one mark a row")
        for row in np.flatnonzero(marks != 0).tolist():
            value, mark = float(floats[row]), str(_SIGNS[int(marks[row])])
            code = _coded(value, mark, limits, where, row) if value == value else None
            side = -1 if marks[row] < 0 else 1
            if code is None and not np.isfinite(low if side < 0 else high):
                raise _undeclared(where, row, side)
            below[row], above[row] = side < 0, side > 0
    coded = np.where(below, low, np.where(above, high, floats))
    return np.ascontiguousarray(coded, dtype=np.float64)


_SIGNS = {-2: "<=", -1: "<", 1: ">", 2: ">="}


def _marks(flags: Any, limits: Censoring, place: str) -> "np.ndarray[Any, np.dtype[np.int8]]":
    """Read a column of marks: what a number beside it is below (-) or above (+) of; 2 where it may be equal."""
    known: dict[Any, int] = {}
    found = np.zeros(len(cells := _listed(flags)), dtype=np.int8)
    for row, cell in enumerate(cells):
        key = "" if is_missing(cell) else str(cell).strip().lower()
        if key not in known:
            if key in _EITHER and limits.below and limits.above:
                raise bad_row(place, row, "a mark that does not tell below from above", "mark values with < and >")
            if key not in (*_BELOW, *_ABOVE, *_EITHER, *_NONE):
                raise bad_row(place, row, "a mark that is not known", "use <, > or true, and leave others empty")
            sign = -1 if key in _BELOW or (key in _EITHER and limits.below) else int(key not in _NONE)
            known[key] = sign * (2 if key in _CLOSED else 1)
        found[row] = known[key]
    return found


def _parted(cell: str) -> tuple[str, str]:
    """Part a cell into its sign and the rest."""
    found = _SYMBOL.fullmatch(cell)
    return (found[1], found[2]) if found else ("", cell.strip())


def _number(text: str) -> int | float:
    """Turn the text of a number into a whole one where it is."""
    return int(text) if _WHOLE.fullmatch(text) else float(text)


def _coded(value: int | float, sign: str, limits: Censoring, place: str, row: int) -> int | float:
    """Return a value with a sign before it, or refuse a limit that is inside the declared ones."""
    if not sign:
        return value
    low, high = limits.codes
    closed = sign in _CLOSED
    if "<" in sign or "≤" in sign:
        if value < limits.low or (value == limits.low and limits.low_closed >= closed):
            return low
        raise _undeclared(place, row, -1)
    if value > limits.high or (value == limits.high and limits.high_closed >= closed):
        return high
    raise _undeclared(place, row, 1)


def _undeclared(place: str, row: int, side: int) -> BadInput:
    """Refuse a value beyond a limit that was not declared."""
    said, widest = ("below", "largest lower") if side < 0 else ("above", "smallest upper")
    return bad_row(place, row, f"a value {said} a limit that censored= does not name", f"declare the {widest} limit")


def _objects(column: Any) -> Sequence[Any] | None:
    """Return the cells of a column of text or objects; None for any other."""
    if isinstance(column, np.ndarray):
        return column.tolist() if column.ndim == 1 and column.dtype.kind in "OUT" else None
    if type(column).__module__.partition(".")[0] == "pyarrow":
        text = any(word in str(getattr(column, "type", "")) for word in ("string", "null"))
        return column.to_pylist() if text else None
    series = nw.from_native(column, allow_series=True, pass_through=True)
    if isinstance(series, nw.Series):
        return series.to_list() if series.dtype in (nw.String, nw.Object, nw.Unknown, nw.Categorical) else None
    if isinstance(column, Sequence) and not isinstance(column, str | bytes | bytearray | memoryview):
        return column if any(isinstance(cell, str) for cell in islice(column, len(column))) else None
    return None


def _listed(flags: Any) -> Sequence[Any]:
    """Return a column of marks as a list."""
    if hasattr(flags, "to_pylist"):
        return flags.to_pylist()  # type: ignore[no-any-return]
    series = nw.from_native(flags, allow_series=True, pass_through=True)
    return series.to_list() if isinstance(series, nw.Series) else list(flags)

"""What a cell of text is, in kind: a number as some country writes it, a date, a mark of a missing value, or text.

A refusal names the kind and what to do about it, and never the cell.
"""

import datetime as dt
import re
from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple

from sottovoce.core.checks import bad_row
from sottovoce.core.errors import BadInput

_BLANKS = "[ \u00a0\u2009\u202f]"
_PARTS = {".": (",", "['’]", _BLANKS), ",": (r"\.", "['’]", _BLANKS)}  # what may part thousands, by decimal mark
_SIGN, _POWER = r"[+\-−]?", r"(?:[eE][+-]?\d{1,3})?"
_PLAIN = re.compile(rf"{_SIGN}(?:\d+\.?\d*|\.\d+){_POWER}|{_SIGN}(?:inf|infinity|nan)", re.IGNORECASE | re.ASCII)
_MARKS = re.compile(
    r"[-–—.?*#/\\]{1,3}|\(?(?:n[./ ]?a|n[. ]?d|n[. ]?v|k[. ]{0,2}a)\.?\)?"
    r"|\(?(?:none|null|nil|missing|unknown|void|tbd)\)?|#[a-z/0]{2,7}[!?]?|<na>|\\n|-?nan(?:\(ind\))?|-?1\.#(?:ind|qnan|inf)"
)
_CENSORED = re.compile(rf"(?:[<>≤≥]=?|(?:below|above|under|over|less than|more than)\b)\s*{_SIGN}[\d.,]+.{{0,12}}")
_BESIDE = re.compile(r"[+\-−]?[$€£¥₹%]?\s*[+\-−]?\d[\d.,'’\s]*\s*\D{1,12}|[$€£¥₹]\s*[+\-−]?\d[\d.,'’\s]*")
_DATE = re.compile(r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}(?:[ T]\d{1,2}:\d{2}(?::\d{2}(?:\.\d*)?)?)?")
_LONGEST = 80  # characters of a cell that are looked at
_LOOKED_AT = 500_000  # cells


MISSING = ["", "NA", "N/A", "#N/A", "NaN", "nan", "NaT", "null", "NULL", "None"]


class CellKind(NamedTuple):
    """What a cell is, and what to do about it, in any column and in a text file; nothing where it can be read."""

    name: str
    advice: str = ""
    option: str = ""


NUMBER, DATE, MOMENT = CellKind("a number"), CellKind("a date"), CellKind("a date with a time")
TEXT = CellKind("text")
MARK = CellKind(
    "text such as a mark of a missing value", 'leave such cells empty, and leave them out with missing="drop"'
)
LIMIT = CellKind(
    "a censored value such as a detection limit",
    "give every row a number, or leave these rows out; a quantile takes such values with censored=",
)
_THOUSANDS = CellKind(
    "a number with a thousands separator",
    "write numbers without it",
    ', or say which mark parts decimals with decimal="." or decimal=","',
)
_COMMA = CellKind("a number with a decimal comma", "write a decimal point in its place", ', or give decimal=","')
_POINT = CellKind("a number with a decimal point", "write all numbers alike", ', or give decimal="."')
_UNIT = CellKind("a number with a unit or a sign beside it", "write the number alone")
_OTHER_DATE = CellKind("a date in another form than 2013-05-01", "write dates as year, month, day with hyphens")


def kind_of_cell(text: str, decimal: str = ".") -> CellKind:
    """Name the kind of a cell, where a decimal mark is expected.

    >>> [kind_of_cell(text).name for text in ("3.5", "<5", "1,234.5", "n/a", "Anna")]
    ['a number', 'a censored value such as a detection limit', 'a number with a thousands separator', 'text such as a \
mark of a missing value', 'text']
    """
    cell = text.strip().strip("\u00a0")[: _LONGEST + 1]
    if len(cell) > _LONGEST:
        return TEXT
    if _PLAIN.fullmatch(cell if decimal == "." else cell.replace(".", "x").replace(",", ".")):
        return NUMBER
    for kind, read in ((DATE, dt.date.fromisoformat), (MOMENT, dt.datetime.fromisoformat)):
        try:
            read(cell)
        except ValueError:
            continue
        return kind
    if not cell or _MARKS.fullmatch(cell.lower()):
        return MARK
    if any(grouped(mark).fullmatch(cell) for mark in _PARTS):
        return _THOUSANDS
    if _PLAIN.fullmatch(cell.replace(",", ".")):
        return _COMMA if decimal == "." else _POINT
    if _CENSORED.fullmatch(cell.lower()):
        return LIMIT
    if _DATE.fullmatch(cell):
        return _OTHER_DATE
    return _UNIT if _BESIDE.fullmatch(cell) else TEXT


def is_value(text: str) -> bool:
    """Tell whether a cell looks like a record rather than like a name."""
    return kind_of_cell(text) not in (TEXT, MARK, _UNIT)


def _parted(decimal: str) -> str:
    """Return the pattern of whole numbers whose thousands are parted, for a decimal mark."""
    return "|".join(rf"\d{{1,3}}(?:{part}\d{{3}})+" for part in _PARTS[decimal])


def grouped(decimal: str) -> re.Pattern[str]:
    """Return the pattern of a number whose thousands are parted, for a decimal mark."""
    return re.compile(rf"{_SIGN}(?:{_parted(decimal)})(?:{re.escape(decimal)}\d*)?", re.ASCII)


def pattern(decimal: str) -> str:
    """Return the pattern of a number, parted or not, for a whole cell that Arrow looks at."""
    mark = re.escape(decimal)
    return rf"^{_SIGN}(?:(?:\d+|{_parted(decimal)})(?:{mark}\d*)?|{mark}\d+)(?:[eE][+-]?\d+)?$"


def plain_number(cell: str, decimal: str) -> str:
    """Write a number as Python reads it."""
    text = re.sub(separators(decimal), "", cell.strip())
    for written, plain in (("−", "-"), ("+", ""), (decimal, ".")):
        text = text.replace(written, plain)
    return text


def separators(decimal: str) -> str:
    """Return the pattern of what may part thousands."""
    return "|".join(_PARTS[decimal])


def text_refused(
    cells: Iterable[Any],
    place: str,
    rule: str,
    *,
    decimal: str = ".",
    first_row: int = 0,
    in_file: bool = False,
    censored: bool = True,
) -> BadInput:
    """Refuse a column that is text: name the first cell of another kind than those before it, or the first cell.

    ``censored`` says whether limits of measurement can be declared for it.
    """
    before, first = None, first_row
    for row, cell in enumerate(islice(cells, _LOOKED_AT), start=first_row):
        if not isinstance(cell, str):
            continue
        kind = kind_of_cell(cell, decimal)
        if kind not in (NUMBER, DATE, MOMENT):
            advice = kind.advice if censored or kind != LIMIT else ""
            return bad_row(place, row, kind.name, advice + kind.option * in_file or rule)
        if before is None:
            before, first = kind, row
        elif kind != before:
            return bad_row(place, row, kind.name, "the rows before it hold another kind of value")
    return bad_row(place, first, "a number or a date written as text", "convert the column to its type")

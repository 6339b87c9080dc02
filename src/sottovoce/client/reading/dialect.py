"""How a CSV file is written, found out from its first lines: what parts its columns, and what parts decimals.

What the lines leave open is not guessed: 1,234 may be a thousand or one and a bit. If it shows only further on that
there are such numbers, all rows are looked at; what stays open is refused with the option that decides it.
"""

import csv
import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from sottovoce.client.reading.cells import MISSING, TEXT, grouped, is_value, kind_of_cell
from sottovoce.client.reading.text_file import SAMPLE
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import quoted

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "\\t": "\t", "space": " "}
DECIMALS = {"point": ".", "comma": ","}

_USUAL = (",", ";", "\t", "|")
_LINES = 400  # of the beginning that are looked at
_ROWS = 20_000  # that are looked at together, where all of them have to be
_EXCEL = re.compile(r'\s*"?sep=(.)"?[ \t]*\r?\n?', re.IGNORECASE)
_EITHER = {mark: re.compile(rf"[+-]?[1-9]\d{{0,2}}{re.escape(mark)}\d{{3}}", re.ASCII) for mark in ".,"}
_DECIMAL = {
    mark: re.compile(rf"[+-]?(?:\d+{re.escape(mark)}\d*|{re.escape(mark)}\d+)(?:[eE][+-]?\d+)?", re.ASCII)
    for mark in ".,"
}
_OTHER = {".": ",", ",": "."}


class Dialect(NamedTuple):
    """What parts columns and decimals, whether the latter was seen or said, the names, and where the rows begin."""

    delimiter: str
    decimal: str
    certain: bool
    header: list[str]
    start: int
    proved: bool  # whether the first line is surely one of names


class _Seen(NamedTuple):
    """Which marks numbers show to part decimals, there and in any column, which may part either, if some are whole."""

    shown: frozenset[str] = frozenset()
    elsewhere: frozenset[str] = frozenset()
    either: frozenset[str] = frozenset()
    whole: bool = False

    def joined(self, other: "_Seen") -> "_Seen":
        return _Seen(
            self.shown | other.shown,
            self.elsewhere | other.elsewhere,
            self.either | other.either,
            self.whole or other.whole,
        )


class _Layout(NamedTuple):
    """A text parted by a delimiter: its names, some rows, where they begin, whether all have as many cells."""

    delimiter: str
    header: list[str]
    rows: list[list[str]]
    start: int

    @property
    def even(self) -> bool:
        return all(len(row) == len(self.header) for row in self.rows)


def check_delimiter(given: str | None) -> str | None:
    """Return the character that parts columns, given as it is or in words, or refuse."""
    if given is None:
        return None
    found = DELIMITERS.get(str(given).lower(), str(given))
    if len(found) != 1 or not found.isascii() or found.isalnum() or found in "\"'\r\n.\0+-":
        raise BadInput(f"delimiter is {quoted(given)}: give one character, or comma, semicolon, tab or pipe")
    return found


def check_decimal(given: str | None) -> str | None:
    """Return the decimal mark, given as it is or in words, or refuse."""
    found = None if given is None else DECIMALS.get(str(given).lower(), given)
    if found not in (None, ".", ","):
        raise BadInput(f'decimal is {quoted(given)}: give decimal="." or decimal=","')
    return found


def find_dialect(
    text: str,
    place: str,
    wanted: Sequence[str],
    numeric: Collection[str] | None,
    delimiter: str | None,
    decimal: str | None,
) -> Dialect:
    """Find out how a text is written, of which `wanted` columns are needed, some of them `numeric`.

    Where none is wanted by its name, it is parted as most evenly; ``numeric`` None stands for all columns.
    """
    sample, whole = text[:SAMPLE], len(text) <= SAMPLE
    if not whole:
        sample = sample[: max(sample.rfind("\n"), sample.rfind("\r")) + 1]
        if not sample:
            raise BadInput(f"{place} has a first line longer than {SAMPLE >> 10} KB: give it a line of column names")
    said = _EXCEL.match(sample)
    skipped = said.end() if said else 0
    marks = [delimiter] if delimiter else [said[1]] if said else list(_USUAL)
    try:
        layouts = [_layout(sample[skipped:], mark, wanted, whole) for mark in marks]
    except csv.Error:
        raise BadInput(f"{place} cannot be read as CSV: check its quotes and line ends") from None
    chosen = _choose(layouts, wanted)
    mark, certain = decimal or ".", decimal is not None
    if decimal is None:
        mark, certain = _decimal(_seen(chosen.rows, chosen.header, numeric), chosen.delimiter, place)
    return Dialect(chosen.delimiter, mark, certain, chosen.header, skipped + chosen.start, _proved(chosen))


def _layout(sample: str, delimiter: str, wanted: Sequence[str], whole: bool) -> _Layout:
    """Part a text by a delimiter; blank lines before the names are left out."""
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z", sample)
    reader = csv.reader(lines, delimiter=delimiter)
    names: list[str] = []
    while not any(names) and (row := next(reader, None)) is not None:
        names = row
    start = sum(map(len, lines[: reader.line_num]))
    rows: list[list[str]] = []
    with suppress(csv.Error):  # a cell that is long, which Arrow can read
        rows.extend(row for row in islice(reader, _LINES) if row)
    header = [name if name in wanted else name.strip() for name in names]
    return _Layout(delimiter, header, rows if whole else rows[:-1], start)  # the last row may be cut


def _choose(layouts: Sequence[_Layout], wanted: Sequence[str]) -> _Layout:
    """Choose the layout that has the wanted columns, or else the one that parts all rows alike."""
    full = [layout for layout in layouts if wanted and set(wanted) <= set(layout.header)]
    if not full:
        full = [layout for layout in layouts if layout.even and len(layout.header) > 1] or list(layouts)
        return max(full, key=lambda layout: len(layout.header))
    first = full[0]
    if len(full) > 1 and not first.even and 2 * sum(len(row) == 2 for row in first.rows) > len(first.rows):
        return next((layout for layout in full if layout.even), first)  # one column, with decimal commas
    return first


def _proved(layout: _Layout) -> bool:
    """Tell whether some column has a name above numbers or dates, and no name looks like one of those."""
    named = {at: name for at, name in enumerate(layout.header) if name}  # an index that was written along has none
    if not all(map(may_name, named.values())) or set(named.values()) & {cell for row in layout.rows for cell in row}:
        return False
    columns = ([row[at] for row in layout.rows[:20] if len(row) > at and row[at] not in MISSING] for at in named)
    return any(cells and all(map(is_value, cells)) for cells in columns)


def may_name(text: str) -> bool:
    """Tell whether a text may be shown as the name of a column: it begins with a letter, and looks like no record."""
    return (text[:1].isalpha() or text.startswith("_")) and text.isprintable() and kind_of_cell(text) == TEXT


def doubtful(found: Dialect) -> bool:
    """Tell whether a number further on may have to be read in another way than the first lines say."""
    return not found.certain and found.delimiter != ","


def settled(
    found: Dialect, rows: Iterable[Sequence[str]], numeric: Collection[str] | None, place: str
) -> tuple[str, bool]:
    """Find the decimal mark in all rows, and whether they show it; refuse what they leave open."""
    seen, waiting = _Seen(), iter(rows)
    while not seen.shown and (some := list(islice(waiting, _ROWS))):
        seen = seen.joined(_seen(some, found.header, numeric))
    mark, certain = _decimal(seen, found.delimiter, place)
    return (mark, True) if certain else (found.decimal, False)


def _seen(rows: Iterable[Sequence[str]], header: Sequence[str], numeric: Collection[str] | None) -> _Seen:
    """Look at the numbers of some rows; ``numeric`` None stands for all columns."""
    own = {header.index(name) for name in (header if numeric is None else numeric) if name in header}
    whole, mine, others = False, list[str](), list[str]()
    for row in rows:
        for at, cell in enumerate(row):
            if "." in cell or "," in cell:
                others.append(cell.strip())
                if at in own:
                    mine.append(cell.lstrip("<>≤≥= \t").rstrip())
            elif not whole and at in own:
                whole = cell.lstrip("<>≤≥= \t").rstrip().lstrip("+-").isdigit()
    either_ = frozenset(mark for mark in ".," if any(_EITHER[mark].fullmatch(cell) for cell in mine))
    shown, elsewhere = (frozenset(mark for mark in ".," if _shows(cells, mark)) for cells in (mine, others))
    return _Seen(shown, elsewhere, either_, whole)


def _decimal(seen: _Seen, delimiter: str, place: str) -> tuple[str, bool]:
    """Find the decimal mark, and whether the cells show it."""
    if seen.shown:
        return ("." if "." in seen.shown else ","), True
    if not seen.either:
        return ("," if delimiter != "," and seen.elsewhere == {","} else "."), False
    if seen.either == {"."} and delimiter != ";" and not seen.whole:
        return ".", True  # three decimals in every cell
    if len(seen.elsewhere) == 1:
        return next(iter(seen.elsewhere)), True
    raise either(place, "." if "." in seen.either else ",")


def either(place: str, mark: str) -> BadInput:
    """Refuse numbers whose mark may part thousands or decimals."""
    said = {".": "point", ",": "comma"}[mark]
    return BadInput(
        f"{place} holds numbers with a {said} before three digits, which may part thousands or decimals: say which "
        'mark parts decimals, with decimal="." or decimal=","'
    )


def _shows(cells: Sequence[str], mark: str) -> bool:
    """Tell whether some cell can only be a number with this decimal mark."""
    whole = re.compile(rf"[+-]?\d{{1,3}}(?:{re.escape(_OTHER[mark])}\d{{3}}){{2,}}", re.ASCII)
    return any(
        (_DECIMAL[mark].fullmatch(cell) and not _EITHER[mark].fullmatch(cell))
        or (grouped(mark).fullmatch(cell) and mark in cell)
        or whole.fullmatch(cell)
        for cell in cells
        if cell
    )


def may_be_either(mark: str) -> str:
    """Return the pattern of numbers whose mark may part thousands or decimals, for Arrow."""
    return f"^{_EITHER[mark].pattern}$"

"""CSV files without pyarrow: the same values and the same refusals, read by Python."""

import csv
import datetime as dt
import io
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sottovoce.client.reading.cells import MISSING, pattern, plain_number, text_refused
from sottovoce.client.reading.censored import to_numbers
from sottovoce.client.reading.column import WEIGHTS
from sottovoce.client.reading.dialect import Dialect, doubtful, either, find_dialect, may_be_either, settled
from sottovoce.client.reading.text_file import blocks, texts
from sottovoce.core.censoring import Censoring
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import shown

Cells = list[str | None]
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE | re.ASCII)
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"\d\d:\d\d(?::\d\d)?", re.ASCII)
_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


class LightTable(NamedTuple):
    """Columns of a file by name, as text, None where a value is missing; the first as what it holds."""

    columns: dict[str, Any]
    num_rows: int

    def column(self, name: str) -> Any:
        """Return a column."""
        return self.columns[name]


CheckHeader = Callable[[Sequence[str], bool], None]  # names of the columns, and whether they surely are names


class Wanted(NamedTuple):
    """The columns to read, those of them that hold numbers or times, the rule of their values, and limits of these."""

    columns: Sequence[str]
    numeric: Collection[str]
    rule: str
    delimiter: str | None = None
    decimal: str | None = None
    censored: Censoring | None = None
    weight: str | None = None  # a column of weights, to which neither the rule nor the limits of values apply

    def limits(self, column: str) -> Censoring | None:
        """Return the limits beyond which numbers of a column are symbols."""
        return None if column == self.weight else self.censored

    def rule_of(self, column: str) -> str:
        """Return what numbers of a column must be."""
        return WEIGHTS.rule if column == self.weight else self.rule


def read_light(path: Path, wanted: Wanted, place: Callable[[str], str], check_header: CheckHeader) -> LightTable:
    """Read columns of a CSV file, as `csv_file.read_csv` does with pyarrow; `place` names a column in a sentence."""
    name, rows = shown(path, 200), 0
    cells: dict[str, Cells] = {column: [] for column in wanted.columns}
    with closing(texts(path)) as source:
        first = next(source, "")
        found = find_dialect(first, name, wanted.columns, wanted.numeric, wanted.delimiter, wanted.decimal)
        check_header(found.header, found.proved)
        at = {column: found.header.index(column) for column in wanted.columns}
        try:
            for block in blocks(path, first[found.start :], source):
                for row in csv.reader(io.StringIO(block.decode(), newline=""), delimiter=found.delimiter):
                    if not row and len(found.header) > 1:
                        continue
                    row = row or [""]
                    if len(row) != len(found.header):
                        raise ragged(name, rows, len(found.header), len(row))
                    rows += 1
                    for column, values in cells.items():
                        values.append(None if row[at[column]] in MISSING else row[at[column]])
        except csv.Error:
            raise BadInput(f"{name} cannot be read as CSV: check its quotes and line ends") from None
    if doubtful(found) and any(
        cell and ("." in cell or "," in cell) for column in wanted.numeric for cell in cells[column]
    ):
        found = in_all_rows(path, found, wanted.numeric, name)
    read = {
        column: _numbers(values, found, place(column), wanted) if column in wanted.numeric else values
        for column, values in cells.items()
    }
    return LightTable(read, rows)


def in_all_rows(path: Path, found: Dialect, numeric: Collection[str] | None, name: str) -> Dialect:
    """Return how a file is written after a look at all of its rows, or refuse what they leave open."""

    def rows() -> Iterator[list[str]]:
        for block in blocks(path, first[found.start :], source):
            yield from csv.reader(io.StringIO(block.decode(), newline=""), delimiter=found.delimiter)

    with closing(texts(path)) as source:
        first = next(source, "")
        try:
            decimal, certain = settled(found, rows(), numeric, name)
        except csv.Error:
            raise BadInput(f"{name} cannot be read as CSV: check its quotes and line ends") from None
    return found._replace(decimal=decimal, certain=certain)


def ragged(name: str, rows: int, expected: int, actual: int) -> BadInput:
    """Say which row has another number of fields than the header."""
    return BadInput(
        f"{name} has {actual} field{'' if actual == 1 else 's'} in row {rows + 1} after the header, "
        f"which has {expected}: give every row as many fields as the header"
    )


def _numbers(cells: Cells, found: Dialect, place: str, wanted: Wanted) -> Any:
    """Read cells as numbers, dates, moments or truth values, whatever parts their thousands and decimals."""
    if wanted.censored is not None:
        how = {"decimal": found.decimal, "certain": found.certain, "in_file": True}
        return to_numbers(cells, wanted.censored, place, **how)  # type: ignore[arg-type]
    plain, parted = cells, re.compile(pattern(found.decimal), re.ASCII)
    present = [cell.strip() for cell in cells if cell is not None]
    if present and all(map(parted.search, present)):
        other = "," if found.decimal == "." else "."
        if not found.certain and any(map(re.compile(may_be_either(other), re.ASCII).search, present)):
            raise either(place, other)
        plain = [None if cell is None else plain_number(cell, found.decimal) for cell in cells]
    values = parsed(plain, dates=True)
    if values is None:
        raise text_refused(cells, place, wanted.rule, decimal=found.decimal, first_row=0, in_file=True)
    moments = [value for value in values if isinstance(value, dt.datetime)]
    if moments and all(moment.tzinfo is None and not moment.microsecond for moment in moments):
        return np.array(values, dtype="datetime64[s]")
    return values


def parsed(cells: Cells, dates: bool = False) -> list[Any] | None:
    """Turn a column of text into whole numbers, numbers, truth values or, if wanted, dates; None: it is none of them.

    >>> parsed(["3", None, " 4"]), parsed(["3", "4.5"]), parsed(["true", "False"]), parsed(["3", "four"])
    ([3, None, 4], [3.0, 4.5], [True, False], None)
    """
    present = [cell.strip() for cell in cells if cell is not None]
    readers: list[Callable[[str], Any]] = [dt.date.fromisoformat, dt.datetime.fromisoformat] if dates else []
    if all(map(_WHOLE.fullmatch, present)):
        readers = [int]
    elif all(map(_NUMBER.fullmatch, present)):
        readers = [float]
    elif all(cell in _TRUTH for cell in present):
        readers = [_TRUTH.__getitem__]
    elif dates and all(map(_TIME.fullmatch, present)):
        readers = [dt.time.fromisoformat]
    elif not all(map(_DATE.match, present)):
        return None
    for read in readers:
        try:
            return [None if cell is None else read(cell.strip()) for cell in cells]
        except ValueError:
            continue
    return None

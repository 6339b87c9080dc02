"""CSV files without pyarrow: the same values and the same refusals, read by Python."""

import csv
import datetime as dt
import gzip
import io
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sottovoce.core.errors import BadInput

Cells = list[str | None]
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?\d+")
_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


class LightTable(NamedTuple):
    """Columns of a file by name, as text, None where a value is missing; the first as what it holds."""

    columns: dict[str, Any]
    num_rows: int

    def column(self, name: str) -> Any:
        """Return a column."""
        return self.columns[name]


def open_text(path: Path) -> io.TextIOWrapper:
    """Open a file of text, compressed or not, whatever ends its lines."""
    raw: Any = gzip.GzipFile(path) if path.suffix.lower() == ".gz" else path.open("rb")
    return io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")


def read_light(
    path: Path, separator: str, header: Sequence[str], columns: Sequence[str], missing: Collection[str]
) -> LightTable:
    """Read columns of a CSV file whose header is known; the first as numbers, dates or moments if all of it is."""
    gone, at = set(missing), [header.index(name) for name in columns]
    cells: list[Cells] = [[] for _ in columns]
    number = 0
    try:
        with open_text(path) as text:
            rows = csv.reader(text, delimiter=separator)
            next(rows)
            for row in rows:
                if not row and len(header) > 1:
                    continue
                row = row or [""]
                number += 1
                if len(row) != len(header):
                    raise _ragged(path, number, len(header), len(row))
                for place, found in zip(at, cells, strict=True):
                    found.append(None if row[place] in gone else row[place])
    except (csv.Error, UnicodeDecodeError):
        raise BadInput(f"{path} cannot be read as CSV: save it again as CSV in UTF-8") from None
    first: Any = parsed(cells[0], dates=True)
    if any(isinstance(cell, dt.datetime) for cell in first or ()) and all(
        cell is None or (cell.tzinfo is None and not cell.microsecond) for cell in first
    ):
        first = np.array(first, dtype="datetime64[s]")
    return LightTable(dict(zip(columns, [cells[0] if first is None else first, *cells[1:]], strict=True)), number)


def _ragged(path: Path, row: int, expected: int, actual: int) -> BadInput:
    """Say which row has another number of fields than the header."""
    return BadInput(
        f"{path} has {actual} field{'' if actual == 1 else 's'} in row {row} after the header, "
        f"which has {expected}: give every row as many fields as the header"
    )


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
    for read in readers:
        try:
            return [None if cell is None else read(cell.strip()) for cell in cells]
        except ValueError:
            continue
    return None


def kind_of_cell(text: str) -> str:
    """Name the kind of a cell."""
    readers = {"a number": float, "a date": dt.date.fromisoformat, "a date with a time": dt.datetime.fromisoformat}
    for kind, read in readers.items():
        try:
            read(text.strip())  # type: ignore[operator]
        except ValueError:
            continue
        return kind
    return "text"

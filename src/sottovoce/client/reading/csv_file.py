"""Read the needed columns of a CSV or TSV file, plain or gzipped, and say in one sentence what is wrong with it."""

import csv
import datetime as dt
import gzip
import io
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from sottovoce.client.reading.complaint import KINDS, bad_row
from sottovoce.client.reading.frames import check_columns
from sottovoce.core.errors import BadInput

MISSING = ["", "NA", "N/A", "#N/A", "NaN", "nan", "NaT", "null", "NULL", "None"]


def read_csv(path: Path, columns: Sequence[str]) -> Any:
    """Read columns of a CSV file into an Arrow table: the first as numbers or times, the others as text."""
    separator = "\t" if ".tsv" in path.name.lower() else ","
    header = _header(path, separator)
    check_columns(str(path), columns, header)
    wanted = arrow_csv.ConvertOptions(
        include_columns=list(columns),
        column_types={name: pa.string() for name in columns[1:]},
        null_values=MISSING,
        strings_can_be_null=True,
    )
    ragged: list[tuple[int, int, int]] = []

    def note(row: Any) -> str:
        ragged.append((row.number or 0, row.expected_columns, row.actual_columns))
        return "error"

    def read(threads: bool) -> Any:
        shape = arrow_csv.ParseOptions(
            delimiter=separator,
            newlines_in_values=True,
            # In a file of one column, an empty line is a missing value, not a blank line.
            ignore_empty_lines=len(header) > 1,
            invalid_row_handler=note,
        )
        with pa.input_stream(str(path), compression="gzip" if path.suffix.lower() == ".gz" else None) as stream:
            options = arrow_csv.ReadOptions(use_threads=threads)
            return arrow_csv.read_csv(stream, read_options=options, parse_options=shape, convert_options=wanted)

    try:
        table = read(threads=True)
    except pa.ArrowInvalid:
        if not ragged:
            raise BadInput(f"{path} cannot be read as CSV: save it again as CSV in UTF-8") from None
        ragged.clear()
        # Only a reader without threads knows the number of a row.
        with suppress(pa.ArrowInvalid):
            read(threads=False)
        number, expected, actual = ragged[0]
        raise BadInput(
            f"{path} has {actual} field{'' if actual == 1 else 's'} in row {number - 1} after the header, "
            f"which has {expected}: give every row as many fields as the header"
        ) from None
    _refuse_text(table.column(columns[0]), csv_where(path, columns[0]))
    return table


def csv_where(path: Path, column: str) -> str:
    """Name a column of a CSV file in a sentence that goes on to name a row."""
    return f"column {column!r} of {path} (rows counted after the header)"


def _header(path: Path, separator: str) -> list[str]:
    """Read the names of the columns."""
    try:
        with path.open("rb") as raw:
            plain: Any = gzip.GzipFile(fileobj=raw) if path.suffix.lower() == ".gz" else raw
            with io.TextIOWrapper(plain, encoding="utf-8-sig", newline="") as text:
                return next(csv.reader(text, delimiter=separator), [])
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not text in UTF-8: save it again as CSV in UTF-8") from None
    except csv.Error:
        raise BadInput(f"{path} cannot be read as CSV: save it again as CSV in UTF-8") from None


def _refuse_text(column: Any, where: str) -> None:
    """Refuse a column that stayed text, naming the first row unlike the first present one."""
    if not pa.types.is_string(column.type):
        return
    kinds = ((row, _kind(cell.as_py())) for row, cell in enumerate(column) if cell.is_valid)
    row, first = next(kinds)
    if first != "text":
        row, first = next((pair for pair in kinds if pair[1] != first), (row, "text"))
    raise bad_row(where, row, first, KINDS if first == "text" else "the rows before it hold another kind of value")


def _kind(text: str) -> str:
    """Name the kind of a cell."""
    readers = {"a number": float, "a date": dt.date.fromisoformat, "a date with a time": dt.datetime.fromisoformat}
    for kind, read in readers.items():
        try:
            read(text.strip())  # type: ignore[operator]
        except ValueError:
            continue
        return kind
    return "text"

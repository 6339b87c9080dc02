"""Open a file of records by the ending of its name: Parquet, Arrow (Feather) or CSV; read the needed columns only."""

import csv
import difflib
import gzip
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sottovoce.client.reading.arrow import arrow_csv, need_arrow, pa
from sottovoce.client.reading.column import RECORDS
from sottovoce.client.reading.light import kind_of_cell, open_text, read_light
from sottovoce.core.checks import bad_row, sentence
from sottovoce.core.errors import BadInput

MISSING = ["", "NA", "N/A", "#N/A", "NaN", "nan", "NaT", "null", "NULL", "None"]
_BROKEN = () if pa is None else (pa.ArrowException,)
_KINDS = {
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".feather": "Arrow",
    ".arrow": "Arrow",
    ".ipc": "Arrow",
    ".csv": "CSV",
    ".tsv": "CSV",
    ".csv.gz": "CSV",
    ".tsv.gz": "CSV",
}


def read_table(path: Path, columns: Sequence[str]) -> Any:
    """Read columns of a file into an Arrow table, or say in one sentence why that cannot be done.

    Without pyarrow, a CSV file becomes a `LightTable`, and any other is refused.
    """
    kind = _KINDS[_ending(path)]
    try:
        if not path.stat().st_size:
            raise BadInput(f"{path} is an empty file: write it again with its records")
        if kind != "CSV":
            need_arrow(f"reading {kind} files")
        table = {"Parquet": _read_parquet, "Arrow": _read_arrow, "CSV": _read_csv}[kind](path, columns)
    except FileNotFoundError:
        raise BadInput(f"there is no file {path}: check its name") from None
    except PermissionError:
        raise BadInput(f"{path} may not be read: check its permissions") from None
    except gzip.BadGzipFile:
        raise BadInput(f"{path} is not a gzip file, although its name says so: check how it was written") from None
    except (*_BROKEN, OSError, EOFError, zlib.error):
        raise BadInput(
            f"{path} is not a whole {kind} file, although its name says so: check how it was written"
        ) from None
    if not table.num_rows:
        raise BadInput(f"{path} has a header but no rows: give a file with records")
    return table


def stem(path: Path) -> str:
    """Name the site of a file that has no site column: the file's name without its ending."""
    return path.name[: -len(_ending(path))]


def where(path: Path, column: str) -> str:
    """Name a column of a file in a sentence that goes on to name a row."""
    after = " (rows counted after the header)" if _KINDS[_ending(path)] == "CSV" else ""
    return f"column {column!r} of {path}{after}"


def check_columns(place: str, wanted: Sequence[str], present: Sequence[Any]) -> None:
    """Refuse a column that is not there, naming those that are close to it."""
    texts = {str(name): name for name in present}
    for name in wanted:
        if (count := list(present).count(name)) > 1:
            raise sentence(place, f"has {count} columns called {name!r}: rename all but one")
        if not count:
            close = [repr(texts[text]) for text in difflib.get_close_matches(str(name), texts, n=3, cutoff=0.6)]
            listed = ", ".join(map(repr, present[:8])) + (f" and {len(present) - 8} more" if len(present) > 8 else "")
            hint = f"did you mean {' or '.join(close)}?" if close else f"its columns are {listed or 'none'}"
            raise sentence(place, f"has no column {name!r}: {hint}")


def _ending(path: Path) -> str:
    """Find the ending that says the format of a file."""
    name = path.name.lower()
    for ending in sorted(_KINDS, key=len, reverse=True):
        if name.endswith(ending) and len(name) > len(ending):
            return ending
    raise BadInput(f"{path} has an ending that is not known: give a file that ends in {', '.join(_KINDS)}")


def _read_parquet(path: Path, columns: Sequence[str]) -> Any:
    """Read columns of a Parquet file."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(str(path)) as file:
        check_columns(str(path), columns, file.schema_arrow.names)
        return file.read(columns=list(columns))


def _read_arrow(path: Path, columns: Sequence[str]) -> Any:
    """Read columns of an Arrow file, in the file format (Feather) or the stream format."""
    # Not a memory map: the file may change under it, after the records were checked.
    with pa.OSFile(str(path)) as source:
        try:
            names, opened = pa.ipc.open_file(source).schema.names, pa.ipc.open_file
        except pa.ArrowInvalid:
            source.seek(0)
            names, opened = pa.ipc.open_stream(source).schema.names, pa.ipc.open_stream
        check_columns(str(path), columns, names)
        source.seek(0)
        options = pa.ipc.IpcReadOptions(included_fields=[names.index(name) for name in columns])
        return opened(source, options=options).read_all()


def _read_csv(path: Path, columns: Sequence[str]) -> Any:
    """Read columns of a CSV file into an Arrow table: the first as numbers or times, the others as text."""
    separator = "\t" if ".tsv" in path.name.lower() else ","
    header = _header(path, separator)
    check_columns(str(path), columns, header)
    if pa is None:
        light = read_light(path, separator, header, columns, MISSING)
        _refuse_text(light.column(columns[0]), where(path, columns[0]))
        return light
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
    _refuse_text(table.column(columns[0]), where(path, columns[0]))
    return table


def _header(path: Path, separator: str) -> list[str]:
    """Read the names of the columns."""
    try:
        with open_text(path) as text:
            return next(csv.reader(text, delimiter=separator), [])
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not text in UTF-8: save it again as CSV in UTF-8") from None
    except csv.Error:
        raise BadInput(f"{path} cannot be read as CSV: save it again as CSV in UTF-8") from None


def _refuse_text(column: Any, place: str) -> None:
    """Refuse a column that stayed text, naming the first row unlike the first present one."""
    if pa is not None:
        if not pa.types.is_string(column.type):
            return
        column = column.to_pylist()
    if not any(isinstance(cell, str) for cell in column):
        return
    kinds = ((row, kind_of_cell(cell)) for row, cell in enumerate(column) if cell is not None)
    row, first = next(kinds)
    if first != "text":
        row, first = next((pair for pair in kinds if pair[1] != first), (row, "text"))
    rule = RECORDS.rule if first == "text" else "the rows before it hold another kind of value"
    raise bad_row(place, row, first, rule)

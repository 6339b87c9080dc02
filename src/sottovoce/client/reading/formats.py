"""Open a file of records by the ending of its name: Parquet, Arrow (Feather) or CSV; read the needed columns only."""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sottovoce.client.reading.arrow import need_arrow, pa
from sottovoce.client.reading.column import RECORDS, Accepts
from sottovoce.client.reading.dialect import check_decimal, check_delimiter, may_name
from sottovoce.client.reading.light import Wanted, read_light
from sottovoce.client.reading.text_file import check_regular
from sottovoce.core.censoring import Censoring
from sottovoce.core.checks import close_names, sentence
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import first_few, quoted, shown

_BROKEN = () if pa is None else (pa.ArrowException,)
_UNREAD = () if pa is None else (pa.ArrowNotImplementedError,)
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


class Marks(NamedTuple):
    """What parts columns and decimals in CSV files, where it is said and not found out."""

    delimiter: str | None = None
    decimal: str | None = None

    def checked(self) -> "Marks":
        """Return both as single characters, or refuse."""
        found = Marks(check_delimiter(self.delimiter), check_decimal(self.decimal))
        if found.delimiter == found.decimal == ",":
            raise BadInput("a comma is said to part columns and decimals: give another delimiter")
        return found


FOUND = Marks()
MOST_RATIO, AMPLE = 1_000, 1 << 29  # how many times its size the rows of a file may take, beyond so many bytes


def read_table(
    path: Path,
    columns: Sequence[str],
    numeric: Sequence[str] | None = None,
    *,
    accepts: Accepts = RECORDS,
    marks: Marks = FOUND,
    censored: Censoring | None = None,
    weight: str | None = None,
) -> Any:
    """Read columns of a file into an Arrow table, or say in one sentence why that cannot be done.

    Without pyarrow, a CSV file becomes a `LightTable`, and any other is refused.

    In a CSV file ``numeric`` columns, the first unless given, are read as numbers or times, the others as text;
    ``censored`` are the limits beyond which numbers are symbols; ``weight`` is the column of weights, if there is one.
    """
    kind, name = kind_of_file(path), shown(path, 200)
    with told(path):
        if kind == "CSV":
            found = columns[:1] if numeric is None else numeric
            how = csv_reading(path, columns, found, accepts, marks, censored, weight)
            if pa is None:
                table: Any = read_light(*how)
            else:
                from sottovoce.client.reading.csv_file import read_csv

                table = read_csv(*how)
        else:
            need_arrow(f"reading {kind} files")
            table = (_read_parquet if kind == "Parquet" else _read_arrow)(path, columns)
            for column in table.columns:
                check_whole(column)
    if not table.num_rows:
        raise no_rows(name)
    return table


def csv_reading(
    path: Path,
    columns: Sequence[str],
    numeric: Sequence[str],
    accepts: Accepts,
    marks: Marks,
    censored: Censoring | None = None,
    weight: str | None = None,
) -> Any:
    """Return what a reader of CSV files is to be told."""
    wanted = Wanted(columns, numeric, accepts.rule, *marks.checked(), censored, weight)
    return path, wanted, partial(where, path), partial(_check_header, shown(path, 200), columns)


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong while a file is read into one sentence; refuse what is no file of records at once."""
    name, kind = shown(path, 200), kind_of_file(path)
    try:
        check_regular(path)
        yield
    except FileNotFoundError:
        raise BadInput(f"there is no file {name}: check its name") from None
    except PermissionError:
        raise BadInput(f"{name} may not be read: check its permissions") from None
    except gzip.BadGzipFile:
        raise BadInput(f"{name} is not a gzip file, although its name says so: check how it was written") from None
    except MemoryError:
        raise BadInput(f"{name} does not fit into memory: give it in parts") from None
    except _UNREAD:
        raise BadInput(
            f"{name} has a column of a type that cannot be read: write numbers of 64 bits and text"
        ) from None
    except (*_BROKEN, OSError, EOFError, zlib.error, ValueError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(
            f"{name} is not a whole {kind} file, although its name says so: check how it was written"
        ) from None


def check_whole(column: Any) -> None:
    """Refuse offsets, indices and text of an Arrow column that lead nowhere."""
    column.validate(full=not pa.types.is_date64(column.type))


def no_rows(name: str) -> BadInput:
    """Refuse a file without rows."""
    return BadInput(f"{name} has a header but no rows: give a file with records")


def kind_of_file(path: Path) -> str:
    """Tell the format of a file by its name: "Parquet", "Arrow" or "CSV"."""
    return _KINDS[_ending(path)]


def is_known(path: Path) -> bool:
    """Tell whether a file's name ends as files of records do."""
    return any(path.name.lower().endswith(ending) for ending in _KINDS)


def stem(path: Path) -> str:
    """Name the site of a file that has no site column: the file's name without its ending."""
    return path.name[: -len(_ending(path))]


def where(path: Path, column: str) -> str:
    """Name a column of a file in a sentence that goes on to name a row."""
    after = " (rows counted after the header)" if _KINDS[_ending(path)] == "CSV" else ""
    return f"column {quoted(column)} of {shown(path, 200)}{after}"


def check_columns(place: str, wanted: Sequence[str], present: Sequence[Any], listed: bool = True) -> None:
    """Refuse a column that is not there, naming those that are close to it, unless they may be records."""
    for name in wanted:
        if (count := list(present).count(name)) > 1:
            raise sentence(place, f"has {count} columns called {quoted(name)}: rename all but one")
        if not count and not listed:
            said = "and seems to have no line of column names: add one as its first line"
            raise sentence(place, f"has no column {quoted(name)}, {said}")
        if not count and not all(may_name(text) for text in present if isinstance(text, str)):
            said = "and names of others look like records, so they are not listed: check the name"
            raise sentence(place, f"has no column {quoted(name)}, {said}")
        if not count:
            hint = close_names(name, present) or f"its columns are {first_few(present, 8) or 'none'}"
            raise sentence(place, f"has no column {quoted(name)}: {hint}")


def _check_header(place: str, wanted: Sequence[str], header: Sequence[str], proved: bool) -> None:
    """Refuse a CSV file without a column, showing nothing of a first line that may be one of records."""
    if len(header) == 1 and header[0] not in wanted:
        raise sentence(
            place,
            f"has one column only, which is not called {quoted(wanted[0])}: check the name and the line of column "
            "names, or say what parts columns with delimiter=",
        )
    check_columns(place, wanted, header, proved)


def _ending(path: Path) -> str:
    """Find the ending that says the format of a file."""
    name = path.name.lower()
    for ending in sorted(_KINDS, key=len, reverse=True):
        if name.endswith(ending) and len(name) > len(ending):
            return ending
    raise BadInput(f"{shown(path, 200)} has an ending that is not known: give a file that ends in {', '.join(_KINDS)}")


def check_size(path: Path, rows: int, columns: Sequence[str]) -> None:
    """Refuse a file that holds far more rows than its size makes likely."""
    if 8 * rows * len(columns) > max(AMPLE, MOST_RATIO * path.stat().st_size):
        raise BadInput(
            f"{shown(path, 200)} has {rows:,} rows, which take more than {MOST_RATIO:,} times its size in memory: "
            "check how it was written"
        )


def _read_parquet(path: Path, columns: Sequence[str]) -> Any:
    """Read columns of a Parquet file."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(str(path)) as file:
        check_columns(shown(path, 200), columns, file.schema_arrow.names)
        check_size(path, file.metadata.num_rows, columns)
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
        check_columns(shown(path, 200), columns, names)
        source.seek(0)
        options = pa.ipc.IpcReadOptions(included_fields=[names.index(name) for name in columns])
        reader = opened(source, options=options)
        whole = opened is pa.ipc.open_file
        batches, rows = [], 0
        for batch in map(reader.get_batch, range(reader.num_record_batches)) if whole else reader:
            batches.append(batch)
            check_size(path, rows := rows + batch.num_rows, columns)
        return pa.Table.from_batches(batches, reader.schema).select(list(columns))

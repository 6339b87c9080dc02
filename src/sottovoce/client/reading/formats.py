"""Open a file of records by the ending of its name: Parquet, Arrow (Feather) or CSV; read the needed columns only."""

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from sottovoce.client.reading.csv_file import csv_where, read_csv
from sottovoce.client.reading.frames import check_columns
from sottovoce.core.errors import BadInput

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
    """Read columns of a file into an Arrow table, or say in one sentence why that cannot be done."""
    kind = _KINDS[_ending(path)]
    try:
        if not path.stat().st_size:
            raise BadInput(f"{path} is an empty file: write it again with its records")
        table = {"Parquet": _read_parquet, "Arrow": _read_arrow, "CSV": read_csv}[kind](path, columns)
    except FileNotFoundError:
        raise BadInput(f"there is no file {path}: check its name") from None
    except PermissionError:
        raise BadInput(f"{path} may not be read: check its permissions") from None
    except gzip.BadGzipFile:
        raise BadInput(f"{path} is not a gzip file, although its name says so: check how it was written") from None
    except (pa.ArrowException, OSError, EOFError, zlib.error):
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
    return csv_where(path, column) if _KINDS[_ending(path)] == "CSV" else f"column {column!r} of {path}"


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

"""One column of a file, block by block and never as a whole: Parquet by pages, Arrow through a map, CSV by its rows."""

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sottovoce.client import mapped
from sottovoce.client.reading.arrow import need_arrow, pa
from sottovoce.client.reading.column import RECORDS
from sottovoce.client.reading.formats import (
    FOUND,
    Marks,
    check_columns,
    check_size,
    check_whole,
    csv_reading,
    kind_of_file,
    no_rows,
    told,
)
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import shown

_BUFFER = 1 << 20  # bytes of a Parquet column that are read at once, however long its row groups are
_MOST_PACKED = 1 << 26  # rows of a batch that have to be unpacked together


def column_blocks(path: Path, column: str, marks: Marks = FOUND) -> Iterator[tuple[int, Any]]:
    """Give one column of a file in blocks of Arrow, each with the number of its first row; refuse what cannot be read.

    A block may lie in the file itself: copy what is to stay as it was checked.
    """
    need_arrow("a site larger than memory")
    read = {"Parquet": _parquet, "Arrow": _arrow, "CSV": _csv}[kind_of_file(path)]
    first = 0
    with told(path):
        for part in read(path, column, marks):
            for start in range(0, len(part), mapped.ROWS):
                block = part.slice(start, mapped.ROWS)
                check_whole(block)
                yield first, block
                first += len(block)
    if not first:
        raise no_rows(shown(path, 200))


def _parquet(path: Path, column: str, _: Marks) -> Iterator[Any]:
    """Give a column of a Parquet file."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(str(path), buffer_size=_BUFFER, pre_buffer=False) as file:
        check_columns(shown(path, 200), [column], file.schema_arrow.names)
        check_size(path, file.metadata.num_rows, [column])
        for batch in file.iter_batches(mapped.ROWS, columns=[column], use_threads=False):
            yield batch.column(column)


def _arrow(path: Path, column: str, _: Marks) -> Iterator[Any]:
    """Give a column of an Arrow file, in the file format or the stream format; only packed batches are copied."""
    with path.open("rb") as file:
        held = mapped.FileMap(file.fileno(), 0, access=mmap.ACCESS_READ)
    source = pa.py_buffer(held)
    try:
        names, opened = pa.ipc.open_file(source).schema.names, pa.ipc.open_file
    except pa.ArrowInvalid:
        names, opened = pa.ipc.open_stream(source).schema.names, pa.ipc.open_stream
    check_columns(shown(path, 200), [column], names)
    reader = opened(source, options=pa.ipc.IpcReadOptions(included_fields=[names.index(column)]))
    whole = opened is pa.ipc.open_file
    rows, before = 0, pa.total_allocated_bytes()
    for batch in map(reader.get_batch, range(reader.num_record_batches)) if whole else reader:
        check_size(path, rows := rows + batch.num_rows, [column])
        if batch.num_rows > _MOST_PACKED and pa.total_allocated_bytes() - before > batch.num_rows:
            raise BadInput(
                f"{shown(path, 200)} has a packed batch of {batch.num_rows:,} rows, unpacked together: write it in "
                f"batches of at most {_MOST_PACKED:,} rows, or unpacked"
            )
        values = batch.column(column)
        for start in range(0, len(values), mapped.ROWS):
            yield values.slice(start, mapped.ROWS)
            mapped.drop(held)


def _csv(path: Path, column: str, marks: Marks) -> Iterator[Any]:
    """Give a column of a CSV file."""
    from sottovoce.client.reading.csv_file import csv_blocks

    for block in csv_blocks(*csv_reading(path, [column], [column], RECORDS, marks)):
        yield block[column]

"""A column larger than memory is read in blocks, checked as any other, and kept in a spool, whole or not at all."""

import datetime as dt
import errno
import fcntl
import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from sottovoce.client import mapped
from sottovoce.client.reading import large, spool
from sottovoce.client.reading.files import read_files
from sottovoce.client.reading.large import open_large, remove_spools
from sottovoce.client.reading.spool import rows_digest
from sottovoce.client.reading.table import Reading
from sottovoce.client.record import Records
from sottovoce.core.errors import BadInput
from sottovoce.sim.randomness import dice

ROWS = 5_003
FLOATS = dice(3).generator().standard_normal(ROWS)


@pytest.fixture(autouse=True)
def many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a small file have many blocks."""
    monkeypatch.setattr(mapped, "ROWS", 777)
    monkeypatch.setattr("sottovoce.client.reading.text_file.PIECE", 1 << 13)


def as_parquet(table: Any, path: Path) -> None:
    pyarrow.parquet.write_table(table, path, row_group_size=1_009)


def as_arrow(table: Any, path: Path) -> None:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=1_999)


def as_one_batch(table: Any, path: Path) -> None:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def as_stream(table: Any, path: Path) -> None:
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=1_999)


def as_packed(table: Any, path: Path) -> None:
    pyarrow.feather.write_feather(table, path, compression="lz4", chunksize=1_999)


FORMATS: dict[str, tuple[str, Callable[[Any, Path], None]]] = {
    "parquet": (".parquet", as_parquet),
    "arrow": (".arrow", as_arrow),
    "one batch": (".arrow", as_one_batch),
    "stream": (".ipc", as_stream),
    "packed": (".feather", as_packed),
    "csv": (".csv", pyarrow.csv.write_csv),
}


def write(folder: Path, values: Any, format: str = "parquet", name: str = "north") -> Path:
    ending, writer = FORMATS[format]
    path = folder / f"{name}{ending}"
    column = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    writer(pa.table({"other": np.arange(len(column)), "delay": column}), path)
    return path


def opened(path: Any, folder: Path, **how: Any) -> Reading:
    return open_large(path, "delay", folder / "spools", **how)


def same(found: Reading, path: Path, missing: str = "refuse") -> bool:
    table = read_files(path, value="delay", missing=missing)
    one, other = found.records, table.records[0]
    assert mapped.is_mapped(one.values())
    assert not mapped.is_mapped(other.values())
    assert (one.unit, found.dropped) == (other.unit, table.dropped[table.names[0]])
    return one.values().tobytes() == other.values().tobytes()


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_gives_the_records_of_the_reader_in_memory(tmp_path: Path, format: str) -> None:
    path = write(tmp_path, FLOATS, format)
    assert same(opened(path, tmp_path), path)


DAY = dt.datetime(2013, 5, 1, 14, 0, 7)
COLUMNS: dict[str, Any] = {
    "whole": pa.array(np.arange(ROWS) % 100),
    "long": pa.array(2**60 + 512 * np.arange(ROWS)),
    "decimal": pa.array([Decimal(k) / 4 for k in range(ROWS)], pa.decimal128(12, 2)),
    "short floats": pa.array(FLOATS.astype(np.float32)),
    "dates": pa.array(np.arange(ROWS) % 900, pa.int32()).cast(pa.date32()),
    "moments": pa.array([DAY + dt.timedelta(hours=k) for k in range(ROWS)], pa.timestamp("us", "Europe/Berlin")),
    "durations": pa.array(np.arange(ROWS) * 7, pa.duration("ms")),
    "truth": pa.array(np.arange(ROWS) % 3 == 0),
    "ordered": pa.DictionaryArray.from_arrays(
        pa.array(np.arange(ROWS) // 999 % 3, pa.int8()), pa.array(["low", "mid", "high"]), ordered=True
    ),
    "coded numbers": pa.array((np.arange(ROWS) % 7) * 0.25).dictionary_encode(),
}


@pytest.mark.parametrize("format", ["parquet", "arrow"])
@pytest.mark.parametrize("kind", COLUMNS)
def test_every_type_is_read_as_in_memory(tmp_path: Path, kind: str, format: str) -> None:
    path = write(tmp_path, COLUMNS[kind], format)
    assert same(opened(path, tmp_path), path)


@pytest.mark.parametrize("format", FORMATS)
def test_missing_values_are_left_out_and_counted(tmp_path: Path, format: str) -> None:
    gone = pa.array([None if k % 97 == 3 or 800 <= k < 2_400 else float(k) for k in range(ROWS)])
    path = write(tmp_path, gone, format)
    assert same(found := opened(path, tmp_path, missing="drop"), path, "drop")
    assert found.dropped > 1_600
    assert opened(path, tmp_path, missing="drop").dropped == found.dropped


@pytest.mark.parametrize("format", ["parquet", "arrow", "csv"])
@pytest.mark.parametrize(("row", "value"), [(4_000, None), (4_000, float("inf")), (2_500, 2**53 + 1)])
def test_a_refusal_is_that_of_the_reader_in_memory(tmp_path: Path, format: str, row: int, value: Any) -> None:
    whole = isinstance(value, int)
    values = [value if k == row else (k if whole else float(k)) for k in range(ROWS)]
    path = write(tmp_path, values, format)
    with pytest.raises(BadInput) as in_memory:
        read_files(path, value="delay")
    with pytest.raises(BadInput, match=f"row {row + 1}: ") as refused:
        opened(path, tmp_path)
    assert str(refused.value) == str(in_memory.value)
    assert list((tmp_path / "spools").iterdir()) == []


def test_text_an_absent_column_and_no_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds text in row 1"):
        opened(write(tmp_path, ["tall", "short"]), tmp_path)
    with pytest.raises(BadInput, match="has no column 'dely'"):
        open_large(write(tmp_path, FLOATS), "dely", tmp_path / "spools")
    with pytest.raises(BadInput, match="there is no file"):
        opened(tmp_path / "south.parquet", tmp_path)
    with pytest.raises(BadInput, match="a path is an int"):
        opened([3], tmp_path)
    (tmp_path / "west.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(BadInput, match="is not a whole Parquet file"):
        opened(tmp_path / "west.parquet", tmp_path)


@pytest.mark.parametrize("format", ["parquet", "arrow", "stream", "csv"])
def test_a_file_without_records_is_refused(tmp_path: Path, format: str) -> None:
    with pytest.raises(BadInput, match="has a header but no rows"):
        opened(write(tmp_path, pa.array([], pa.float64()), format), tmp_path)
    (empty := tmp_path / "empty.parquet").write_bytes(b"")
    with pytest.raises(BadInput, match="is an empty file"):
        opened(empty, tmp_path)
    with pytest.raises(BadInput, match="holds missing values alone"):
        opened(write(tmp_path, pa.array([None] * 9, pa.float64()), format), tmp_path, missing="drop")
    assert list((tmp_path / "spools").iterdir()) == []


def test_files_of_a_folder_or_wildcard_stand_below_each_other(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "year=2014").mkdir(parents=True)
    parts = [write(data, FLOATS[:2_000]), write(data / "year=2014", np.arange(3_003), "arrow", "rest")]
    (data / "_SUCCESS").write_text("")
    write(data, FLOATS, name=".hidden")
    whole = np.concatenate([FLOATS[:2_000], np.arange(3_003.0)])
    for paths in (data, str(data), parts, iter(parts), [data / "nor*.parquet", data / "year=2014"]):
        found = opened(paths, tmp_path).records
        assert np.array_equal(found.values(), whole)
        assert found.unit.resolution == ""
    with pytest.raises(BadInput, match="is named twice"):
        opened([data, parts[0]], tmp_path)
    with pytest.raises(BadInput, match=r"holds numbers and file .* holds dates"):
        opened([parts[0], write(tmp_path, COLUMNS["dates"], name="days")], tmp_path)
    (tmp_path / "none").mkdir()
    with pytest.raises(BadInput, match="is a folder without files of records"):
        opened(tmp_path / "none", tmp_path)


def test_parts_of_one_file_are_of_one_kind(tmp_path: Path) -> None:
    path = tmp_path / "moments.csv"
    path.write_text("delay\n" + "2013-05-01\n" * 3_000 + "2013-05-01 14:00:00\n" * 3_000)
    with pytest.raises(BadInput, match="holds dates in some parts and dates with a time in others"):
        opened(path, tmp_path)
    path.write_text("delay\n" + "NA\n" * 4_000 + "3\n" * 5_000 + "2.5\n")
    found = opened(path, tmp_path, missing="drop")
    assert same(found, path, "drop")
    assert found.dropped == 4_000
    schema = pa.schema([("delay", COLUMNS["ordered"].type)])
    with pa.ipc.new_stream(tmp_path / "levels.ipc", schema) as writer:
        for names in (["low", "high"], ["high", "low"]):
            codes = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(names), ordered=True)
            writer.write_batch(pa.record_batch([codes], schema=schema))
    with pytest.raises(BadInput, match="has parts with different categories"):
        opened(tmp_path / "levels.ipc", tmp_path)


def test_a_spool_is_used_again_until_a_source_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, seen = write(tmp_path, FLOATS), list[int]()
    first = opened(path, tmp_path, progress=seen.append)
    assert seen == [*range(777, ROWS, 777), ROWS]
    other = open_large(path, "other", tmp_path / "spools").records
    with monkeypatch.context() as patch:
        patch.setattr(large, "column_blocks", None)
        again = opened(path, tmp_path, progress=seen.append)
    assert again.records.values().tobytes() == first.records.values().tobytes()
    assert len(seen) == 7
    write(tmp_path, FLOATS[::-1].copy())
    os.utime(path, ns=(1, 1))
    assert np.array_equal(opened(path, tmp_path).records.values(), FLOATS[::-1])
    assert np.array_equal(first.records.values(), FLOATS)  # a site that is open keeps what it was opened over
    assert len(list((tmp_path / "spools").iterdir())) == 2
    assert remove_spools(tmp_path / "spools") == 2
    assert list((tmp_path / "spools").iterdir()) == []
    assert np.array_equal(other.values(), np.arange(float(ROWS)))


def test_a_spool_that_is_not_whole_or_not_ours_alone_is_made_anew(tmp_path: Path) -> None:
    path = write(tmp_path, FLOATS)
    opened(path, tmp_path)
    (kept,) = (tmp_path / "spools").iterdir()
    whole = kept.read_bytes()
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    for broken in (b"", whole[:-1], whole[:-8], whole[8:], whole[: 8 * ROWS], whole + b"\0", whole[:-16] + bytes(16)):
        kept.write_bytes(broken)
        assert same(opened(path, tmp_path), path)
        assert kept.read_bytes() == whole
    kept.chmod(0o644)
    assert same(opened(path, tmp_path), path)
    assert kept.stat().st_mode & 0o777 == 0o600
    kept.unlink()
    kept.with_suffix(".part").write_bytes(whole[:9_000])  # of a process that was stopped
    assert same(opened(path, tmp_path), path)
    assert list(kept.parent.iterdir()) == [kept]


def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, written = write(tmp_path, FLOATS), list[int]()

    def full(descriptor: int, data: memoryview) -> int:
        written.append(len(data))
        if len(written) > 3:
            raise OSError(errno.ENOSPC, "no space left on device")
        return written[-1]

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(BadInput, match="spools has no room for the records of the site, 8 bytes each: free some"):
            opened(path, tmp_path)
    assert list((tmp_path / "spools").iterdir()) == []
    with monkeypatch.context() as patch:
        patch.setattr(spool, "ROOM", 1 << 60)
        with pytest.raises(BadInput, match="spools has no room"):
            opened(path, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot hold the records of the site: check that it is a folder"):
        open_large(path, "delay", tmp_path / "file")
    assert same(opened(path, tmp_path), path)


def test_a_source_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, FLOATS)
    with pytest.raises(BadInput, match="a source changed while it was read"):
        opened(path, tmp_path, progress=lambda _: os.utime(path, ns=(1, 1)))
    with pytest.raises(BadInput, match="a source was taken away while it was read"):
        opened(path, tmp_path, progress=lambda _: path.unlink(missing_ok=True))
    assert list((tmp_path / "spools").iterdir()) == []


def test_two_processes_do_not_write_one_spool(tmp_path: Path) -> None:
    path = write(tmp_path, FLOATS)

    def meanwhile(rows: int) -> None:
        (part,) = (tmp_path / "spools").glob("*.part")
        with part.open("rb") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if rows == ROWS:
            with pytest.raises(BadInput, match="another process is preparing the same records"):
                opened(path, tmp_path)

    assert same(opened(path, tmp_path, progress=meanwhile), path)


def test_the_digest_of_rows_is_that_of_the_records_in_memory(tmp_path: Path) -> None:
    spooled = opened(write(tmp_path, FLOATS), tmp_path).records
    known = rows_digest(Records(FLOATS.copy()))
    assert rows_digest(spooled) == known
    assert len(known) == 16
    assert len({known, rows_digest(Records(FLOATS[::-1].copy())), rows_digest(spooled, b"key")}) == 3
    assert rows_digest(spooled, b"key") == rows_digest(Records(FLOATS.copy()), b"key")

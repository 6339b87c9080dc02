"""Files that are no files of records cost one sentence: no memory, no waiting, and nothing of them is shown."""

import gzip
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from sottovoce.api.conformal.threshold import read_scores
from sottovoce.client.reading import csv_file, formats, text_file
from sottovoce.client.reading.files import expand, read_files
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import hides
from sottovoce.sim.randomness import dice


def refusal(paths: Any, **options: Any) -> str:
    with pytest.raises(BadInput) as refused:
        read_files(paths, **{"value": "delay", **options})
    text = str(refused.value)
    assert not hides(text)
    assert len(text) < 700
    return text


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("delay," * 100_000, "has a first line longer than 256 KB: give it a line of column names"),
        ('delay,x\n1,"a\n2,3\n', "or a quote that is never closed: check its quotes and line ends"),
        ("delay,x\n1,\0\n2,b\n", "holds control characters, so it is no text"),
        (b"\xef\xbb\xbf", "has no column 'delay'"),
        ("\n\n\n", "has no column 'delay'"),
        (b"delay,x\n1,\xe9\x01\n", "holds control characters, so it is no text"),
        (b"delay,x\n1,\x81\xff\n", "is not text in UTF-8"),
        (b"PK\x03\x04", "is a zip archive or a spreadsheet: save it as CSV"),
        (b"PAR1", "is a Parquet file: end its name in .parquet"),
        (gzip.compress(b"delay\n1\n", mtime=0), "is a gzip file: end its name in .csv.gz"),
        ("delay\n" + "9" * 5000 + "\n1\n", "holds an infinite number in row 1"),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_texts_that_are_none(text: str | bytes, problem: str, tmp_path: Path) -> None:
    assert problem in refusal(written(tmp_path / "d.csv", text))


def test_a_row_without_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_file, "PIECE", 1 << 10)
    monkeypatch.setattr(text_file, "LONGEST_ROW", 1 << 14)
    assert "has a row longer than" in refusal(written(tmp_path / "d.csv", "delay,x\n" + "1," * 20_000))


def test_a_small_file_that_unpacks_to_a_large_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_file, "AMPLE", 1 << 18)
    monkeypatch.setattr(text_file, "PIECE", 1 << 14)
    read: list[int] = []
    blocks = text_file.blocks

    def counted(*given: Any) -> Any:
        for block in blocks(*given):
            read.append(len(block))
            yield block

    monkeypatch.setattr(csv_file, "blocks", counted)
    path = written(tmp_path / "d.csv.gz", gzip.compress(b"delay\n" + b"1\n" * 1_000_000))
    assert "unpacks to more than 50 times its size" in refusal(path)
    assert sum(read) <= 1 << 18
    noise = dice(1).generator().integers(0, 10**6, 60_000)
    path = written(tmp_path / "e.csv.gz", gzip.compress(b"delay\n" + "\n".join(map(str, noise)).encode()))
    assert read_files(path, value="delay").records[0].size == 60_000


def test_a_parquet_or_arrow_file_of_more_rows_than_its_size_makes_likely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "AMPLE", 1 << 18)
    rows = pa.table({"delay": np.ones(500_000)})
    pq.write_table(rows, tmp_path / "d.parquet")
    assert "has 500,000 rows, which take more than 1,000 times its size" in refusal(tmp_path / "d.parquet")
    empty = pa.table({"delay": pa.nulls(2**20)})
    with pa.ipc.new_file(str(tmp_path / "d.arrow"), empty.schema) as writer:
        writer.write_table(empty)
    assert "rows, which take more than 1,000 times its size in memory" in refusal(tmp_path / "d.arrow")


@pytest.mark.parametrize("name", ["d.parquet", "d.arrow", "d.csv.gz"])
@pytest.mark.parametrize("part", [0.02, 0.3, 0.7, 0.99])
def test_files_that_were_cut(name: str, part: float, tmp_path: Path) -> None:
    frame = pl.DataFrame({"delay": np.arange(1000.0)})
    path = tmp_path / name
    if name == "d.parquet":
        frame.write_parquet(path)
    elif name == "d.arrow":
        frame.write_ipc(path)
    else:
        path.write_bytes(gzip.compress(frame.write_csv().encode()))
    raw = path.read_bytes()
    assert str(path) in refusal(written(path, raw[: max(1, int(len(raw) * part))]))


@pytest.mark.skipif(not hasattr(pl, "Int128"), reason="polars is older than its integers of 128 bits")
def test_integers_of_128_bits(tmp_path: Path) -> None:
    frame = pl.DataFrame({"delay": pl.Series([1, 2, 3], dtype=pl.Int128)})
    frame.write_ipc(tmp_path / "d.arrow")
    frame.write_parquet(tmp_path / "d.parquet")
    for name in ("d.arrow", "d.parquet"):
        assert "has a column of a type that cannot be read: write numbers of 64 bits" in refusal(tmp_path / name)


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices")
def test_pipes_devices_and_loops(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    for name, target in (("zero.csv", "/dev/zero"), ("loop.csv", "loop.csv"), ("proc.csv", "/proc/self/status")):
        (tmp_path / name).symlink_to(target)
    assert stat.S_ISFIFO((tmp_path / "pipe.csv").stat().st_mode)
    for name in ("pipe.csv", "zero.csv"):
        assert refusal(tmp_path / name).endswith("is a folder, a pipe or a device: give a file of records")
    assert "there is no file" in refusal(tmp_path / "loop.csv")
    assert refusal(tmp_path / "proc.csv")


@pytest.mark.parametrize(
    "name", ["*a" * 1500, "x" * 5000 + ".csv", "~nobody-at-all/a.csv", "a\0b.csv", "[*", "**/" * 900 + "x*"]
)
def test_names_that_no_file_can_have(name: str) -> None:
    assert refusal(name)


def test_one_file_under_two_names_is_read_once(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "delay\n1\n2\n")
    os.link(path, tmp_path / "hard.csv")
    (tmp_path / "soft.csv").symlink_to(path)
    for name in ("hard.csv", "soft.csv"):
        said = refusal([path, tmp_path / name])
        assert said.startswith(f"{tmp_path / name} is the same file as {path}: each file may be read once")
        with pytest.raises(BadInput, match="is to judge the threshold that it makes"):
            read_scores(path, score="delay", apart_from=tmp_path / name)
    assert "is named twice" in refusal([path, path])
    assert expand(path) == [path]


def test_names_of_files_and_columns_cannot_steer_a_terminal(tmp_path: Path) -> None:
    path = written(tmp_path / "a\x1b[2K\nPrivate: yes.csv", "delay\n1\nsecret\n")
    assert "site 1 has a control or invisible character in its name" in refusal(path)
    assert "\\x1b[2K\\nPrivate: yes.csv" in refusal(path, value="dely", site="x")
    assert "has a control or invisible character in its name: rename it" in refusal(path, value="a\x1bb")


@pytest.mark.parametrize(
    "text",
    [
        "7654.5,81\n3,4\n",
        "Anna7654,north\nBert,south\n",
        "Anna7654,3\nBert,4\n",
        "7654\n8\n",
        "2076-05-04,x\n2076-05-05,y\n",
    ],
)
def test_the_first_row_of_a_file_without_a_header_is_not_quoted(text: str, tmp_path: Path) -> None:
    said = refusal(written(tmp_path / "d.csv", text))
    assert "line of column names" in said
    assert "765" not in said
    assert "2076" not in said


def test_arrow_gets_nothing_of_python_that_a_thread_could_outlive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread of Arrow's that releases an object of Python after the interpreter has ended aborts the process."""
    seen: list[bool] = []
    plain = arrow_csv.read_csv

    def spied(source: Any, *, read_options: Any, parse_options: Any, convert_options: Any) -> Any:
        seen.append(isinstance(source, pa.BufferReader) and not read_options.use_threads)
        assert parse_options.invalid_row_handler is None
        buffer = source.read_buffer()
        source.seek(0)
        assert buffer.parent is not None or not isinstance(getattr(buffer, "obj", None), bytes)
        return plain(source, read_options=read_options, parse_options=parse_options, convert_options=convert_options)

    monkeypatch.setattr(arrow_csv, "read_csv", spied)
    assert "has 1 field in row 2 after the header" in refusal(written(tmp_path / "d.csv", "delay,x\n1,2\n3\n"))
    assert seen == [True]


def test_files_whose_bytes_were_changed_are_refused_or_read_and_never_crash(tmp_path: Path) -> None:
    rows = {"delay": np.arange(300.0), "site": pa.array(["a", "b"] * 150).dictionary_encode(), "who": ["x", "y"] * 150}
    table, g = pa.table(rows), dice(4).generator()
    feather.write_feather(table, str(tmp_path / "d.arrow"), compression="uncompressed")
    pq.write_table(table, tmp_path / "d.parquet")
    refused = 0
    for name in ("d.arrow", "d.parquet"):
        whole = (tmp_path / name).read_bytes()
        for _ in range(150):
            raw = bytearray(whole)
            for place in g.integers(0, len(raw), 3):
                raw[place] = int(g.integers(256))
            try:
                read_files(
                    written(tmp_path / name, bytes(raw)), value="delay", site="site", person="who", dice=dice(1).words
                )
            except BadInput:
                refused += 1
    assert refused > 100

"""Files of every format give the same sites, and a bad file is refused in one sentence that names it."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from sottovoce.client.reading.files import expand, read_files
from sottovoce.client.reading.table import SiteTable
from sottovoce.core.errors import BadInput

DATA = pa.table(
    {
        "note": ["a", "b", "c,d", "e\nf", "g", "h"],
        "delay": [3.0, 8.5, 1.0, 2.0, 9.0, 4.0],
        "airport": ["LGA", "JFK", "JFK", "LGA", "EWR", "EWR"],
        "who": [1, 2, 3, 4, 5, 6],
    }
)


def stream(table: Any, path: str) -> None:
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)


def gzipped(table: Any, path: str) -> None:
    with gzip.open(path, "wb") as sink:
        pyarrow.csv.write_csv(table, sink)


def tabbed(table: Any, path: str) -> None:
    pyarrow.csv.write_csv(table, path, pyarrow.csv.WriteOptions(delimiter="\t"))


WRITERS: dict[str, Callable[[Any, str], None]] = {
    "d.parquet": pyarrow.parquet.write_table,
    "d.pq": pyarrow.parquet.write_table,
    "d.feather": pyarrow.feather.write_feather,
    "d.arrow": stream,
    "d.csv": pyarrow.csv.write_csv,
    "D.CSV": pyarrow.csv.write_csv,
    "d.tsv": tabbed,
    "d.csv.gz": gzipped,
}


def content(table: SiteTable) -> dict[str, list[float]]:
    return {name: records.values().tolist() for name, records in zip(table.names, table.records, strict=True)}


def refusal(paths: Any, **options: Any) -> str:
    with pytest.raises(BadInput) as refused:
        read_files(paths, **{"value": "delay", **options})
    text = str(refused.value)
    assert "\n" not in text
    assert ". " not in text
    assert "Arrow" not in text or "Arrow file" in text
    assert refused.value.__cause__ is None
    return text


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("name", WRITERS)
def test_one_file_with_a_site_column(name: str, tmp_path: Path) -> None:
    WRITERS[name](DATA, str(tmp_path / name))
    table = read_files(tmp_path / name, value="delay", site="airport")
    assert content(table) == {"EWR": [9.0, 4.0], "JFK": [8.5, 1.0], "LGA": [3.0, 2.0]}
    assert table.unit.kind == "number"


@pytest.mark.parametrize("name", WRITERS)
def test_one_file_a_site(name: str, tmp_path: Path) -> None:
    WRITERS[name](DATA, str(tmp_path / name))
    written(tmp_path / "other.csv", "delay\n5\n6\n")
    table = read_files([str(tmp_path / name), tmp_path / "other.csv"], value="delay")
    assert content(table) == {name[0]: [3.0, 8.5, 1.0, 2.0, 9.0, 4.0], "other": [5.0, 6.0]}


def test_wildcards_are_expanded_in_order_without_hidden_files(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", ".hidden.csv"):
        written(tmp_path / name, "delay\n5\n6\n")
    assert [path.name for path in expand(f"{tmp_path}/*.csv")] == ["a.csv", "b.csv"]
    assert [path.name for path in expand(tmp_path / ".*.csv")] == [".hidden.csv"]
    written(tmp_path / "odd[1].csv", "delay\n5\n6\n")
    assert [path.name for path in expand(tmp_path / "odd[1].csv")] == ["odd[1].csv"]


def test_relative_wildcards_and_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "a.csv", "delay\n5\n6\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expand("*.csv") == [Path("a.csv")]
    assert expand("~/a.csv") == expand("~/*.csv") == [tmp_path / "a.csv"]


def test_several_files_with_a_site_column_are_joined(tmp_path: Path) -> None:
    dictionary = pa.array(["x", "y", "x"]).dictionary_encode()
    pyarrow.parquet.write_table(pa.table({"delay": [1, 2, 3], "airport": dictionary}), tmp_path / "a.parquet")
    written(tmp_path / "b.csv", "airport,delay\ny,4.5\nx,6\n")
    table = read_files([tmp_path / "a.parquet", tmp_path / "b.csv"], value="delay", site="airport")
    assert content(table) == {"x": [1.0, 3.0, 6.0], "y": [2.0, 4.5]}


@pytest.mark.parametrize("site", [None, "airport"])
def test_a_person_in_two_files_gives_one_record(site: str | None, tmp_path: Path) -> None:
    rows = {"delay": [1.0, 2.0, 3.0], "airport": ["a", "a", "a"], "who": [7, 8, 9]}
    pyarrow.parquet.write_table(pa.table(rows), tmp_path / "a.parquet")
    written(tmp_path / "b.csv", "who,delay,airport\n7,4,b\n10,5,b\n11,6,b\n")
    words = np.array([5, 1, 2, 4, 3, 9], dtype=np.uint64)
    files = [tmp_path / "a.parquet", tmp_path / "b.csv"]
    table = read_files(files, value="delay", site=site, person="who", dice=lambda n: words[:n])
    assert content(table) == {"a": [2.0, 3.0], "b": [4.0, 5.0, 6.0]}
    assert (table.left_out, table.per_person) == (1, True)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("e.csv", "", "is an empty file: write it again with its records"),
        ("e.parquet", "", "is an empty file: write it again with its records"),
        ("h.csv", "delay\n", "has a header but no rows: give a file with records"),
        ("p.parquet", "delay\n1\n", "is not a whole Parquet file, although its name says so: check how it was written"),
        (
            "f.feather",
            "delay\n1\n2\n",
            "is not a whole Arrow file, although its name says so: check how it was written",
        ),
        ("g.csv.gz", "delay\n1\n", "is not a gzip file, although its name says so: check how it was written"),
        (
            "g.csv.gz",
            gzip.compress(b"delay\n1\n" * 99, mtime=0)[:-9],
            "is not a whole CSV file, although its name says so",
        ),
        ("z.csv", gzip.compress(b"delay\n1\n", mtime=0), "is a gzip file: end its name in .csv.gz"),
        ("x.xlsx", "delay\n1\n", "has an ending that is not known: give a file that ends in .parquet, .pq, .feather"),
        (".csv", "delay\n1\n", "has an ending that is not known"),
        ("c.csv", "dely,b\n1,2\n", "has no column 'delay': did you mean 'dely'?"),
        ("c.csv", "a,b\n1,2\n", "has no column 'delay': its columns are 'a', 'b'"),
        ("c.csv", "delay,delay\n1,2\n", "has 2 columns called 'delay': rename all but one"),
        ("o.csv", "delay\n1\n\n2\n", "(rows counted after the header) holds a missing value (NaN or null) in row 2"),
    ],
)
def test_refused_files(name: str, text: str | bytes, problem: str, tmp_path: Path) -> None:
    path = written(tmp_path / name, text)
    assert f"{path} {problem}" in refusal(path)


@pytest.mark.parametrize("name", ["d.parquet", "d.feather"])
def test_a_damaged_file_is_refused(name: str, tmp_path: Path) -> None:
    WRITERS[name](DATA, str(tmp_path / name))
    raw = (tmp_path / name).read_bytes()
    path = written(tmp_path / name, raw[: len(raw) // 2])
    assert refusal(path).startswith(f"{path} is not a whole ")


def test_columns_that_are_not_in_a_parquet_or_arrow_file(tmp_path: Path) -> None:
    for name in ("d.parquet", "d.feather", "d.arrow"):
        WRITERS[name](DATA, str(tmp_path / name))
        assert refusal(tmp_path / name, site="airprt") == (
            f"{tmp_path / name} has no column 'airprt': did you mean 'airport'?"
        )


def test_paths_that_name_no_file(tmp_path: Path) -> None:
    assert refusal(tmp_path / "no.csv") == f"there is no file {tmp_path / 'no.csv'}: check its name"
    assert refusal(f"{tmp_path}/*.csv") == f"no file matches {tmp_path / '*.csv'}: check the wildcard"
    assert refusal(tmp_path) == f"{tmp_path} is a folder: give its files, such as {tmp_path / '*.parquet'}"
    assert refusal([]) == "there are no files: give at least one file of records"
    assert refusal([3]) == "a path is an int: give the name of a file"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = written(tmp_path / "s.csv", "delay\n1\n2\n")
    path.chmod(0)
    assert refusal(path) == f"{path} may not be read: check its permissions"


def test_a_file_is_read_once(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "delay\n1\n2\n")
    assert refusal([path, f"{tmp_path}/*.csv"]).startswith(f"{path} is named twice: each file may be read once")


def test_two_files_of_one_stem_are_two_sites_of_one_name(tmp_path: Path) -> None:
    written(tmp_path / "a.csv", "delay\n1\n2\n")
    written(tmp_path / "a.tsv", "delay\n1\n2\n")
    expected = "two sites are called 'a': give every site a name of its own"
    assert refusal([tmp_path / "a.csv", tmp_path / "a.tsv"]) == expected


def test_files_of_two_kinds_are_refused(tmp_path: Path) -> None:
    a = written(tmp_path / "a.csv", "delay,airport\n1,x\n2,x\n")
    b = written(tmp_path / "b.csv", "delay,airport\n2013-05-01,x\n2013-05-02,x\n")
    assert refusal([a, b]).startswith("site 'a' holds numbers and site 'b' holds dates: give every site the same kind")
    assert refusal([a, b], site="airport").startswith(f"file '{a}' holds numbers and file '{b}' holds dates: give")


def test_a_person_needs_dice_before_any_file_is_read(tmp_path: Path) -> None:
    assert refusal(tmp_path / "no.csv", person="who").startswith("person is given without dice")

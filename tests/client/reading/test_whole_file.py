"""All columns of a file at once: kinds and counts as they are, nothing of a record in names, reprs and refusals."""

import copy
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from sottovoce.client.reading import csv_file
from sottovoce.client.reading.files import read_files
from sottovoce.client.reading.formats import Marks
from sottovoce.client.reading.whole_file import OpenedFile, open_file
from sottovoce.core.errors import BadInput

pickled: Callable[[object], bytes] = importlib.import_module("pickle").dumps


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def opened(path: Path, **marks: Any) -> OpenedFile:
    return open_file(path, Marks(**marks))


def kinds(file: OpenedFile) -> dict[str, str]:
    return {column.name: column.kind for column in file.columns}


def refusal(path: Path, **marks: Any) -> str:
    with pytest.raises(BadInput) as refused:
        opened(path, **marks)
    assert refused.value.__cause__ is None
    return str(refused.value)


def test_kinds_and_missing_values_of_a_csv_file(tmp_path: Path) -> None:
    rows = [
        "7,1.5,2013-05-01,2013-05-01 10:00:00,true,north,",
        ",NaN,,,,south,",
        "9,2,2013-05-03,2013-05-03 11:00:00,false,,",
    ]
    file = opened(written(tmp_path / "a.csv", "\n".join(["n,x,day,at,yes,clinic,blank", *rows, ""])))
    assert kinds(file) == {
        "n": "whole numbers",
        "x": "numbers",
        "day": "dates",
        "at": "dates with a time",
        "yes": "true or false",
        "clinic": "categories",
        "blank": "nothing",
    }
    assert [column.missing for column in file.columns] == [1, 1, 1, 1, 1, 1, 3]
    assert [column.name for column in file.columns if column.holds_values] == ["n", "x", "day", "at", "yes"]
    assert [column.name for column in file.columns if column.holds_labels] == ["n", "yes", "clinic"]
    assert file.rows == 3


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_kinds_of_a_file_with_types(tmp_path: Path, ending: str) -> None:
    ordered = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["low", "high"]), ordered=True)
    columns: dict[str, Any] = {
        "n": pa.array([1, None], pa.int16()),
        "x": pa.array([float("nan"), None]),
        "price": pa.array([None, None], pa.decimal128(9, 2)),
        "whole": pa.array([None, None], pa.decimal128(9, 0)),
        "wait": pa.array([1, 2], pa.duration("s")),
        "grade": ordered,
        "name": pa.array(["a", "b"]).dictionary_encode(),
        "list": pa.array([[1], [2]]),
    }
    path = tmp_path / f"a.{ending}"
    pq.write_table(pa.table(columns), path) if ending == "parquet" else feather.write_feather(pa.table(columns), path)
    file = opened(path)
    assert kinds(file) == {
        "n": "whole numbers",
        "x": "numbers",
        "price": "numbers",
        "whole": "whole numbers",
        "wait": "durations",
        "grade": "ordered categories",
        "name": "categories",
        "list": "something else",
    }
    assert [column.missing for column in file.columns] == [1, 2, 2, 2, 0, 0, 0, 0]


def test_delimiters_decimals_and_an_index_without_a_name_are_found_out(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", ";price;clinic\n0;1.234,5;x\n1;2,5;y\n")
    assert kinds(opened(path)) == {"price": "numbers", "clinic": "categories"}
    assert opened(path).table().column("price").to_pylist() == [1234.5, 2.5]


@pytest.mark.parametrize(
    "text", ["31,47.5\n18,44.25\n", "Anna,x\nBob,y\n", ",Anna,Berlin\n1,Bob,Paris\n", "4711\n4712\n", "a,2013\n1,2\n"]
)
def test_a_first_line_that_may_be_a_record_is_refused_and_not_quoted(tmp_path: Path, text: str) -> None:
    said = refusal(written(tmp_path / "a.csv", text))
    assert "may be one of records" in said
    assert not [cell for cell in text.replace("\n", ",").split(",") if len(cell) > 1 and cell in said]


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    assert "has 2 columns called 'a'" in refusal(written(tmp_path / "a.csv", "a,a,b\n1,2,3\n"))
    assert "may be one of records" in refusal(written(tmp_path / "b.csv", "a,b\n"))
    assert "decimal=" in refusal(written(tmp_path / "c.csv", 'a,b\n"1,234",x\n'))
    assert "there is no file" in refusal(tmp_path / "none.csv")
    assert "names 3 files: give one" in refusal(tmp_path / "*.csv")
    assert "3 fields in row 2" in refusal(written(tmp_path / "d.csv", "a,b\n1,2\n3,4,5\n"))


def test_a_column_that_turns_into_text_keeps_how_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def by_row(_: Path, first: str, rest: Any) -> Any:
        yield from ((line + "\n").encode() for line in (first + "".join(rest)).splitlines())

    monkeypatch.setattr(csv_file, "blocks", by_row)
    file = opened(written(tmp_path / "a.csv", "code,n\n007,1\n008,2\nx9,3\n"))
    assert kinds(file) == {"code": "categories", "n": "whole numbers"}
    assert file.table().column("code").to_pylist() == ["007", "008", "x9"]
    assert file.table().column("n").to_pylist() == [1, 2, 3]
    assert file.hints[0].startswith("most labels of column 'code' are numbers and some are not")


def test_most_numbers_among_labels_are_a_hint_to_the_holder(tmp_path: Path) -> None:
    file = opened(written(tmp_path / "a.csv", "level,n\n3,1\n4,1\n<0.5,2\n"))
    assert kinds(file)["level"] == "categories"
    assert len(file.hints) == 1
    assert "0.5" not in file.hints[0]
    assert "--censored" in file.hints[0]
    assert "--censored" not in opened(written(tmp_path / "c.csv", "level,n\n3,1\n4,1\nx,2\n")).hints[0]
    assert opened(written(tmp_path / "b.csv", "level,n\na,1\nb,1\n3,2\n")).hints == ()


def test_the_values_are_those_of_the_reader_of_one_column(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "clinic,wait\n" + "".join(f"{'xy'[k % 2]},{k / 4}\n" for k in range(5000)))
    table = opened(path).table()
    alone = read_files(path, value="wait", site="clinic")
    for name, records in zip(alone.names, alone.records, strict=True):
        own = [
            wait
            for wait, clinic in zip(*(table.column(each).to_pylist() for each in ("wait", "clinic")), strict=True)
            if clinic == name
        ]
        assert records.values().tolist() == own


def test_it_is_neither_shown_nor_copied(tmp_path: Path) -> None:
    file = opened(written(tmp_path / "a.csv", "wait\n123456.789\n1\n"))
    assert repr(file) == "OpenedFile(2 rows, 1 columns, values hidden)"
    for copied in (pickled, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            copied(file)

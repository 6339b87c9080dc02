"""Files of every format give the same rows, and a bad file is refused in one sentence that names it."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import sottovoce as sv
from sottovoce.client.reading.regression_files import read_regression_files
from sottovoce.core.errors import BadInput

DATA = pa.table(
    {
        "note": ["a", "b", "c,d", "e"],
        "miles": [2.0, 7.5, 4.0, 12.0],
        "minutes": [9, 20, 18, 31],
        "hour": [0, 12, 6, 24],
        "night": [True, False, False, True],
    }
)
FEATURES = ["hour", "miles", "night"]
BOUNDS = {"hour": (0, 24), "miles": (0, 16), "night": (0, 1)}


def gzipped(table: Any, path: str) -> None:
    with gzip.open(path, "wb") as sink:
        pyarrow.csv.write_csv(table, sink)


def tabbed(table: Any, path: str) -> None:
    pyarrow.csv.write_csv(table, path, pyarrow.csv.WriteOptions(delimiter="\t"))


WRITERS: dict[str, Callable[[Any, str], None]] = {
    "d.parquet": pyarrow.parquet.write_table,
    "d.feather": pyarrow.feather.write_feather,
    "d.csv": pyarrow.csv.write_csv,
    "D.TSV": tabbed,
    "d.csv.gz": gzipped,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format(name: str, tmp_path: Path) -> None:
    WRITERS[name](DATA, str(tmp_path / name))
    result = read_regression_files(tmp_path / name, "minutes", FEATURES, bounds=BOUNDS).found
    assert result.names == tuple(FEATURES)
    assert result.named
    assert result.rows.response().tolist() == [9.0, 20.0, 18.0, 31.0]
    assert result.rows.features().tolist() == [[-1, -0.75, 1], [0, -0.0625, -1], [-0.5, -0.5, -1], [1, 0.5, 1]]


def written(folder: Path, text: str) -> Path:
    path = folder / "trips.csv"
    path.write_text(text)
    return path


def refusal(path: Any, response: str = "minutes", features: Any = ("miles",), **options: Any) -> str:
    with pytest.raises(BadInput) as refused:
        read_regression_files(path, response, features, **{"bounds": (0, 30), **options})
    text = str(refused.value)
    assert "\n" not in text
    assert ". " not in text
    assert refused.value.__cause__ is None
    return text


def test_blanks_and_one_name_as_text(tmp_path: Path) -> None:
    path = written(tmp_path, "minutes,miles\n 9, 2\n20 , 7.5 \n31,12\n")
    rows = read_regression_files(path, "minutes", "miles", bounds=(0, 16)).found.rows
    assert rows.features().ravel().tolist() == [-0.75, -0.0625, 0.5]


def test_clipping_is_counted(tmp_path: Path) -> None:
    path = written(tmp_path, "minutes,miles\n9,2\n20,7.5\n31,12\n")
    assert read_regression_files(path, "minutes", ["miles"], bounds=(0, 10), clip=True).found.clipped == 1
    assert "trips.csv (rows counted after the header) is outside its bounds (0, 10) in row 3" in refusal(
        path, bounds=(0, 10)
    )


CELLS = {
    "text": ("minutes,miles\n9,2\n20,far\n31,3\n", "column 'miles'", "holds text in row 2"),
    "date": ("minutes,miles\n9,2013-05-01\n20,2013-05-02\n", "column 'miles'", "holds a date or time in row 1"),
    "missing": (
        "minutes,miles\n9,2\n20,\n31,NA\n",
        "column 'miles'",
        "contains NaN in 2 rows, the first of them row 2",
    ),
    "infinite": ("minutes,miles\n9,2\n20,inf\n31,3\n", "column 'miles'", "contains infinity in row 2"),
    "text response": ("minutes,miles\n9,2\nlong,3\n31,4\n", "column 'minutes'", "holds text in row 2"),
    "date response": (
        "minutes,miles\n2013-05-01,2\n2013-05-02,3\n",
        "column 'minutes'",
        "holds a date or time in row 1",
    ),
    "missing response": ("minutes,miles\n9,2\n,3\n31,4\n", "column 'minutes'", "contains NaN in row 2"),
    "constant": ("minutes,miles\n9,2\n20,2\n31,2\n", "column 'miles'", "is constant"),
    "too long": ("minutes,miles\n9,9007199254740993\n20,3\n31,4\n", "column 'miles'", "too long for float64 in row 1"),
    "ragged": ("minutes,miles\n9,2\n20,3,4\n", "trips.csv", "has 3 fields in row 2"),
    "no rows": ("minutes,miles\n", "trips.csv", "no rows"),
}


@pytest.mark.parametrize(("text", "place", "words"), CELLS.values(), ids=CELLS)
def test_bad_cells_are_named_by_file_column_and_row(text: str, place: str, words: str, tmp_path: Path) -> None:
    said = refusal(written(tmp_path, text))
    assert place in said.replace("Column", "column")
    assert words in said
    assert "trips.csv" in said
    assert "duration or a date" not in said


def test_bad_names(tmp_path: Path) -> None:
    path = written(tmp_path, "minutes,miles\n9,2\n20,3\n")
    assert "has no column 'mile': did you mean 'miles'?" in refusal(path, features=["mile"])
    assert "has no column 'seconds'" in refusal(path, response="seconds")
    assert "column 'miles' is named twice" in refusal(path, features=["miles", "miles"])
    assert "column 'miles' is named twice" in refusal(path, response="miles")
    assert "name at least one" in refusal(path, features=[])
    assert "there is no file" in refusal(tmp_path / "none.csv")


def test_rows_of_several_files_are_read_below_each_other(tmp_path: Path) -> None:
    written(tmp_path, "minutes,miles\n9,2\n20,3\n")
    (tmp_path / "urban.csv").write_text("miles,minutes\n7,31\n")
    rows = read_regression_files(tmp_path / "*.csv", "minutes", ["miles"], bounds=(0, 10)).found.rows
    assert rows.response().tolist() == [9, 20, 31]
    assert rows.features()[:, 0].tolist() == pytest.approx([-0.6, -0.4, 0.4])


SHIFTS = "minutes,miles,shift,driver\n9,2,day,7\n20,,night,7.0\n31,3, day,8\n33,4,,8\n12,5,late,9\n15,6,night,7\n"


def test_categories_become_columns_of_zero_and_one(tmp_path: Path) -> None:
    path = written(tmp_path, "minutes,miles,shift\n9,2,day\n20,4,night\n31,3, day\n12,5,late\n")
    levels = {"shift": ("day", "night", "other")}
    found = read_regression_files(path, "minutes", ["shift", "miles"], bounds={"miles": (0, 10)}, levels=levels).found
    assert found.names == ("shift=night", "shift=other", "miles")
    assert found.rows.features()[:, :2].tolist() == [[-1, -1], [1, -1], [-1, -1], [-1, 1]]
    assert found.bounds.low.tolist() == [0, 0, 0]
    said = refusal(path, features=["shift", "miles"], bounds=(0, 10), levels={"shift": ("day", "night")})
    assert "holds a level that is not declared in row 4" in said
    assert "late" not in said
    said = refusal(path, features=["miles", "shift"])
    assert "holds text in row 1" in said
    assert "declare the levels of categories, which are public, with levels=" in said
    assert "levels names 'shfit'" in refusal(path, features=["miles"], levels={"shfit": ("a", "b")})


def test_rows_with_missing_values_are_dropped_and_a_person_answers_once(tmp_path: Path) -> None:
    path = written(tmp_path, SHIFTS)
    levels = {"shift": ("day", "night", "late")}
    columns: dict[str, Any] = {"bounds": {"miles": (0, 10)}, "levels": levels}
    assert "missing" in refusal(path, features=["miles", "shift"], **columns)
    made = read_regression_files(path, "minutes", ["miles", "shift"], **columns, missing="drop")
    assert (made.dropped, made.further, made.found.rows.response().tolist()) == (2, 0, [9, 31, 12, 15])
    known: dict[str, Any] = {"bounds": (0, 10), "person": "driver", "missing": "drop"}
    seen = set()
    for seed in range(20):
        one = read_regression_files(path, "minutes", ["miles"], **known, dice=sv.sim.dice(seed).words)
        assert (one.dropped, one.further, one.per_person) == (1, 2, True)
        seen.add(tuple(one.found.rows.response()))
    assert seen == {(9.0, b, 12.0) for b in (31.0, 33.0)} | {(b, 12.0, 15.0) for b in (31.0, 33.0)}
    assert "dice" in refusal(path, person="driver")
    assert "every row has a missing value" in refusal(written(tmp_path, "minutes,miles\n9,\n,3\n"), missing="drop")


def test_a_parquet_column_of_text(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(DATA, tmp_path / "trips.parquet")
    said = refusal(tmp_path / "trips.parquet", features=["note"])
    assert said.startswith("Column 'note' of ")
    assert "holds text in row 1" in said

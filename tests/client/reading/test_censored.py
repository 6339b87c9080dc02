"""Columns with values beyond limits: however they are written, they are one number, and what is unknown is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sottovoce as sv
from sottovoce.client.reading import formats
from sottovoce.client.reading.table import SiteTable, read_sites
from sottovoce.core.censoring import read_censoring
from sottovoce.core.errors import BadInput

LIMITS = "<5,>200"
WRITTEN = ["7", "<5", "< 0.1", "≤3", "<=4", "4.9", ">200", "> 1e3", "≥201", "200", "5"]
RECORDS = [7.0, 0.0, 0.0, 0.0, 0.0, 0.0, 400.0, 400.0, 400.0, 200.0, 5.0]


def values(table: SiteTable) -> list[float]:
    return [value for records in table.records for value in records.values().tolist()]


def one(column: Any, limits: str = LIMITS, **how: Any) -> list[float]:
    return values(read_sites({"a": column}, censored=read_censoring(limits), **how))


@pytest.mark.parametrize(
    "make",
    [
        list,
        np.array,
        lambda cells: np.array(cells, dtype=object),
        pa.array,
        lambda cells: pa.chunked_array([cells[:4], cells[4:]]),
        pd.Series,
        lambda cells: pd.Series(cells, dtype="string"),
        lambda cells: pd.Series(cells, dtype="category"),
        pl.Series,
        lambda cells: pl.Series(cells, dtype=pl.Categorical),
        lambda cells: [float(cell) if cell.replace(".", "").isdigit() else cell for cell in cells],
    ],
)
def test_every_kind_of_column_gives_the_same_records(make: Any) -> None:
    assert one(make(WRITTEN)) == RECORDS


@pytest.mark.parametrize("kind", [np.float64, np.int64, np.float32])
def test_numbers_that_somebody_put_in_place_of_symbols_are_symbols(kind: Any) -> None:
    assert one(np.array([2, 0, 7, 5, 200, 999], dtype=kind)) == [0.0, 0.0, 7.0, 5.0, 200.0, 400.0]


def test_missing_values_stay_missing_and_are_counted() -> None:
    cells = ["7", "", "NA", None, "<5", "9"]
    with pytest.raises(BadInput, match="missing value"):
        one(cells)
    table = read_sites({"a": cells}, missing="drop", censored=read_censoring(LIMITS))
    assert values(table) == [7.0, 0.0, 9.0]
    assert table.dropped == {"a": 3}


FRAME = {"lead": WRITTEN * 2, "where": ["a"] * 11 + ["b"] * 11}
READ: dict[str, Any] = {"value": "lead", "site": "where", "censored": LIMITS}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=lambda make: make.__module__)
def test_every_kind_of_frame(make: Any) -> None:
    table = sv.read_frame(make(FRAME), **READ)
    assert values(table) == RECORDS * 2
    assert str(table.unit.censored) == LIMITS


@pytest.mark.parametrize("light", [False, True])
def test_files_with_and_without_arrow(light: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "north.csv"
    path.write_text("lead,who\n" + "".join(f"{cell},{row}\n" for row, cell in enumerate(WRITTEN)))
    if light:
        monkeypatch.setattr(formats, "pa", None)
    assert values(sv.read_files(path, value="lead", censored=LIMITS)) == RECORDS
    path.write_text("lead;who\n" + "".join(f"{cell.replace('.', ',')};{row}\n" for row, cell in enumerate(WRITTEN)))
    assert values(sv.read_files(path, value="lead", censored=LIMITS, decimal=",")) == RECORDS


def test_a_parquet_file_of_text_or_numbers(tmp_path: Path) -> None:
    pq.write_table(pa.table(FRAME), tmp_path / "text.parquet")
    assert values(sv.read_files(tmp_path / "text.parquet", **READ)) == RECORDS * 2
    pq.write_table(pa.table({**FRAME, "lead": [3.0] * 11 + [8.0] * 11}), tmp_path / "numbers.parquet")
    assert values(sv.read_files(tmp_path / "numbers.parquet", **READ)) == [0.0] * 11 + [8.0] * 11


MARKED = {"lead": [7.0, 5.0, 3.0, 200.0, 9.0, 6.0], "where": ["a"] * 3 + ["b"] * 3}


@pytest.mark.parametrize(
    "marks",
    [
        ["", "<", "<", ">", "", ""],
        [None, "ND", "nd", ">", None, "="],
        [None, "<", "U", "> ", "no", "0"],
        ["false", "bdl", "<", ">", "0.0", "FALSE"],
    ],
)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=lambda make: make.__module__)
def test_a_column_of_marks_says_which_numbers_are_limits(make: Any, marks: list[Any]) -> None:
    table = sv.read_frame(make({**MARKED, "mark": marks}), **READ, flag="mark")
    assert values(table) == [7.0, 0.0, 0.0, 400.0, 9.0, 6.0]


def test_marks_that_are_truth_values_where_there_is_one_limit(tmp_path: Path) -> None:
    own: dict[str, Any] = {"value": "lead", "site": "where", "censored": "<5"}
    frame = pd.DataFrame({**MARKED, "mark": [False, True, False, False, False, False]})
    found = [7.0, 0.0, 0.0, 200.0, 9.0, 6.0]
    assert values(sv.read_frame(frame, **own, flag="mark")) == found
    frame.to_csv(tmp_path / "marked.csv", index=False)
    assert values(sv.read_files(tmp_path / "marked.csv", **own, flag="mark")) == found
    with pytest.raises(BadInput, match="does not tell below from above in row 2"):
        sv.read_frame(frame, **{**own, "censored": LIMITS}, flag="mark")


def test_a_mark_without_a_number_is_a_symbol() -> None:
    frame = pd.DataFrame({**MARKED, "lead": [7.0, None, 8.0, None, 9.0, 6.0], "mark": ["", "ND", "", ">", "", ""]})
    assert values(sv.read_frame(frame, **READ, flag="mark")) == [7.0, 0.0, 8.0, 400.0, 9.0, 6.0]


SECRET = "98765.4321"


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        (f"trace {SECRET}", "in row 3"),
        (f"<{SECRET}", "a value below a limit that censored= does not name in row 3"),
        (f">={SECRET}", ""),
        ("ND", "a mark of a missing value in row 3"),
        ("< ", "in row 3"),
        ("<x5", "in row 3"),
        ("<<5", "in row 3"),
        (">60", "a value above a limit that censored= does not name in row 3"),
        ("<6", "a value below a limit that censored= does not name in row 3"),
        ("≤5", "a value below a limit that censored= does not name in row 3"),
        ("2001-04-19", "in row 3"),
        ("inf", "an infinite number in row 3"),
    ],
)
@pytest.mark.parametrize("in_file", [False, True])
def test_what_is_not_known_is_refused_by_column_and_row_and_never_told(
    cell: str, why: str, in_file: bool, tmp_path: Path
) -> None:
    cells = ["7", "<5", cell, "9"]

    def read() -> Any:
        if not in_file:
            return sv.read_frame(pd.DataFrame({"lead": cells, "where": ["a", "b"] * 2}), **READ)
        path = tmp_path / "north.csv"
        path.write_text("lead,where\n" + "".join(f"{each},{'ab'[row % 2]}\n" for row, each in enumerate(cells)))
        return sv.read_files(path, **READ)

    if not why:
        assert 400.0 in values(read())  # beyond the upper limit, wherever its own was
        return
    with pytest.raises(BadInput, match=why) as caught:
        read()
    assert "olumn 'lead'" in str(caught.value)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("marks", "why"),
    [
        (["", "maybe", "", "", "", ""], "a mark that is not known in row 2"),
        (["<", "", "", "", "", ""], "a value below a limit that censored= does not name in row 1"),
        (["", "", "", "", ">", ""], "a value above a limit that censored= does not name in row 5"),
    ],
)
def test_marks_that_cannot_be_are_refused(marks: list[str], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        sv.read_frame(pd.DataFrame({**MARKED, "mark": marks}), **READ, flag="mark")


def test_what_does_not_go_together_is_refused() -> None:
    frame = pd.DataFrame({**MARKED, "day": np.arange(6).astype("datetime64[D]")})
    with pytest.raises(BadInput, match=r'none are said: add them, as in censored="<5"'):
        sv.read_frame(frame, value="lead", site="where", flag="day")
    with pytest.raises(BadInput, match="named twice"):
        sv.read_frame(frame, **READ, flag="lead")
    with pytest.raises(BadInput, match="censored= is said of numbers"):
        sv.read_frame(frame, **{**READ, "value": "day"})
    with pytest.raises(BadInput, match="no column 'mark'"):
        sv.read_frame(frame, **READ, flag="mark")


def test_records_that_are_all_one_symbol_are_told_as_such() -> None:
    with pytest.raises(BadInput, match=r"all 40 records are <5: within the limits"):
        one(["<5"] * 40)
    assert set(one(["<5", ">200"] * 20)) == {0.0, 400.0}

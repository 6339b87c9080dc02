"""Groups and weights beside columns and in tables: every row in its place, and what does not fit refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sottovoce as sv
from sottovoce.client.reading.divided import read_table_of
from sottovoce.client.reading.table import SiteTable
from sottovoce.sim.randomness import dice

WAITS = {"north": [3.0, 4.0, 5.0, 9.0], "south": [1.0, 2.0]}
KINDS: dict[str, Any] = {"north": ["x", "y", "x", "x"], "south": ["y", "y"]}
FRAME: dict[str, Any] = {
    "wait": [3.0, 4.0, 5.0, 9.0, 1.0, 2.0],
    "clinic": ["north"] * 4 + ["south"] * 2,
    "kind": ["x", "y", "x", "x", "y", "y"],
    "w": [1.0, 1.0, 2.0, 2.0, 1.0, 1.0],
}


def shown(table: SiteTable) -> dict[str, list[float]]:
    return {name: records.values().tolist() for name, records in zip(table.names, table.records, strict=True)}


GROUPED = {"north, x": [3.0, 5.0, 9.0], "north, y": [4.0], "south, y": [1.0, 2.0]}


@pytest.mark.parametrize(
    "kinds",
    [
        KINDS,
        {name: np.array(labels) for name, labels in KINDS.items()},
        {name: pd.Series(labels, dtype="category") for name, labels in KINDS.items()},
        {name: pl.Series(labels) for name, labels in KINDS.items()},
        {name: pa.array(labels) for name, labels in KINDS.items()},
        [KINDS["north"], "y"],
    ],
    ids=["lists", "numpy", "pandas", "polars", "arrow", "one for a site"],
)
def test_groups_stand_beside_the_records(kinds: Any) -> None:
    table = read_table_of(WAITS, groups=kinds)
    assert shown(table) == GROUPED
    assert table.strata is not None
    assert table.strata.groups == ("x", "y", "y")
    assert table.places == ("north", "south")
    assert [column.tolist() for column in table.columns] == [[3.0, 5.0, 9.0, 4.0], [1.0, 2.0]]


def test_whole_numbers_name_groups() -> None:
    table = read_table_of([[1.0, 2.0, 3.0, 4.0]], groups=[[1, 2, 1, 2]])
    assert shown(table) == {"site 1, 1": [1.0, 3.0], "site 1, 2": [2.0, 4.0]}


def test_weights_stand_beside_the_records() -> None:
    table = read_table_of(WAITS, weights={"north": np.array([1.0, 1.0, 2.5, 2.5]), "south": 1})
    assert shown(table) == {
        "north, weight 1": [3.0, 4.0],
        "north, weight 2.5": [5.0, 9.0],
        "south, weight 1": [1.0, 2.0],
    }
    assert table.roster.weights == (1.0, 2.5, 1.0)


@pytest.mark.parametrize("frame", [pd.DataFrame(FRAME), pl.DataFrame(FRAME), pa.table(FRAME)], ids=["pd", "pl", "pa"])
def test_frames_have_columns_of_groups_and_weights(frame: Any) -> None:
    assert shown(sv.read_frame(frame, value="wait", site="clinic", group="kind")) == GROUPED
    whole = sv.read_frame(frame, value="wait", group="kind", weight="w")
    assert whole.places == ("all records",)
    assert list(shown(whole).values()) == [[3.0], [5.0, 9.0], [4.0, 1.0, 2.0]]
    assert whole.roster.strata is not None
    assert whole.roster.strata.by == "kind"


def test_files_have_columns_of_groups_and_weights(tmp_path: Path) -> None:
    pd.DataFrame(FRAME).to_csv(tmp_path / "all.csv", index=False)
    table = sv.read_files(tmp_path / "all.csv", value="wait", site="clinic", group="kind", weight="w")
    assert list(shown(table).values()) == [[3.0], [5.0, 9.0], [4.0], [1.0, 2.0]]
    for name, part in pd.DataFrame(FRAME).groupby("clinic"):
        part.drop(columns="clinic").to_csv(tmp_path / f"one-{name}.csv", index=False)
    apart = sv.read_files(str(tmp_path / "one-*.csv"), value="wait", group="kind")
    assert list(shown(apart)) == ["one-north, x", "one-north, y", "one-south, y"]


def test_what_is_missing_is_refused_or_left_out_and_counted() -> None:
    frame = pd.DataFrame(FRAME | {"wait": [3.0, np.nan, 5.0, 9.0, 1.0, 2.0], "kind": ["x", "y", "x", None, "y", "y"]})
    for column in ("wait", "kind"):
        clean = pd.DataFrame(FRAME).assign(**{column: frame[column]})
        with pytest.raises(sv.BadInput, match=rf"(?i)column '{column}' .*missing"):
            sv.read_frame(clean, value="wait", site="clinic", group="kind")
    table = sv.read_frame(frame, value="wait", site="clinic", group="kind", missing="drop")
    assert shown(table) == {"north, x": [3.0, 5.0], "south, y": [1.0, 2.0]}
    assert sum(table.dropped.values()) == 1
    assert table.unplaced == 1
    light = pd.DataFrame(FRAME | {"w": [1.0, np.nan, 2.0, 2.0, 1.0, 1.0]})
    with pytest.raises(sv.BadInput, match=r"(?i)column 'w' .*missing"):
        sv.read_frame(light, value="wait", site="clinic", weight="w")
    assert sv.read_frame(light, value="wait", site="clinic", weight="w", missing="drop").unplaced == 1


def test_one_row_of_a_person_over_all_groups() -> None:
    frame = pd.DataFrame(FRAME | {"who": [1, 1, 2, 2, 3, 3]})
    table = sv.read_frame(frame, value="wait", site="clinic", group="kind", person="who", randomness=dice(1))
    assert sum(map(len, shown(table).values())) == 3
    assert table.left_out == 3


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a group too few": ({"groups": {"north": ["x"] * 3, "south": "y"}}, "4 records and 3 rows of groups"),
    "a site without": ({"groups": {"north": "x"}}, "says nothing of site 'south'"),
    "an unknown site": ({"groups": {"north": "x", "south": "y", "west": "z"}}, "'west', which is no site"),
    "no mapping": ({"groups": "x"}, "give a mapping from site"),
    "a wrong number of columns": ({"weights": [1.0]}, "give a mapping from site"),
    "a weight too few": ({"weights": {"north": [1.0, 2.0], "south": 1}}, "4 records and 2 rows of weights"),
    "a weight of text": ({"weights": {"north": "heavy", "south": 1}}, "weight column of site 'north'"),
    "a negative weight": ({"weights": {"north": [1, 2, -3, 1], "south": 1}}, "row 3"),
    "a weight of zero": ({"weights": {"north": 0, "south": 1}}, "not positive"),
    "weights that are dates": (
        {"weights": {"north": pd.date_range("2020", periods=4), "south": 1}},
        "every weight must be a positive number",
    ),
    "groups that are records": (
        {"groups": {"north": [1.25, 2.5, 3.75, 4.0], "south": [0.125, 0.75]}},
        "which group a record belongs to",
    ),
    "a weight that is missing for a whole site": ({"weights": {"north": np.nan, "south": 1}}, "a missing value"),
    "a weight beyond doubles": ({"weights": {"north": 10**400, "south": 1}}, "too long for float64"),
    "a symbol for a weight": (
        {"weights": {"north": [1, 2, "<5", 1], "south": 1}, "censored": "<5"},
        "row 3: every weight",
    ),
    "a truth value for a weight": ({"weights": {"north": [True] * 4, "south": 1}}, "truth value"),
    "nothing for a group": ({"groups": {"north": ["x", "", "x", "x"], "south": "y"}}, "group 1 has a blank name"),
    "no label": ({"groups": {"north": None, "south": "y"}}, "give one label, or a column of them"),
    "a missing label for a site": ({"groups": {"north": np.nan, "south": "y"}}, "is a missing value"),
    "an array without rows": ({"groups": {"north": np.array("x"), "south": "y"}}, "give one label, or a column"),
    "a number beyond doubles for a label": ({"groups": {"north": [10**400] * 4, "south": "y"}}, "a name of 401"),
    "a missing label among others": (
        {"groups": {"north": ["x", np.nan, "x", "x"], "south": "y"}},
        "missing value in row 2",
    ),
    "a list among labels": ({"groups": {"north": ["x", ["y"], "x", "x"], "south": "y"}}, "holds a list in row 2"),
    "groups of lists": ({"groups": {"north": [["x"]] * 4, "south": "y"}}, "cannot be names"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_in_one_sentence(case: str) -> None:
    given, said = REFUSED[case]
    with pytest.raises(sv.BadInput, match=said) as caught:
        read_table_of(WAITS, **given)
    assert "\n" not in str(caught.value)


def test_a_table_has_its_groups_already() -> None:
    table = sv.read_frame(pd.DataFrame(FRAME), value="wait", site="clinic")
    with pytest.raises(sv.BadInput, match="read_frame"):
        read_table_of(table, groups={"north": "x", "south": "y"})
    assert read_table_of(table) is table


def test_two_sites_with_the_same_memory_are_refused() -> None:
    column = np.arange(100.0)
    with pytest.raises(sv.BadInput, match="share records"):
        read_table_of({"a": column, "b": column[:50]}, groups={"a": "x", "b": "y"})


def test_one_column_in_two_roles_is_refused() -> None:
    with pytest.raises(sv.BadInput, match="named twice"):
        sv.read_frame(pd.DataFrame(FRAME), value="wait", site="clinic", group="clinic")


@pytest.mark.parametrize("divided", ["group", "weight"])
def test_questions_that_know_no_groups_say_so(divided: str) -> None:
    frame = pd.DataFrame(FRAME)
    column: dict[str, Any] = {divided: "kind" if divided == "group" else "w"}
    table = sv.read_frame(frame, value="wait", site="clinic", **column)
    for ask in (
        lambda: sv.conformal_threshold(table, 0.1),
        lambda: sv.integrated_quantile("north", table, 0.5, 1.0),
    ):
        with pytest.raises(sv.BadInput, match=f"divided by {divided}s"):
            ask()

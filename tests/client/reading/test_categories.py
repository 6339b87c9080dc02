"""Columns of categories give the same columns of 0 and 1 from every container; levels are declared, and never shown."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sottovoce.client.reading.design_matrix import read, read_features
from sottovoce.core.categories import read_levels, with_dummies
from sottovoce.core.errors import BadInput

LEVELS = {"shift": ("day", "night", "other"), "month": ("1", "2")}
MILES, SHIFT, MONTH = [2.0, 7.5, 4.0, 9.0], ["day", "night ", "late", "day"], [1, 2, 1, 2]
PLAIN: dict[str, Any] = {"miles": MILES, "shift": SHIFT, "month": MONTH}
CONTAINERS: dict[str, Any] = {
    "mapping": PLAIN,
    "pandas": pd.DataFrame({**PLAIN, "shift": pd.Categorical(SHIFT)}),
    "pandas floats": pd.DataFrame({**PLAIN, "month": np.array(MONTH, dtype=float)}),
    "polars": pl.DataFrame(PLAIN).with_columns(pl.col("shift").cast(pl.Categorical)),
    "arrow": pa.table({**PLAIN, "shift": pa.array(SHIFT).dictionary_encode()}),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_every_container_gives_the_same_columns(kind: str) -> None:
    found = read(CONTAINERS[kind], [1.0, 2.0, 3.0, 5.0], {"miles": (0, 10)}, levels=LEVELS, collinear=False)
    assert found.names == ("miles", "shift=night", "shift=other", "month=2")
    assert found.rows.features()[:, 1:].tolist() == [[-1, -1, -1], [1, -1, 1], [-1, 1, -1], [-1, -1, 1]]
    fitted = read_features(CONTAINERS[kind], found.names, 4, levels=LEVELS)
    assert fitted[:, 1:].tolist() == [[0, 0, 0], [1, 0, 1], [0, 1, 0], [0, 0, 1]]


def test_columns_without_names_are_declared_by_their_place() -> None:
    rows = np.array([[2.0, "day"], [7.5, "night"], [4.0, "day"]], dtype=object)
    found = read(rows, [1.0, 2.0, 3.0], {"x0": (0, 10)}, levels={"x1": ("day", "night")})
    assert found.names == ("x0", "x1=night")
    assert found.named is False


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        (["day"], "mapping from column to its levels"),
        ({"shift": "day"}, "a list of names"),
        ({"shift": ["day"]}, "two or more different names"),
        ({"shift": ["day", "day "]}, "two or more different names"),
        ({"shift": ["day", ""]}, "two or more different names"),
    ],
)
def test_levels_that_cannot_be_used_are_refused(levels: Any, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        read_levels(levels)


def test_bad_categories_are_refused_without_a_value() -> None:
    def refusal(**change: Any) -> str:
        with pytest.raises(BadInput) as refused:
            read({**PLAIN, **change}, [1.0, 2.0, 3.0, 5.0], {"miles": (0, 10)}, levels={"shift": ("day", "night")})
        return str(refused.value)

    assert "holds a level that is not declared in row 3" in refusal(month=[0.5, 1, 0, 1])
    assert "late" not in refusal(month=[0.5, 1, 0, 1])
    assert "a missing value in row 2" in refusal(shift=["day", None, "night", "day"])
    with pytest.raises(BadInput, match="levels names 'weekday', which is not one of the columns"):
        read(PLAIN, [1.0, 2.0, 3.0, 5.0], levels={"weekday": ("a", "b")})


def test_bounds_beside_levels_are_for_numbers_alone() -> None:
    names = ["miles", "shift=night"]
    levels = {"shift": ("day", "night")}
    assert with_dummies(None, names, levels) == {"miles": (-1.0, 1.0), "shift=night": (0.0, 1.0)}
    assert with_dummies((0, 9), names, levels)["miles"] == (0, 9)
    assert with_dummies((0, 9), names, {}) == (0, 9)
    with pytest.raises(BadInput, match="one pair for all numbers, or a mapping"):
        with_dummies([(0, 9), (0, 1)], names, levels)


def test_a_level_that_no_row_has_is_named() -> None:
    response = [1.0, 2.0, 3.0, 5.0, 4.0, 6.0]
    rows = {"miles": [2.0, 7.5, 4.0, 9.0, 1.0, 3.0], "shift": ["day", "night", "day", "day", "night", "day"]}
    for declared, said in (
        (("day", "night", "dawn"), "no row has the level 'dawn' of column 'shift': leave it out of levels"),
        (("dawn", "day", "night"), "leave it out of levels, so that another one is the base"),
    ):
        with pytest.raises(BadInput, match=said):
            read(rows, response, {"miles": (0, 10)}, levels={"shift": declared})
        # of a part of the people, nothing is asked about what is not there yet
        assert read(rows, response, {"miles": (0, 10)}, levels={"shift": declared}, collinear=False).rows.size == 6


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ({"miles": (0, 10), "shift": (0, 1)}, "bounds names 'shift', whose levels are declared and need no bounds"),
        ({"miles": (0, 10), "shift=night": (0, 1)}, "need no bounds; leave it out"),
        ({}, "bounds has no pair for 'miles'; give [(]low, high[)] for each column of numbers"),
    ],
)
def test_bounds_beside_levels_are_those_of_the_numbers(bounds: Any, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        with_dummies(bounds, ("miles", "shift=night"), {"shift": ("day", "night")})

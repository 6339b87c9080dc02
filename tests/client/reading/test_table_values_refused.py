"""Columns that hold no records are refused in one sentence that names the place, the row and the kind of value."""

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sottovoce.client.reading.table import read_values
from sottovoce.core.errors import BadInput

WHERE = "site 'north'"
TEXT = "every record must be a number, a duration, a date or one of ordered categories"
LONG = "holds a whole number too long for float64 in row 2: subtract a constant, or count in a coarser unit"


def refusal(column: Any, missing: str = "refuse") -> str:
    """Return the sentence with which a column is refused, after checking that it is one."""
    with pytest.raises(BadInput) as refused:
        read_values(column, where=WHERE, missing=missing)
    text = str(refused.value)
    assert text.startswith("Site 'north' ")
    assert "\n" not in text
    assert ". " not in text
    assert not text.endswith(".")
    return text


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ([1.0, "x"], f"holds text in row 2: {TEXT}"),
        ([None, "x"], f"holds text in row 2: {TEXT}"),
        (np.array([1.0, "x"], dtype=object), f"holds text in row 2: {TEXT}"),
        (np.array(["x"]), f"holds text in row 1: {TEXT}"),
        (pd.Series([1.0, "x"]), f"holds text in row 2: {TEXT}"),
        (pd.Series([None, "x"]), f"holds text in row 2: {TEXT}"),
        (pd.Series([1.5, "x"]).astype("category"), f"holds text in row 2: {TEXT}"),
        (pd.Series([2j]), f"holds a complex number in row 1: {TEXT}"),
        (pl.Series([None, "x"]), f"holds text in row 2: {TEXT}"),
        (pl.Series(["x"], dtype=pl.Categorical), f"holds text in row 1: {TEXT}"),
        (pa.array([None, "x"]), f"holds text in row 2: {TEXT}"),
        ([1.0, True], "holds a truth value in row 2: the rows before it hold numbers"),
        ([True, 1], "holds a number in row 2: the rows before it hold categories"),
        ([1.0, 2j], f"holds a complex number in row 2: {TEXT}"),
        (np.array([2j]), f"holds a complex number in row 1: {TEXT}"),
        ([[1, 2], [3, 4]], f"holds a list in row 1: {TEXT}"),
        ([1.0, object()], f"holds an object in row 2: {TEXT}"),
        ([np.timedelta64(1, "Y"), None], f"holds a timedelta64 in row 1: {TEXT}"),
        (pa.array([[1]]), f"holds a value of type list in row 1: {TEXT}"),
        (pl.Series([[1]]), f"holds a value of type large_list in row 1: {TEXT}"),
        (np.zeros(1, dtype=[("a", int)]), f"holds something that is no number in row 1: {TEXT}"),
        (pd.Series(pd.period_range("2013-01", periods=1, freq="M")), f"holds a Period in row 1: {TEXT}"),
        (np.zeros((2, 3)), "has 2 dimensions: give a one-dimensional array"),
        (np.zeros((2, 3), dtype=object), "has 2 dimensions: give a one-dimensional array"),
        (np.array(3.0), "has 0 dimensions: give a one-dimensional array"),
        (np.array([1], "m8[Y]"), "counts time in 'Y' steps, which have no fixed length: convert it to seconds"),
        (pd.DataFrame({"a": [1]}), "is a data frame: give one of its columns"),
        (pl.DataFrame({"a": [1]}), "is a data frame: give one of its columns"),
        (pa.table({"a": [1]}), "is a Table: give one column of records"),
        (3.0, "is a float: give a one-dimensional array of records"),
        ("abc", "is text: give a one-dimensional array of records"),
        ({1, 2}, "is a set: give a one-dimensional array of records"),
        ([1, 2**53 + 1], LONG),
        ([1.0, Decimal(1), 2**53 + 1], LONG.replace("row 2", "row 3")),
        (np.array([1, 2**53 + 1]), LONG),
        (np.array([1, 2**63 - 1]), LONG),
        (np.array([1, 2**64 - 1], dtype=np.uint64), LONG),
        (pd.Series([1, -(2**53) - 1]), LONG),
        (pl.Series([1, 2**53 + 1, None]), LONG),
        (pa.array([None, 2**53 + 1]), LONG),
        ([1, 10**400], LONG.replace("whole ", "")),
        ([1, dt.date(2013, 1, 1)], "holds a date in row 2: the rows before it hold numbers"),
        ([dt.date(2013, 1, 1), dt.datetime(2013, 1, 1)], "holds a date with a time in row 2: the rows before it hold"),
        (
            [dt.datetime(2013, 1, 1), dt.datetime(2013, 1, 1, tzinfo=dt.UTC)],
            "holds a time with a time zone, unlike others in row 2: give every row a time zone, or none",
        ),
    ],
)
def test_refusals_name_the_place_the_row_and_the_kind(column: Any, sentence: str) -> None:
    assert sentence in refusal(column, missing="drop")

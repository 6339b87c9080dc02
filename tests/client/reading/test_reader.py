"""Numbers of every sort become float64; truth values 0 and 1; everything else is refused with its row."""

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sottovoce.client.reading.column import NotNumbers
from sottovoce.client.reading.reader import open_column
from sottovoce.core.errors import BadInput

NAN = math.nan


def read(column: Any) -> list[float]:
    opened = open_column(column, "column 'hour' of X")
    numbers: list[float] = opened.chunk(0, opened.size).tolist()
    return numbers


NUMBERS: dict[str, tuple[Any, list[float]]] = {
    "floats": ([1.5, 2.0], [1.5, 2.0]),
    "mixed": (
        [1, 2.5, True, Decimal("0.5"), Fraction(1, 4), np.float32(3), np.int8(-1)],
        [1, 2.5, 1, 0.5, 0.25, 3, -1],
    ),
    "truth": ([True, False], [1.0, 0.0]),
    "numpy truth": (np.array([True, False]), [1.0, 0.0]),
    "truth objects": (np.array([np.True_, 2], dtype=object), [1.0, 2.0]),
    "numpy uint8": (np.array([250, 3], np.uint8), [250.0, 3.0]),
    "objects": (np.array([1, 2.5], dtype=object), [1.0, 2.5]),
    "pandas": (pd.Series([1, 2]), [1.0, 2.0]),
    "pandas truth": (pd.Series([True, False]), [1.0, 0.0]),
    "pandas objects": (pd.Series([1, Decimal("2.5")], dtype=object), [1.0, 2.5]),
    "pandas category of numbers": (pd.Series(pd.Categorical([3, 4, 3])), [3.0, 4.0, 3.0]),
    "polars": (pl.Series([1.5, 2.0]), [1.5, 2.0]),
    "polars truth": (pl.Series([True, False]), [1.0, 0.0]),
    "arrow": (pa.array([1, 2]), [1.0, 2.0]),
    "arrow truth": (pa.chunked_array([[True], [False]]), [1.0, 0.0]),
    "arrow decimals": (pa.array([Decimal("1.5")]), [1.5]),
    "arrow dictionary": (pa.array([7, 9, 7]).dictionary_encode(), [7.0, 9.0, 7.0]),
    "nothing": ([], []),
}


@pytest.mark.parametrize(("column", "numbers"), NUMBERS.values(), ids=NUMBERS)
def test_numbers_are_read(column: Any, numbers: list[float]) -> None:
    assert read(column) == numbers


MISSING: dict[str, Any] = {
    "objects": [1.0, None],
    "truth and None": [True, None],
    "pandas NA": [1, pd.NA],
    "pandas nullable": pd.Series(pd.array([1, None], dtype="Int64")),
    "pandas nullable truth": pd.Series(pd.array([True, None], dtype="boolean")),
    "polars": pl.Series([1, None]),
    "polars truth": pl.Series([True, None]),
    "arrow": pa.array([1, None]),
    "masked": np.ma.masked_array([1, 5], mask=[False, True]),
}


@pytest.mark.parametrize("column", MISSING.values(), ids=MISSING)
def test_what_is_missing_becomes_nan(column: Any) -> None:
    one, gone = read(column)
    assert one == 1.0
    assert math.isnan(gone)


def test_floats_are_not_copied() -> None:
    values = np.array([1.0, 2.0])
    for column in (values, pd.Series(values, copy=False), pa.array(values)):
        whole = open_column(column, "column 'hour' of X").whole
        assert whole is not None
        assert np.shares_memory(whole, values)


OTHERS: dict[str, tuple[Any, str, int]] = {
    "text": ([1, "two"], "text", 2),
    "numbers as text": (["1.5"], "text", 1),
    "text after a gap": ([None, "two"], "text", 2),
    "dict": ([1, 2, {"a": 1}], "a dict", 3),
    "date": ([dt.date(2020, 1, 1)], "a date", 1),
    "datetime": ([1, dt.datetime(2020, 1, 1)], "a datetime", 2),
    "duration": ([dt.timedelta(1)], "a timedelta", 1),
    "numpy date": (np.array(["2020-01-01"], "M8[D]"), "a date", 1),
    "numpy duration": (np.array([1], "m8[s]"), "a duration", 1),
    "numpy durations among objects": ([1, np.timedelta64(1, "s")], "a timedelta64", 2),
    "numpy text": (np.array(["a"]), "text", 1),
    "structure": (np.zeros(1, dtype=[("a", "f8")]), "a structure", 1),
    "pandas text": (pd.Series(["a"]), "text", 1),
    "pandas date": (pd.Series(pd.to_datetime(["2020-01-01"])), "a date or time", 1),
    "pandas period": (pd.Series(pd.period_range("2020-01", periods=1, freq="M")), "a Period", 1),
    "category": (pd.Series(pd.Categorical(["a"])), "text", 1),
    "polars text": (pl.Series([None, "a"]), "text", 2),
    "polars duration": (pl.Series([dt.timedelta(1)]), "a duration", 1),
    "arrow text": (pa.array([None, "a"]), "text", 2),
    "arrow lists": (pa.array([[1]]), "a value of type list", 1),
}


@pytest.mark.parametrize(("column", "kind", "row"), OTHERS.values(), ids=OTHERS)
def test_anything_else_is_refused(column: Any, kind: str, row: int) -> None:
    with pytest.raises(NotNumbers) as refused:
        read(column)
    text = str(refused.value)
    assert text.startswith(f"Column 'hour' of X holds {kind} in row {row}: ")
    assert "\n" not in text
    assert refused.value.__cause__ is None
    assert isinstance(refused.value, BadInput)


@pytest.mark.parametrize("column", [np.array([1j]), [1.0, 2j], pd.Series([1j]), [np.complex64(1)]])
def test_complex_numbers_are_refused(column: Any) -> None:
    with pytest.raises(BadInput, match="Complex data not supported: column 'hour' of X holds complex numbers"):
        read(column)


def test_what_is_no_column_is_refused() -> None:
    for value in ("text", 3, pa.table({"a": [1]})):
        with pytest.raises(BadInput, match="give a one-dimensional column of numbers"):
            read(value)


def test_a_whole_number_that_float64_would_change_is_refused() -> None:
    for column in (np.array([1, 2**53 + 1]), [1, 2**53 + 1], pa.array([1, 2**53 + 1])):
        with pytest.raises(BadInput, match="too long for float64 in row 2"):
            read(column)

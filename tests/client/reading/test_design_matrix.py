"""A table and a column become rows, or one sentence; scikit-learn's own checks would know the sentences."""

import re
import time
import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sottovoce.client.reading.design_matrix import read, read_features
from sottovoce.core.errors import BadInput

COLUMNS = {"miles": [2.0, 7.5, 4.0, 12.0], "night": [False, True, False, False]}
Y = [9.0, 20.0, 18.0, 31.0]
BOUNDS = {"miles": (0, 16), "night": (0, 1)}


def refusal(*given: Any, **options: Any) -> str:
    with pytest.raises(BadInput) as refused:
        read(*given, **options)
    return str(refused.value)


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_by_name(make: Any) -> None:
    result = read(make(COLUMNS), Y, BOUNDS)
    assert result.names == ("miles", "night")
    assert result.named
    assert result.clipped == 0
    assert result.rows.response().tolist() == Y
    assert result.rows.features().tolist() == [[-0.75, -1], [-0.0625, 1], [-0.5, -1], [0.5, -1]]
    assert repr(result.rows) == "Rows(4 records of 2 covariates, values hidden)"


def test_arrays_have_made_up_names() -> None:
    result = read(np.array([[0.5], [-0.25]]), [1, 2])
    assert (result.names, result.named, result.bounds.given) == (("x0",), False, False)
    assert read([[5.0], [7.0]], [1, 2], {"x0": (0, 10)}).rows.features().tolist() == [[0.0], [0.4]]


def test_clipped_rows_are_counted() -> None:
    result = read(COLUMNS, Y, (0, 10), clip=True)
    assert result.clipped == 1
    assert result.rows.features()[3, 0] == 1.0


def test_the_given_table_is_left_alone() -> None:
    table = np.array([[0.5, -1.0 - 1e-12], [3.0, 0.25], [0.1, 0.7]])
    before = table.copy()
    table.flags.writeable = False
    read(table, np.zeros(3), clip=True)
    assert np.array_equal(table, before)


def test_a_later_part_is_read_like_the_first() -> None:
    first = read(COLUMNS, Y, BOUNDS)
    same = {"miles": [3.0], "night": [True]}
    later = read(same, [5.0], first.bounds, names=first.names, p=2, collinear=False)
    assert later.bounds is first.bounds
    assert later.rows.size == 1
    with pytest.raises(BadInput, match="same order"):
        read(dict(reversed(same.items())), [5.0], first.bounds, names=first.names, p=2, collinear=False)
    with pytest.raises(BadInput, match="X has 1 features, but PrivateQuantileRegressor is expecting 2 features"):
        read([[3.0]], [5.0], first.bounds, names=None, p=2, collinear=False)


def test_constant_and_collinear_columns_are_refused_unless_told_otherwise() -> None:
    assert "'night' of X is constant" in refusal({**COLUMNS, "night": [1, 1, 1, 1]}, Y, BOUNDS)
    twice = {**COLUMNS, "km": [3.2, 12.0, 6.4, 19.2]}
    assert refusal(twice, Y, (0, 20)).startswith("columns 'miles' and 'km' are collinear")
    assert read(twice, Y, (0, 20), collinear=False).rows.p == 3


def test_as_many_columns_as_rows_are_left_to_the_gate() -> None:
    assert read(np.full((2, 2), 0.5), [1, 2]).rows.size == 2
    assert read([[0.5]], [1]).rows.size == 1


# What scikit-learn's checks (sklearn.utils.estimator_checks) look for in the errors.
SKLEARN: dict[str, tuple[Any, Any, str]] = {
    "check_requires_y_none": ([[1.0]], None, "requires y to be passed, but the target y is None"),
    "check_fit1d": ([0.1, 0.2], [1, 2], "Reshape your data"),
    "check_estimators_empty_data_messages": (
        np.empty((12, 0)),
        np.ones(12),
        r"0 feature\(s\) \(shape=\(\d*, 0\)\) while a minimum of \d* is required.",
    ),
    "empty": (np.empty((0, 3)), [], r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required."),
    "check_estimators_nan_inf": ([[np.nan], [0.0]], [1, 2], "NaN"),
    "infinite": ([[np.inf], [0.0]], [1, 2], "inf"),
    "check_complex_data": (np.ones((2, 1)) * 1j, [1, 2], "Complex data not supported"),
    "check_supervised_y_no_nan": ([[0.1], [0.2]], [np.nan, 1], "NaN"),
    "lengths": ([[0.1], [0.2]], [1], "inconsistent numbers of samples"),
}


@pytest.mark.parametrize(("table", "y", "pattern"), SKLEARN.values(), ids=SKLEARN)
def test_sentences_for_sklearn(table: Any, y: Any, pattern: str) -> None:
    text = refusal(table, y)
    assert re.search(pattern, text), text
    assert "\n" not in text


def test_a_column_vector_warns_as_the_caller_wishes() -> None:
    with pytest.warns(UserWarning, match="A column-vector y was passed"):
        read(COLUMNS, [[value] for value in Y], BOUNDS)
    texts: list[str] = []
    read(COLUMNS, [[value] for value in Y], BOUNDS, warn=texts.append)
    assert len(texts) == 1


def test_features_to_predict_for_are_raw() -> None:
    values = read_features(COLUMNS, ("miles", "night"), 2)
    assert values.tolist() == [[2.0, 0.0], [7.5, 1.0], [4.0, 0.0], [12.0, 0.0]]
    assert values.flags.c_contiguous
    assert read_features([[1e9, -5]], None, 2).tolist() == [[1e9, -5.0]]
    array = np.ones((3, 2))
    assert np.shares_memory(read_features(array, None, 2), array)


def test_features_to_predict_for_are_checked() -> None:
    for table, names, words in (
        ([[1.0, 2.0, 3.0]], None, "X has 3 features, but PrivateQuantileRegressor is expecting 2 features as input"),
        ([1.0, 2.0], None, "Reshape your data"),
        ([[1.0, np.nan]], None, "'x1' of X contains NaN in row 1"),
        ([[1.0, -np.inf]], None, "infinity"),
        ({"night": [np.nan], "miles": [1.0]}, ("miles", "night"), "Feature names must be in the same order"),
    ):
        with pytest.raises(BadInput, match=words):
            read_features(table, names, 2)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        read_features([[1.0, 2.0]], ("miles", "night"), 2)


def test_reading_takes_one_copy_and_little_time() -> None:
    n, p = 200_000, 4
    table = np.sin(np.arange(n * p, dtype=np.float64) ** 2).reshape(n, p)
    y = np.cos(np.arange(n, dtype=np.float64))
    tracemalloc.start()
    result = read(table, y, (-2, 2))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * table.nbytes
    assert np.shares_memory(result.rows.response(), y)
    begin = time.perf_counter()
    read(table, y, (-2, 2))
    # Measured: 4 ms; a loop over rows would take a second.
    assert time.perf_counter() - begin < 0.5

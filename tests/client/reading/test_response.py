"""One response a row, finite; a table of one column passes with a warning."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from sottovoce.client.reading.matrix import CHUNK, RESPONSE, open_response, read_response
from sottovoce.core.errors import BadInput


def read(y: Any, heard: list[str] | None = None) -> Any:
    told = [] if heard is None else heard
    values = read_response(open_response(y, RESPONSE, told.append), RESPONSE)
    assert heard is not None or not told
    return values


def refusal(y: Any) -> str:
    with pytest.raises(BadInput) as refused:
        read(y)
    text = str(refused.value)
    assert "\n" not in text
    assert refused.value.__cause__ is None
    return text


FLAT: dict[str, Any] = {
    "list": [1, 0, 2.5],
    "truth and numbers": [True, False, 2.5],
    "array": np.array([1, 0, 2.5]),
    "single": np.array([1, 0, 2.5], np.float32),
    "strided": np.array([1, 9, 0, 9, 2.5])[::2],
    "objects": np.array([1, 0, 2.5], dtype=object),
    "pandas": pd.Series([1, 0, 2.5], index=[5, 3, 1]),
    "pandas index": pd.Index([1, 0, 2.5]),
    "polars": pl.Series([1.0, 0.0, 2.5]),
    "arrow": pa.array([1, 0, 2.5]),
    "chunks": pa.chunked_array([[1.0], [0.0, 2.5]]),
}
TALL: dict[str, Any] = {
    "list": [[1], [0], [2.5]],
    "array": np.array([[1], [0], [2.5]]),
    "pandas": pd.DataFrame({"y": [1, 0, 2.5]}),
    "lazy": pl.LazyFrame({"y": [1.0, 0.0, 2.5]}),
    "arrow": pa.table({"y": [1, 0, 2.5]}),
}


@pytest.mark.parametrize("y", FLAT.values(), ids=FLAT)
def test_flat_responses(y: Any) -> None:
    values = read(y)
    assert values.tolist() == [1.0, 0.0, 2.5]
    assert values.dtype == np.float64
    assert values.flags.c_contiguous


@pytest.mark.parametrize("y", TALL.values(), ids=TALL)
def test_a_column_vector_is_read_with_a_warning(y: Any) -> None:
    heard: list[str] = []
    assert read(y, heard).tolist() == [1.0, 0.0, 2.5]
    (text,) = heard
    assert text.startswith("A column-vector y was passed when a 1d array was expected")


def test_floats_are_not_copied() -> None:
    y = np.array([1.0, 2.0])
    assert np.shares_memory(read(y), y)


def test_many_whole_numbers() -> None:
    assert np.array_equal(read(np.arange(CHUNK + 9)), np.arange(CHUNK + 9.0))


WORDS: dict[str, tuple[Any, str]] = {
    "two columns": (np.zeros((3, 2)), "has the shape (3, 2): y should be a 1d array"),
    "three dimensions": (np.zeros((3, 1, 1)), "has the shape (3, 1, 1)"),
    "a frame of two columns": (pd.DataFrame({"a": [1], "b": [2]}), "has the shape (1, 2)"),
    "a number": (3.0, "is a float"),
    "text": ("abc", "is text"),
    "a generator": ((value for value in [1.0]), "is a generator"),
    "a set": ({1.0}, "y should be a 1d array"),
    "ragged": ([[1], [2, 3]], "different lengths"),
    "sparse": (scipy.sparse.csr_matrix(np.ones((3, 1))), "y is a sparse matrix"),
    "complex": (np.array([1j]), "Complex data not supported"),
    "labels": (["a", "b"], "The response y holds text in row 1"),
    "a label": ([1.0, "b"], "The response y holds text in row 2"),
    "dates": (pd.date_range("2020-01-01", periods=2), "The response y holds a date"),
    "NaN": ([1.0, np.nan, 2.0, None], "The response y contains NaN in 2 rows, the first of them row 2"),
    "infinity": ([1.0, -np.inf], "The response y contains infinity in row 2"),
    "both": ([np.inf, np.nan], "The response y contains NaN in row 2"),
}


@pytest.mark.parametrize(("y", "words"), WORDS.values(), ids=WORDS)
def test_other_responses_are_refused(y: Any, words: str) -> None:
    assert words in refusal(y)

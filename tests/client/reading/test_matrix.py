"""Tables of every make give the same rows; tables of no such shape are refused in one sentence."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from sottovoce.client.reading.matrix import CHUNK, open_matrix
from sottovoce.core.errors import BadInput

ROWS = [[1.0, 0.0], [2.5, 1.0], [4.0, 1.0]]
ARRAY = np.array(ROWS)
COLUMNS: dict[str, list[Any]] = {"miles": [1.0, 2.5, 4.0], "night": [False, True, True]}


class Shy:
    """Something that is no array, but can become one, and does not take part in numpy's functions."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return ARRAY

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        raise TypeError("not for me")


def refusal(table: Any) -> str:
    with pytest.raises(BadInput) as refused:
        open_matrix(table)
    assert refused.value.__cause__ is None
    assert "\n" not in str(refused.value)
    return str(refused.value)


NAMED: dict[str, Any] = {
    "pandas": pd.DataFrame(COLUMNS),
    "pandas, of one type": pd.DataFrame(ARRAY, columns=["miles", "night"]),
    "polars": pl.DataFrame(COLUMNS),
    "lazy": pl.LazyFrame(COLUMNS),
    "arrow": pa.table(COLUMNS),
    "batch": pa.record_batch(COLUMNS),
    "mapping": COLUMNS,
    "mapping of series": {"miles": pd.Series(COLUMNS["miles"]), "night": pl.Series(COLUMNS["night"])},
}
NAMELESS: dict[str, Any] = {
    "array": ARRAY,
    "Fortran": np.asfortranarray(ARRAY),
    "read-only": np.frombuffer(ARRAY.tobytes()).reshape(3, 2),
    "single": ARRAY.astype(np.float32),
    "big-endian": ARRAY.astype(">f8"),
    "strided": np.repeat(ARRAY, 2, axis=0)[::2],
    "objects": ARRAY.astype(object),
    "list": ROWS,
    "list of arrays": list(ARRAY),
    "tuple": tuple(map(tuple, ROWS)),
    "matrix": ARRAY.view(np.matrix),
    "masked": np.ma.masked_array(ARRAY),
    "shy": Shy(),
    "pandas with numbers for names": pd.DataFrame(ARRAY),
    "pandas with two levels of names": pd.DataFrame(ARRAY, columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])),
}


@pytest.mark.parametrize("table", NAMED.values(), ids=NAMED)
def test_tables_with_names(table: Any) -> None:
    matrix = open_matrix(table)
    assert (matrix.n, matrix.p, matrix.names, matrix.named) == (3, 2, ("miles", "night"), True)
    assert matrix.chunk(0, 3).tolist() == ROWS
    assert matrix.chunk(1, 3).tolist() == ROWS[1:]


@pytest.mark.parametrize("table", NAMELESS.values(), ids=NAMELESS)
def test_tables_without_names(table: Any) -> None:
    matrix = open_matrix(table)
    assert (matrix.n, matrix.p, matrix.names, matrix.named) == (3, 2, ("x0", "x1"), False)
    assert matrix.chunk(0, 3).tolist() == ROWS
    assert matrix.chunk(0, 3).flags.c_contiguous


@pytest.mark.parametrize("table", [ARRAY.astype(np.int64), ARRAY.astype(np.int8), ARRAY.astype(bool)])
def test_whole_numbers_and_truth_values(table: Any) -> None:
    assert open_matrix(table).chunk(0, 3).tolist() == table.astype(float).tolist()


def test_one_column_of_a_frame_is_a_table_of_one_column() -> None:
    assert open_matrix(pd.Series([1, 2], name="miles")).names == ("miles",)
    assert open_matrix(pl.Series("miles", [1, 2])).chunk(0, 2).tolist() == [[1.0], [2.0]]
    assert not open_matrix(pd.Series([1, 2])).named


def test_an_array_of_floats_in_order_is_not_copied() -> None:
    whole = open_matrix(ARRAY).whole
    assert whole is not None
    assert np.shares_memory(whole, ARRAY)
    assert open_matrix(np.asfortranarray(ARRAY)).whole is None


def test_a_long_stretch_of_columns_is_whole() -> None:
    column = np.arange(CHUNK + 10.0)
    assert np.array_equal(open_matrix({"a": column}).chunk(0, CHUNK + 10)[:, 0], column)


WORDS: dict[str, tuple[Any, str]] = {
    "one dimension": ([1.0, 2.0], "Expected 2D array, got 1D array instead. Reshape your data"),
    "one dimension of text": (["a", "b"], "Reshape your data"),
    "no dimension": (np.array(1.0), "Expected 2D array, got scalar array instead"),
    "three dimensions": (np.zeros((2, 2, 2)), "dim 3"),
    "no rows": (np.empty((0, 3)), "Found array with 0 sample(s) (shape=(0, 3)) while a minimum of 1 is required."),
    "no rows in a frame": (pd.DataFrame({"a": []}), "0 sample(s) (shape=(0, 1))"),
    "no columns": (np.empty((12, 0)), "0 feature(s) (shape=(12, 0)) while a minimum of 1 is required."),
    "no columns in a frame": (pd.DataFrame(index=range(12)), "0 feature(s) (shape=(12, 0))"),
    "no columns in a mapping": ({}, "0 feature(s)"),
    "ragged": ([[1, 2], [3]], "different lengths"),
    "ragged columns": ({"a": [1, 2], "b": [3]}, "column 'a' of X has 2 rows and column 'b' of X has 1"),
    "text in a list": ([[1, 2], [3, "four"]], "Column 'x1' of X holds text in row 2"),
    "complex": (ARRAY + 1j, "Complex data not supported"),
    "complex in a list": ([[1, 2j]], "Complex data not supported"),
    "sparse": (scipy.sparse.csr_matrix(ARRAY), "sparse data is not supported"),
    "sparse array": (scipy.sparse.coo_array(ARRAY), "sparse data is not supported"),
    "nothing": (None, "X is None"),
    "text": ("table", "X is text"),
    "a number": (3, "X is an int"),
    "names of two kinds": (pd.DataFrame(ARRAY, columns=["a", 1]), "make all their names text"),
    "a name twice": (pd.DataFrame(ARRAY, columns=["a", "a"]), "two columns of one name"),
}


@pytest.mark.parametrize(("table", "words"), WORDS.values(), ids=WORDS)
def test_other_shapes_are_refused(table: Any, words: str) -> None:
    assert words in refusal(table)


def test_an_object_among_numbers_is_a_type_error_too() -> None:
    # the words that scikit-learn's check_dtype_object looks for
    table = ARRAY.astype(object)
    table[0, 0] = {"foo": "bar"}
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
        open_matrix(table)

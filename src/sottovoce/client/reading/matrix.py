"""A table of covariates before it is checked: its shape, its names, and any stretch of its rows as float64."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
from narwhals.exceptions import NarwhalsError

from sottovoce.client.reading.column import Column
from sottovoce.client.reading.complaint import kind_of
from sottovoce.client.reading.number_column import NotNumbers, complex_refused, open_numbers
from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput

STRETCH = 1 << 14

_TABLE = "give a table with a row for each record and a column for each covariate"


def place(name: str) -> str:
    """Name a covariate in a sentence."""
    return f"column {name!r} of X"


@dataclass(frozen=True, repr=False, eq=False)
class Matrix:
    """A source of rows: `stretch(start, stop)` reads some, until the next call; `whole` is set when none need be read.

    `named` tells whether the names came with the data; `place` names a column in a sentence.
    """

    n: int
    names: tuple[str, ...]
    named: bool
    stretch: Callable[[int, int], Floats]
    whole: Floats | None = None
    place: Callable[[str], str] = place

    @property
    def p(self) -> int:
        """Return the number of columns."""
        return len(self.names)


def open_matrix(table: Any) -> Matrix:
    """Find the reader for a table of covariates.

    Parameters
    ----------
    table
        A two-dimensional numpy array, a list of rows, a data frame of pandas or polars, an Arrow table, one of their
        columns, or a mapping from name to column. An array of float64 in C order is not copied.

    Examples
    --------
    >>> matrix = open_matrix({"distance": [3, 5], "night": [True, False]})
    >>> matrix.n, matrix.names, matrix.stretch(0, 2).tolist()
    (2, ('distance', 'night'), [[3.0, 1.0], [5.0, 0.0]])
    """
    refuse_sparse(table, "X")
    if isinstance(table, np.ndarray):
        return _from_array(table)
    if isinstance(table, Mapping):
        return from_columns(list(table), list(table.values()))
    if type(table).__name__ == "RecordBatch" and type(table).__module__.startswith("pyarrow"):
        return from_columns(table.schema.names, table.columns)
    try:
        frame = nw.from_native(table, allow_series=True, pass_through=True)
        if isinstance(frame, nw.LazyFrame):
            frame = frame.collect()
        if isinstance(frame, nw.DataFrame):
            labels = frame.columns
            if not labels:
                raise _too_few("feature", (len(frame), 0))
            return from_columns(labels, [column.to_native() for column in frame.iter_columns()])
    except NarwhalsError:
        raise BadInput("X has two columns of one name: rename one of them") from None
    if isinstance(frame, nw.Series):
        return from_columns([frame.name], [table])
    if isinstance(table, Sequence) and not isinstance(table, str | bytes | bytearray | memoryview):
        return _from_rows(table)
    if hasattr(table, "__array__"):
        return _from_array(np.asarray(table))
    raise BadInput(f"X is {'None' if table is None else kind_of(table)}: {_TABLE}")


def from_columns(
    labels: Sequence[object], columns: Sequence[Any], where: Callable[[str], str] = place, *, named: bool = True
) -> Matrix:
    """Read a table given column by column; labels that are not text are no names, as in scikit-learn."""
    kinds = {isinstance(label, str) for label in labels}
    if len(kinds) > 1:
        raise NotNumbers("some columns of X have names that are text and some have not: make all their names text")
    names = tuple(str(label) for label in labels) if kinds == {True} else _generated(len(labels))
    if not names:
        raise _too_few("feature", (0, 0))
    opened = [open_numbers(column, where(name)) for name, column in zip(names, columns, strict=True)]
    n = opened[0].size
    for name, column in zip(names, opened, strict=True):
        if column.size != n:
            raise BadInput(
                f"{where(names[0])} has {n:,} rows and {where(name)} has {column.size:,}: give columns of one length"
            )
    buffer = np.empty((min(n, STRETCH), len(names)))

    def stretch(start: int, stop: int) -> Floats:
        block = buffer[: stop - start] if stop - start <= buffer.shape[0] else np.empty((stop - start, len(names)))
        for at, column in enumerate(opened):
            block[:, at] = _rows_of(column, start, stop)
        return block

    return _checked(Matrix(n, names, named and kinds == {True}, stretch, place=where))


def _rows_of(column: Column, start: int, stop: int) -> Floats:
    """Read some rows of a column."""
    return column.stretch(start, stop) if column.whole is None else column.whole[start:stop]


def _from_rows(rows: Sequence[Any]) -> Matrix:
    """Read a list of rows."""
    try:
        array = np.asarray(rows)
        # Among texts numpy would turn numbers into text; the columns must be looked at one by one.
        return _from_array(np.asarray(rows, dtype=object) if array.dtype.kind in "SUO" else array)
    except ValueError as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput("the rows of X have different lengths: give every row as many numbers as the first") from None


def _from_array(array: npt.NDArray[Any]) -> Matrix:
    """Read a numpy array of two dimensions."""
    if array.ndim != 2:
        if array.ndim > 2:
            raise BadInput(f"Found array with dim {array.ndim}, while dim 2 is required: {_TABLE}")
        # scikit-learn's words: check_estimator looks for them
        raise BadInput(
            f"Expected 2D array, got {'1D' if array.ndim else 'scalar'} array instead. Reshape your data with "
            "X.reshape(-1, 1) if it is one covariate, or X.reshape(1, -1) if it is one record"
        )
    n, p = array.shape
    if not p:
        raise _too_few("feature", (n, p))
    kind = array.dtype.kind
    if kind == "c":
        raise complex_refused("X")
    if kind not in "fb" or isinstance(array, np.ma.MaskedArray):
        return from_columns(_generated(p), [array[:, column] for column in range(p)], named=False)
    array = array.view(np.ndarray)

    def stretch(start: int, stop: int) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.ascontiguousarray(array[start:stop], dtype=np.float64)

    matrix = _checked(Matrix(n, _generated(p), False, stretch))
    ready = array.dtype == np.float64 and array.flags.c_contiguous
    return replace(matrix, whole=array) if ready else matrix


def refuse_sparse(table: Any, where: str) -> None:
    """Refuse a sparse matrix, in a word that scikit-learn's check_estimator looks for."""
    if type(table).__module__.startswith(("scipy.sparse", "sparse")):
        raise NotNumbers(f"{where} is a sparse matrix, and sparse data is not supported: give {where}.toarray()")


def _checked(matrix: Matrix) -> Matrix:
    """Return a table, unless it has no rows."""
    if not matrix.n:
        raise _too_few("sample", (0, matrix.p))
    return matrix


def _too_few(noun: str, shape: tuple[int, int]) -> BadInput:
    """Refuse an empty table, in the words that scikit-learn's check_estimator looks for."""
    return BadInput(f"Found array with 0 {noun}(s) (shape={shape}) while a minimum of 1 is required.")


def _generated(p: int) -> tuple[str, ...]:
    """Name columns that have no names, as scikit-learn does."""
    return tuple(f"x{column}" for column in range(p))

"""The covariates and responses of a regression before they are checked: shape, names, any chunk of rows as float64."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
from narwhals.exceptions import NarwhalsError

from sottovoce.client.reading.categories import coded
from sottovoce.client.reading.column import NUMBERS, Column, NotNumbers, complex_refused
from sottovoce.client.reading.reader import collected, open_column
from sottovoce.core.arrays import Floats
from sottovoce.core.categories import Levels
from sottovoce.core.checks import how_often, kind_of, sentence
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import hides, quoted

CHUNK = 1 << 14  # rows
RESPONSE = "the response y"

Warn = Callable[[str], None]

DECLARE = (
    "every argument must be neither a string nor a date but a number: declare the levels of categories, which are "
    "public, with levels="
)
_FLAT = "y should be a 1d array, with one response a row"
_TABLE = "give a table with a row for each record and a column for each covariate"


def place(name: str) -> str:
    """Name a covariate in a sentence."""
    return f"column {quoted(name)} of X"


@dataclass(frozen=True, repr=False, eq=False)
class Matrix:
    """A source of rows: `read(start, stop)` reads some, until the next call; `whole` is set when none need be read.

    `named` tells whether the names came with the data; `place` names a column in a sentence.
    """

    n: int
    names: tuple[str, ...]
    named: bool
    read: Callable[[int, int], Floats]
    whole: Floats | None = None
    place: Callable[[str], str] = place

    @property
    def p(self) -> int:
        """Return the number of columns."""
        return len(self.names)

    def chunk(self, start: int, stop: int) -> Floats:
        """Return some rows, until the next call."""
        return self.read(start, stop) if self.whole is None else self.whole[start:stop]


def open_matrix(table: Any, levels: Levels | None = None) -> Matrix:
    """Find the reader for a table of covariates.

    It is a two-dimensional numpy array, a list of rows, a data frame of pandas or polars, an Arrow table, one of their
    columns, or a mapping from name to column. An array of float64 in C order is not copied. Columns of categories
    become columns of 0 and 1 by their declared ``levels``.

    >>> matrix = open_matrix({"distance": [3, 5], "night": [True, False]})
    >>> matrix.n, matrix.names, matrix.chunk(0, 2).tolist()
    (2, ('distance', 'night'), [[3.0, 1.0], [5.0, 0.0]])
    """
    refuse_sparse(table, "X")
    if isinstance(table, np.ndarray):
        return _from_array(table, levels)
    if isinstance(table, Mapping):
        return from_columns(list(table), list(table.values()), levels=levels)
    if type(table).__name__ == "RecordBatch" and type(table).__module__.startswith("pyarrow"):
        return from_columns(table.schema.names, table.columns, levels=levels)
    try:
        frame = nw.from_native(table, allow_series=True, pass_through=True)
        if isinstance(frame, nw.LazyFrame):
            frame = collected(frame, "X")
        if isinstance(frame, nw.DataFrame):
            labels = frame.columns
            if not labels:
                raise _too_few("feature", (len(frame), 0))
            return from_columns(labels, [column.to_native() for column in frame.iter_columns()], levels=levels)
    except NarwhalsError:
        raise BadInput("X has two columns of one name: rename one of them") from None
    if isinstance(frame, nw.Series):
        return from_columns([frame.name], [table], levels=levels)
    if isinstance(table, Sequence) and not isinstance(table, str | bytes | bytearray | memoryview):
        return _from_rows(table, levels)
    if hasattr(table, "__array__"):
        return _from_array(np.asarray(table), levels)
    raise BadInput(f"X is {'None' if table is None else kind_of(table)}: {_TABLE}")


def from_columns(
    labels: Sequence[object],
    columns: Sequence[Any],
    where: Callable[[str], str] = place,
    *,
    named: bool = True,
    levels: Levels | None = None,
) -> Matrix:
    """Read a table given column by column; labels that are not text are no names, as in scikit-learn."""
    kinds = {isinstance(label, str) for label in labels}
    if len(kinds) > 1:
        raise NotNumbers("some columns of X have names that are text and some have not: make all their names text")
    names = tuple(str(label) for label in labels) if kinds == {True} else _generated(len(labels))
    if not names:
        raise _too_few("feature", (0, 0))
    if any(map(hides, names)):
        raise BadInput("a column of X has a control or invisible character in its name: rename it")
    if levels:
        names, columns = coded(names, columns, levels, where)
    opened = _opened(names, columns, where)
    n = opened[0].size
    for name, column in zip(names, opened, strict=True):
        if column.size != n:
            raise BadInput(
                f"{where(names[0])} has {n:,} rows and {where(name)} has {column.size:,}: give columns of one length"
            )
    buffer = np.empty((min(n, CHUNK), len(names)))

    def read(start: int, stop: int) -> Floats:
        block = buffer[: stop - start] if stop - start <= buffer.shape[0] else np.empty((stop - start, len(names)))
        for at, column in enumerate(opened):
            block[:, at] = column.chunk(start, stop)
        return block

    return _checked(Matrix(n, names, named and kinds == {True}, read, place=where))


def _opened(names: Sequence[str], columns: Sequence[Any], where: Callable[[str], str]) -> list[Column]:
    """Find the readers of all columns; those that hold text are refused together."""
    found, texts = [], []
    for name, column in zip(names, columns, strict=True):
        try:
            found.append(open_column(column, where(name)))
        except NotNumbers as refusal:
            if " holds text in row " not in str(refusal):
                raise
            texts.append((name, refusal))
    if texts:
        first = str(texts[0][1]).removesuffix(NUMBERS.rule)
        more = f" (and so do {', '.join(repr(name) for name, _ in texts[1:])})" if len(texts) > 1 else ""
        raise NotNumbers(f"{first.rstrip(': ')}{more}: {DECLARE}")
    return found


def _from_rows(rows: Sequence[Any], levels: Levels | None = None) -> Matrix:
    """Read a list of rows."""
    try:
        array = np.asarray(rows)
        # Among texts numpy would turn numbers into text; the columns must be looked at one by one.
        return _from_array(np.asarray(rows, dtype=object) if array.dtype.kind in "SUO" else array, levels)
    except ValueError as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput("the rows of X have different lengths: give every row as many numbers as the first") from None


def _from_array(array: npt.NDArray[Any], levels: Levels | None = None) -> Matrix:
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
    if kind not in "fb" or isinstance(array, np.ma.MaskedArray) or levels:
        return from_columns(_generated(p), [array[:, column] for column in range(p)], named=False, levels=levels)
    array = array.view(np.ndarray)

    def read(start: int, stop: int) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.ascontiguousarray(array[start:stop], dtype=np.float64)

    matrix = _checked(Matrix(n, _generated(p), False, read))
    ready = array.dtype == np.float64 and array.flags.c_contiguous
    return replace(matrix, whole=array) if ready else matrix


def open_response(y: Any, where: str, warn: Warn) -> Column:
    """Find the reader for a column of responses.

    A table of one column is read as that column, with a warning that is told to ``warn``.

    >>> open_response([[9], [20]], RESPONSE, print).size
    A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), for \
example using ravel().
    2
    """
    refuse_sparse(y, "y")
    frame = nw.from_native(y, allow_series=True, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = collected(frame, where)
    if isinstance(frame, nw.DataFrame):
        _check_flat(frame.shape, where, warn)
        return open_column(next(frame.iter_columns()).to_native(), where)
    if isinstance(frame, nw.Series) or type(y).__module__.partition(".")[0] == "pyarrow":
        return open_column(y, where)
    array = y if isinstance(y, np.ndarray) else _array(y, where)
    if array.ndim == 1:
        return open_column(array, where)
    _check_flat(array.shape, where, warn)
    return open_column(array[:, 0], where)


def read_response(column: Column, where: str) -> Floats:
    """Read all responses, refusing missing and infinite ones; a contiguous array of float64 is not copied."""
    values = column.whole if column.whole is not None else np.empty(column.size)
    for start, chunk in column.chunks(CHUNK) if column.whole is None else ():
        values[start : start + chunk.size] = chunk
    if np.isfinite(values.min()) and np.isfinite(values.max()):
        return values
    kind, bad = "NaN", np.isnan(values)
    if not bad.any():
        kind, bad = "infinity", np.isinf(values)
    rows = how_often(int(np.count_nonzero(bad)), int(bad.argmax()))
    raise sentence(where, f"contains {kind} in {rows}: remove those rows")


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


def _check_flat(shape: tuple[int, ...], where: str, warn: Warn) -> None:
    """Refuse a table of responses with more than one column."""
    if len(shape) != 2 or shape[1] != 1:
        raise sentence(where, f"has the shape {shape}: {_FLAT}")
    # scikit-learn's words: check_estimator looks for them
    warn(
        "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), for "
        "example using ravel()."
    )


def _array(y: Any, where: str) -> Any:
    """Turn a list, or whatever gives an array, into one; among texts numpy would turn numbers into text."""
    if isinstance(y, str | bytes) or not (hasattr(y, "__len__") or hasattr(y, "__array__")):
        raise sentence(where, f"is {kind_of(y)}: {_FLAT}")
    try:
        array = np.asarray(y)
        return np.asarray(y, dtype=object) if array.dtype.kind in "SUO" else array
    except ValueError:
        raise sentence(where, f"holds lists of different lengths: {_FLAT}") from None

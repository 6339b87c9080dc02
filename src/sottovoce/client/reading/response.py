"""The responses of a regression: one column of finite numbers."""

from collections.abc import Callable
from typing import Any

import narwhals as nw
import numpy as np

from sottovoce.client.reading.column import Column
from sottovoce.client.reading.complaint import kind_of, sentence
from sottovoce.client.reading.matrix import STRETCH, refuse_sparse
from sottovoce.client.reading.number_column import open_numbers
from sottovoce.client.reading.scaling import how_often
from sottovoce.core.arrays import Floats

RESPONSE = "the response y"

Warn = Callable[[str], None]

_FLAT = "y should be a 1d array, with one response a row"


def open_response(y: Any, where: str, warn: Warn) -> Column:
    """Find the reader for a column of responses.

    Parameters
    ----------
    y
        A one-dimensional array-like of numbers. A table of one column is read as that column, with a warning.
    where
        What the column is called in a sentence.
    warn
        Is told the text of the warning.

    Examples
    --------
    >>> open_response([[9], [20]], RESPONSE, print).size
    A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), for \
example using ravel().
    2
    """
    refuse_sparse(y, "y")
    frame = nw.from_native(y, allow_series=True, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, nw.DataFrame):
        _check_flat(frame.shape, where, warn)
        return open_numbers(next(frame.iter_columns()).to_native(), where)
    if isinstance(frame, nw.Series) or type(y).__module__.partition(".")[0] == "pyarrow":
        return open_numbers(y, where)
    array = y if isinstance(y, np.ndarray) else _array(y, where)
    if array.ndim == 1:
        return open_numbers(array, where)
    _check_flat(array.shape, where, warn)
    return open_numbers(array[:, 0], where)


def read_response(column: Column, where: str) -> Floats:
    """Read all responses, refusing missing and infinite ones; a contiguous array of float64 is not copied."""
    values = column.whole if column.whole is not None else np.empty(column.size)
    for start in range(0, column.size, STRETCH) if column.whole is None else ():
        stop = min(start + STRETCH, column.size)
        values[start:stop] = column.stretch(start, stop)
    if np.isfinite(values.min()) and np.isfinite(values.max()):
        return values
    kind, bad = "NaN", np.isnan(values)
    if not bad.any():
        kind, bad = "infinity", np.isinf(values)
    rows = how_often(int(np.count_nonzero(bad)), int(bad.argmax()))
    raise sentence(where, f"contains {kind} in {rows}: remove those rows")


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

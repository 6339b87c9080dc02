"""A column of numbers for a regression: truth values count as 0 and 1; text, dates and other objects are refused."""

import numbers
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from sottovoce.client.reading.column import Column, from_numpy
from sottovoce.client.reading.complaint import bad_row, kind_of, sentence
from sottovoce.client.reading.objects import from_objects, is_missing
from sottovoce.core.errors import BadInput

# The words "argument must be ... string ... number" are those that scikit-learn's check_estimator looks for.
NUMBERS = "every argument must be neither a string nor a date but a number, so code it as numbers first"
_KINDS = {"M": "a date", "m": "a duration", "S": "text", "U": "text", "T": "text"}


class NotNumbers(BadInput, TypeError):
    """A column of something else than numbers; scikit-learn's convention wants a TypeError, ours a BadInput."""


def open_numbers(column: Any, where: str) -> Column:
    """Find the reader for a column of numbers.

    Parameters
    ----------
    column
        A one-dimensional array-like: numpy (masked too), list, Arrow, pandas or polars; of numbers, decimals or truth
        values. A column of float64 with nothing missing is not copied.
    where
        The column, as the sentence of a refusal names it: "column 'hour' of X".

    Returns
    -------
    The column, read as float64 stretch by stretch, with NaN where a value is missing.

    Examples
    --------
    >>> open_numbers([3, True, None], "column 'hour' of X").stretch(0, 3)
    array([ 3.,  1., nan])
    >>> open_numbers([3, "four"], "column 'hour' of X")
    Traceback (most recent call last):
    sottovoce.client.reading.number_column.NotNumbers: Column 'hour' of X holds text in row 2: every argument must be \
neither a string nor a date but a number, so code it as numbers first
    """
    if isinstance(column, np.ndarray):
        return _from_array(column, where)
    if type(column).__module__.partition(".")[0] == "pyarrow":
        return _from_arrow(column, where)
    series = nw.from_native(column, allow_series=True, pass_through=True)
    if isinstance(series, nw.Series):
        return _from_series(series, where)
    if isinstance(column, Sequence) and not isinstance(column, str | bytes | bytearray | memoryview):
        return _from_objects(column, where)
    if hasattr(column, "__array__"):
        return _from_array(np.asarray(column), where)
    raise sentence(where, f"is {kind_of(column)}: give a one-dimensional column of numbers")


def complex_refused(where: str) -> BadInput:
    """Refuse complex numbers, in the words that scikit-learn's check_estimator looks for."""
    return BadInput(f"Complex data not supported: {where} holds complex numbers, so give their parts as real numbers")


def _from_array(array: npt.NDArray[Any], where: str) -> Column:
    """Read a numpy array."""
    kind = array.dtype.kind
    if kind == "O" and array.ndim == 1:
        return _from_objects(array.tolist(), where)
    if kind == "c":
        raise complex_refused(where)
    if kind in _KINDS or kind == "V":
        raise _not_numbers(where, 0, _KINDS.get(kind, "a structure"))
    return from_numpy(array.astype(np.uint8) if kind == "b" else array, where)


def _from_series(series: "nw.Series[Any]", where: str) -> Column:
    """Read a pandas or polars column with as little copying as its type allows."""
    dtype = series.dtype
    if dtype in (nw.Object, nw.Unknown):
        return _from_objects(series.to_list(), where)
    if series.implementation.is_pandas_like() and dtype.is_numeric() and dtype != nw.Decimal:
        array = series.to_numpy() if dtype in (nw.Float64, nw.Float32) or not series.null_count() else None
        if array is not None and array.dtype.kind in "iuf":
            return from_numpy(array, where)
    try:
        arrow = series.to_arrow()
    except (TypeError, ValueError, NotImplementedError):  # Arrow's errors among them; their texts show values
        return _from_objects(series.to_list(), where)
    return _from_arrow(arrow, where)


def _from_arrow(column: Any, where: str) -> Column:
    """Read an Arrow column."""
    import pyarrow as pa

    from sottovoce.client.reading.arrow_column import from_arrow

    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    if not isinstance(column, pa.ChunkedArray):
        raise sentence(where, f"is {kind_of(column)}: give a one-dimensional column of numbers")
    types = pa.types
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    of = column.type
    if types.is_boolean(of):
        return from_arrow(column.cast(pa.uint8()), where)
    if types.is_integer(of) or types.is_floating(of) or types.is_decimal(of) or types.is_null(of):
        return from_arrow(column, where)
    if str(of) in ("string", "large_string", "string_view"):
        kind = "text"
    elif types.is_temporal(of):
        kind = "a duration" if types.is_duration(of) else "a date or time"
    else:
        kind = f"a value of type {str(of).split('<')[0].split('[')[0]}"
    raise _not_numbers(where, next((row for row in range(len(column)) if column[row].is_valid), 0), kind)


def _from_objects(objects: Sequence[Any], where: str) -> Column:
    """Read Python objects: numbers of every sort, truth values, None and its like."""
    if any(not _numeric(kind) for kind in set(map(type, objects))):
        for row, value in enumerate(objects):
            if not (_numeric(type(value)) or is_missing(value)):
                if isinstance(value, complex | np.complexfloating):
                    raise complex_refused(where)
                raise _not_numbers(where, row, kind_of(value))
    if not objects:
        return from_numpy(np.empty(0), where)
    if not {bool, np.bool_}.isdisjoint(map(type, objects)):
        objects = [int(value) if isinstance(value, bool | np.bool_) else value for value in objects]
    return from_objects(objects, where)


def _numeric(kind: type) -> bool:
    """Tell whether values of a type are numbers or truth values."""
    # numpy's durations call themselves signed integers
    return issubclass(kind, numbers.Real | Decimal | np.bool_) and not issubclass(kind, np.timedelta64)


def _not_numbers(where: str, row: int, kind: str) -> NotNumbers:
    """Say that a row, counted here from 0, holds something else than a number."""
    return NotNumbers(str(bad_row(where, row, kind, NUMBERS)))

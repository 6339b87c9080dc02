"""A column before it is checked: its unit, its length, and any stretch of it as float64 with NaN where it is missing.

Reading by stretches keeps the memory beside the data constant, whatever the source.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sottovoce.client.reading.complaint import KINDS, bad_row, sentence
from sottovoce.core.arrays import Floats
from sottovoce.core.unit import NUMBER, Unit

_DATES = ("Y", "M", "W", "D")
_TIMES = ("h", "m", "s", "ms", "us", "ns")
_OTHERS = {"b": "a truth value", "c": "a complex number", "S": "text", "U": "text", "T": "text"}
_EXACT = 2.0**53


@dataclass(frozen=True, repr=False, eq=False)
class Column:
    """A source of float64: `stretch(start, stop)` reads rows; `whole` is set when no reading is needed."""

    unit: Unit
    size: int
    stretch: Callable[[int, int], Floats]
    whole: Floats | None = None


def exact_floats(values: npt.NDArray[Any], where: str, start: int) -> Floats:
    """Turn whole numbers into float64, refusing one that float64 would change."""
    floats = values.astype(np.float64)
    if values.dtype.itemsize < 8 or not values.size or max(-floats.min(), floats.max()) < _EXACT:
        return floats
    limit = 2.0 ** (63 if values.dtype.kind == "i" else 64)
    changed = (floats >= limit) | (np.where(floats >= limit, 0.0, floats).astype(values.dtype) != values)
    if changed.any():
        row = start + int(changed.argmax())
        raise bad_row(
            where, row, "a whole number too long for float64", "subtract a constant, or count in a coarser unit"
        )
    return floats


def from_numpy(array: npt.NDArray[Any], where: str) -> Column:
    """Read a numpy array of numbers, datetime64 or timedelta64, masked or not."""
    if array.ndim != 1:
        raise sentence(where, f"has {array.ndim} dimensions: give a one-dimensional array")
    kind = array.dtype.kind
    mask: npt.NDArray[np.bool_] | None = None
    if isinstance(array, np.ma.MaskedArray):
        mask = None if array.mask is np.ma.nomask else np.ma.getmaskarray(array)
        array = np.ma.getdata(array)
    array = array.view(np.ndarray)
    unit = NUMBER
    if kind in "mM":
        unit = _time_unit(array.dtype, where)
    elif kind not in "iuf":
        raise bad_row(where, 0, _OTHERS.get(kind, "something that is no number"), KINDS)

    def stretch(start: int, stop: int) -> Floats:
        piece = array[start:stop]
        gone = None if mask is None else mask[start:stop]
        if kind in "mM":
            gone = np.isnat(piece) if gone is None else gone | np.isnat(piece)
            base = piece.astype(f"{kind}8[{unit.resolution}]").view(np.int64)
            floats = unit.to_float(np.where(gone, 0, base))
        elif kind == "f":
            with np.errstate(over="ignore", invalid="ignore"):
                floats = piece.astype(np.float64)
        else:
            floats = exact_floats(piece if gone is None else np.where(gone, 0, piece).astype(piece.dtype), where, start)
        if gone is not None:
            floats[gone] = np.nan
        return floats

    ready = array.dtype == np.float64 and array.flags.c_contiguous and mask is None
    return Column(unit, int(array.size), stretch, array if ready else None)


def _time_unit(dtype: np.dtype[Any], where: str) -> Unit:
    """Find the unit of a datetime64 or timedelta64 column."""
    step = np.datetime_data(dtype)[0]
    if step in ("generic", "Y", "M") and (dtype.kind == "m" or step == "generic"):
        raise sentence(where, f"counts time in {step!r} steps, which have no fixed length: convert it to seconds")
    if step not in (*_DATES, *_TIMES):
        step = "ns"
    if dtype.kind == "m":
        return Unit("duration", {"W": "D"}.get(step, step))
    return Unit("date", "D") if step in _DATES else Unit("datetime", step)

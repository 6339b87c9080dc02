"""A column before it is checked: its unit, its length, and any chunk of it as float64 with NaN where it is missing.

Reading by chunks keeps the memory beside the data constant, whatever the source.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sottovoce.client.reading.cells import text_refused
from sottovoce.core.arrays import Floats
from sottovoce.core.checks import bad_row, sentence
from sottovoce.core.errors import BadInput
from sottovoce.core.unit import NUMBER, TRUTH, WHOLE, Unit

_DATES = ("Y", "M", "W", "D")
_TIMES = ("h", "m", "s", "ms", "us", "ns")
_KINDS = {"b": "a truth value", "c": "a complex number", "m": "a duration", "M": "a date"}
_KINDS |= dict.fromkeys("SUT", "text")
_EXACT = 2.0**53


class NotNumbers(BadInput, TypeError):
    """A column of something else than numbers; scikit-learn's convention wants a TypeError, ours a BadInput."""


@dataclass(frozen=True)
class Accepts:
    """What a column may hold beside numbers, and the words with which anything else is refused.

    ``ordered`` is whatever else has an order: durations, dates, moments, categories declared in order, truth values;
    ``truth`` values alone count as numbers, 0 and 1. ``rule`` says what every value must
    be, ``array`` and ``column`` what to give instead of something that is no column, or an Arrow object that is none;
    ``other`` is what an array of structures is called.
    """

    ordered: bool
    truth: bool
    rule: str
    array: str
    column: str
    other: str
    error: type[BadInput]

    def refusal(self, where: str, row: int, kind: str) -> BadInput:
        """Say that a row, counted here from 0, holds a kind of value that is not accepted."""
        if self.truth and kind == "a complex number":
            return complex_refused(where)
        return self.error(str(bad_row(where, row, kind, self.rule)))

    def text_refusal(self, cells: Iterable[Any], where: str) -> BadInput:
        """Say what kind of text a column holds; where numbers alone are accepted, the rule is said in any case."""
        said = str(text_refused(cells, where, self.rule))
        if not self.ordered and not said.endswith(self.rule):
            said = f"{said.rpartition(': ')[0]}: {self.rule}"
        return self.error(said)


RECORDS = Accepts(
    ordered=True,
    truth=False,
    rule="every record must be a number, a duration, a date or one of ordered categories",
    array="a one-dimensional array of records",
    column="one column of records",
    other="something that is no number",
    error=BadInput,
)
NUMBERS = Accepts(
    ordered=False,
    truth=True,
    # The words "argument must be ... string ... number" are those that scikit-learn's check_estimator looks for.
    rule="every argument must be neither a string nor a date but a number, so code it as numbers first",
    array="a one-dimensional column of numbers",
    column="a one-dimensional column of numbers",
    other="a structure",
    error=NotNumbers,
)


WEIGHTS = Accepts(
    ordered=False,
    truth=False,
    rule="every weight must be a positive number",
    array="a one-dimensional array of weights",
    column="one column of weights",
    other="something that is no number",
    error=BadInput,
)


@dataclass(frozen=True, repr=False, eq=False)
class Column:
    """A source of float64: `read(start, stop)` reads rows; `whole` is set when no reading is needed."""

    unit: Unit
    size: int
    read: Callable[[int, int], Floats]
    whole: Floats | None = None

    def chunks(self, rows: int) -> Iterator[tuple[int, Floats]]:
        """Give the column in chunks of so many rows, each with the number of its first row."""
        for start in range(0, self.size, rows):
            yield start, self.chunk(start, min(start + rows, self.size))

    def chunk(self, start: int, stop: int) -> Floats:
        """Return some rows."""
        return self.read(start, stop) if self.whole is None else self.whole[start:stop]


def complex_refused(where: str) -> BadInput:
    """Refuse complex numbers, in the words that scikit-learn's check_estimator looks for."""
    return BadInput(f"Complex data not supported: {where} holds complex numbers, so give their parts as real numbers")


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


def from_numpy(array: npt.NDArray[Any], where: str, accepts: Accepts) -> Column:
    """Read a numpy array of numbers, datetime64, timedelta64 or truth values, masked or not."""
    if array.ndim != 1:
        raise sentence(where, f"has {array.ndim} dimensions: give a one-dimensional array")
    if array.dtype.kind == "b" and accepts.truth:
        array = array.astype(np.uint8)
    kind = array.dtype.kind
    if kind in "UT":
        raise accepts.text_refusal(array.tolist(), where)
    if kind not in ("biufmM" if accepts.ordered else "iuf"):
        raise accepts.refusal(where, 0, _KINDS.get(kind, accepts.other))
    mask: npt.NDArray[np.bool_] | None = None
    if isinstance(array, np.ma.MaskedArray):
        mask = None if array.mask is np.ma.nomask else np.ma.getmaskarray(array)
        array = np.ma.getdata(array)
    array = array.view(np.ndarray)
    unit = _time_unit(array.dtype, where) if kind in "mM" else {"b": TRUTH, "f": NUMBER}.get(kind, WHOLE)

    def read(start: int, stop: int) -> Floats:
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
    return Column(unit, int(array.size), read, array if ready else None)


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

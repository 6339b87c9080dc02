"""Scale covariates by their public bounds, chunk by chunk, refusing what is missing, infinite or out of bounds."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.client.reading.matrix import CHUNK, Matrix
from sottovoce.core.arrays import Floats
from sottovoce.core.bounds import Bounds
from sottovoce.core.checks import how_often, sentence
from sottovoce.core.errors import BadInput

EDGE = 1e-9  # how far beyond a bound, in half-widths, rounding may have carried a value

_KINDS = ("NaN", "infinity", "outside")
_DROP = {"NaN": "remove those rows, or fill in the missing values", "infinity": "remove those rows, or cap the values"}


class Scaled(NamedTuple):
    """Covariates in [-1, 1], and in how many rows one had to be moved to its bound."""

    features: Floats
    clipped: int


def scaled(matrix: Matrix, bounds: Bounds, *, clip: bool = False) -> Scaled:
    """Scale every covariate to [-1, 1], or refuse the table in one sentence.

    Parameters
    ----------
    matrix
        The raw covariates.
    bounds
        Their public bounds.
    clip
        Move values beyond a bound to the bound, and count the rows, instead of refusing them. Values beyond it by no
        more than rounding (1e-9 of the half-width) are moved in any case, and not counted.
    """
    features = np.empty((matrix.n, matrix.p))
    tally = ColumnTally(matrix.p)
    # Rows of constants beside rows of data: numpy then runs along whole chunks, not along p numbers at a time.
    rows = min(matrix.n, CHUNK)
    centre, half = (np.tile(row, (rows, 1)) for row in (bounds.centre, bounds.half))
    moves = bool(np.any(bounds.centre != 0.0) or np.any(bounds.half != 1.0))
    clipped = 0
    for start in range(0, matrix.n, CHUNK):
        stop = min(start + CHUNK, matrix.n)
        raw = matrix.chunk(start, stop)
        block = features[start:stop]
        if moves:
            with np.errstate(all="ignore"):
                np.subtract(raw, centre[: stop - start], out=block)
                np.divide(block, half[: stop - start], out=block)
        else:
            block[...] = raw
        # False when any value is NaN
        if not (block.min() >= -1.0 and block.max() <= 1.0):
            clipped += _mend(raw, block, bounds, tally, start)
    for kind in _KINDS[: 2 if clip else 3]:
        if (complaint := tally.complaint(kind, matrix, bounds)) is not None:
            raise complaint
    return Scaled(features, clipped)


def refuse_not_finite(values: Floats, matrix: Matrix) -> None:
    """Refuse raw covariates that are missing or infinite."""
    if np.isfinite(values.min()) and np.isfinite(values.max()):
        return
    tally = ColumnTally(matrix.p)
    tally.note_not_finite(values, 0)
    for kind in _DROP:
        if (complaint := tally.complaint(kind, matrix, None)) is not None:
            raise complaint


class ColumnTally:
    """Count, for each column and kind of unusable value, the rows that hold one, and remember the first."""

    def __init__(self, p: int) -> None:
        self.p = p
        self.count = {kind: np.zeros(p, dtype=np.int64) for kind in _KINDS}
        self.first = {kind: np.full(p, -1, dtype=np.int64) for kind in _KINDS}

    def note(self, kind: str, bad: npt.NDArray[np.intp], start: int) -> None:
        """Add the places of unusable values in a chunk, counted row by row."""
        columns = bad % self.p
        here = np.bincount(columns, minlength=self.p)
        for column in np.flatnonzero((here > 0) & (self.count[kind] == 0)):
            self.first[kind][column] = start + bad[np.argmax(columns == column)] // self.p
        self.count[kind] += here

    def note_not_finite(self, raw: Floats, start: int) -> None:
        """Add the missing and infinite values of a chunk."""
        self.note("NaN", np.flatnonzero(np.isnan(raw)), start)
        self.note("infinity", np.flatnonzero(np.isinf(raw)), start)

    def complaint(self, kind: str, matrix: Matrix, bounds: Bounds | None) -> BadInput | None:
        """Put the first column that holds a kind of unusable value into a sentence; None when there is none."""
        columns = np.flatnonzero(self.count[kind])
        if not columns.size:
            return None
        column = int(columns[0])
        place, rows = matrix.place(matrix.names[column]), how_often(self.count[kind][column], self.first[kind][column])
        if kind != "outside" or bounds is None:
            return sentence(place, f"contains {kind} in {rows}: {_DROP[kind]}")
        if not bounds.given:
            advice = "give bounds=(low, high), the public bounds of each column, or clip=True"
            return sentence(place, f"is outside [-1, 1] in {rows}: {advice}")
        pair = f"({bounds.low[column]:.12g}, {bounds.high[column]:.12g})"
        advice = "widen the bounds, or give clip=True to move such values to the nearest bound"
        return sentence(place, f"is outside its bounds {pair} in {rows}: {advice}", parameter="bounds")


def _mend(raw: Floats, block: Floats, bounds: Bounds, tally: ColumnTally, start: int) -> int:
    """Move scaled values to their bounds in place; note those that rounding does not excuse, and count their rows."""
    if not (np.isfinite(raw.min()) and np.isfinite(raw.max())):
        tally.note_not_finite(raw, start)
    outside = np.flatnonzero(np.abs(block) > 1.0 + EDGE)
    values, columns = raw.ravel()[outside], outside % tally.p
    # A raw value within the bounds may leave them when it is scaled, if the bounds are far from 0 and close together.
    beyond = (values < bounds.low[columns]) | (values > bounds.high[columns])
    outside = outside[beyond & np.isfinite(values)]
    np.clip(block, -1.0, 1.0, out=block)
    if not outside.size:
        return 0
    tally.note("outside", outside, start)
    return 1 + int(np.count_nonzero(np.diff(outside // tally.p)))

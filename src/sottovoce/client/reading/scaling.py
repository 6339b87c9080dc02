"""Scale covariates by their public bounds, refusing what is missing, infinite, out of bounds, or collinear.

With an intercept in the model, columns are collinear when some combination of them is constant, so the columns are
centred: the check is on the smallest eigenvalue of their correlation matrix, which bounds do not change. It looks at
the records, and its refusal says something about them: whoever holds the rows runs it, on their own machine, before
anybody is asked anything, and nothing of it is sent.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.client.reading.matrix import CHUNK, Matrix
from sottovoce.core.arrays import Floats
from sottovoce.core.bounds import Bounds
from sottovoce.core.checks import first_few, how_often, sentence
from sottovoce.core.errors import BadInput

EDGE = 1e-9  # how far beyond a bound, in half-widths, rounding may have carried a value

_KINDS = ("NaN", "infinity", "outside")
_DROP = {"NaN": "remove those rows, or fill in the missing values", "infinity": "remove those rows, or cap the values"}

COLLINEAR = 1e-10  # the share of the variance, at most, in which rounding alone makes columns differ
CONSTANT = 1e-10  # the standard deviation, in half-widths of the bounds, at most, of a column that hardly changes


class Scaled(NamedTuple):
    """Covariates in [-1, 1], and in how many rows one had to be moved to its bound."""

    features: Floats
    clipped: int


def scaled(matrix: Matrix, bounds: Bounds, *, clip: bool = False) -> Scaled:
    """Scale every covariate to [-1, 1], or refuse the table in one sentence.

    With ``clip`` values beyond a bound are moved to it, and their rows counted. Values beyond it by no more than
    rounding (1e-9 of the half-width) are moved in any case, and not counted.
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


def refuse_other_values(features: Floats, matrix: Matrix, two_valued: Sequence[str]) -> None:
    """Refuse columns that are declared to take their two bounds alone and do not; scaled values are one exactly."""
    for name in two_valued:
        if name not in matrix.names:
            raise BadInput(f"two_valued names {name!r}, which is not among {first_few(matrix.names)}; leave it out.")
        column = features[:, matrix.names.index(name)]
        between = np.flatnonzero(np.abs(column) < 1.0 - EDGE)
        if len(between):
            raise BadInput(
                f"{matrix.place(name)} is declared in two_valued and lies between its bounds in "
                f"{how_often(len(between), int(between[0]))}: correct those rows, or leave the column out of two_valued"
            )
        column[:] = np.sign(column)


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


def refuse_collinear(features: Floats, matrix: Matrix) -> None:
    """Refuse constant and collinear columns in one sentence that names them.

    A table with no more rows than columns is always collinear; it is let through, for the gate to say how many records
    are needed.
    """
    n, p = features.shape
    if n <= p:
        return
    spread = scatter(features)
    variance = np.diag(spread) / n
    for column in map(int, np.flatnonzero(variance <= CONSTANT**2)):
        where = matrix.place(matrix.names[column])
        if features[:, column].min() == features[:, column].max():
            raise sentence(where, "is constant within its bounds, as the intercept is: leave it out")
        raise sentence(where, "changes by less than a billionth of its bounds: narrow its bounds, or leave it out")
    deviation = np.sqrt(np.diag(spread))
    columns = dependent(spread / np.outer(deviation, deviation))
    if columns:
        raise _collinear([matrix.names[column] for column in columns])


def scatter(features: Floats) -> Floats:
    """Sum the outer products of centred rows.

    The rows are first shifted by the mean of the first chunk, a share f of all rows: it is no further from the mean
    than sqrt((1 - f) / f) standard deviations, so that centring the sums afterwards loses few digits.
    """
    n, p = features.shape
    rows = min(n, CHUNK)
    ones, buffer = np.ones(rows), np.empty((rows, p))
    # Rows of constants beside rows of data: numpy then runs along whole chunks, not along p numbers at a time.
    shift = np.tile(ones @ features[:rows] / rows, (rows, 1))
    squares, sums = np.zeros((p, p)), np.zeros(p)
    for start in range(0, n, CHUNK):
        block = features[start : start + CHUNK]
        size = block.shape[0]
        shifted = np.subtract(block, shift[:size], out=buffer[:size])
        squares += shifted.T @ shifted
        sums += ones[:size] @ shifted
    centred: Floats = squares - np.outer(sums, sums) / n
    return centred


def dependent(correlation: Floats) -> list[int]:
    """Find the first column that the columns before it determine, and those of them that do; none if there is none.

    >>> import numpy as np
    >>> dependent(np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]))
    [0, 2]
    """
    p = correlation.shape[0]
    if np.linalg.eigvalsh(correlation)[0] > COLLINEAR:
        return []
    for last in range(1, p):
        # The smallest eigenvalue of leading minors falls; the first that vanishes has one null vector.
        values, vectors = np.linalg.eigh(correlation[: last + 1, : last + 1])
        if values[0] <= COLLINEAR:
            weights = np.abs(vectors[:, 0])
            return [int(column) for column in np.flatnonzero(weights > 1e-4 * weights.max())]
    return []


def _collinear(names: Sequence[str]) -> BadInput:
    """Name collinear columns in a sentence."""
    listed = f"{', '.join(map(repr, names[:-1]))} and {names[-1]!r}"
    return BadInput(
        f"columns {listed} are collinear, each being fixed by the others and the intercept: leave one of them out"
    )

r"""Refuse covariates whose coefficients no data could tell apart: constant columns and exactly collinear ones.

With an intercept in the model, columns are collinear when some combination of them is constant, so the columns are
centred: the check is on the smallest eigenvalue of their correlation matrix, which bounds do not change. It looks at
the records, and its refusal says something about them: whoever holds the rows runs it, on their own machine, before
anybody is asked anything, and nothing of it is sent.
"""

from collections.abc import Sequence

import numpy as np

from sottovoce.client.reading.matrix import CHUNK, Matrix
from sottovoce.core.arrays import Floats
from sottovoce.core.checks import sentence
from sottovoce.core.errors import BadInput

COLLINEAR = 1e-10  # the share of the variance, at most, in which rounding alone makes columns differ
CONSTANT = 1e-10  # the standard deviation, in half-widths of the bounds, at most, of a column that hardly changes


def refuse_collinear(features: Floats, matrix: Matrix) -> None:
    """Refuse constant and collinear columns in one sentence that names them.

    A table with no more rows than columns is always collinear; it is let through, for the gate to say how many records
    are needed.

    Parameters
    ----------
    features
        The scaled covariates.
    matrix
        What they were read from: it names the columns.
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

    Examples
    --------
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

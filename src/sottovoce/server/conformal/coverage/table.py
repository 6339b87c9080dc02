"""The table of exact coverages of quantiles of quantiles (Humbert, Le Bars, Bellet and Arlot 2023, theorem 3.2).

arXiv:2302.06322.

With n scores at each of m sites, the k-th smallest of the l-th smallest scores covers with probability

    M[l, k] = E[B_l^{-1}(V)],   V ~ Beta(k, m - k + 1),   B_l the distribution function of Beta(l, n - l + 1):

V is where the k-th site stands among the sites, B_l^{-1} turns that into a level of the scores. In y = logit V the
integrand is analytic with exponential tails, so the trapezoid rule converges geometrically; one set of nodes serves all
l and k, and the table is one product of matrices. Nodes lie close where a distribution of V is narrow, by

    du / dy = 1 / FAR + sqrt(m) / (2 NEAR cosh(y / 2)),

whose integral is closed. M is smooth in l and k, whole or not, and so is computed for a few hundred of each, from which
the others follow: the first whole numbers stand for themselves; beyond them each segment from s to 2 s - 1 has DEGREE
Chebyshev points, between which M is interpolated (barycentric formula). With its nearest singularity at 0 or below, the
error falls by a factor 3 + sqrt(8) a point, to less than 1e-15.
"""

import math
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.calling import public
from sottovoce.core.errors import BadInput

FAR, NEAR = 0.27, 0.65  # spacing in y: absolute, and in standard deviations of the narrowest distribution
TAIL = 38.0  # exp(-38) is nothing beside 1
CELLS = 100_000_000  # 800 MB

THEMSELVES, DEGREE = 64, 20  # whole numbers that stand for themselves, and points of a segment


@public
def conformal_coverage(m: int, n: int) -> Floats:
    """Return the probability that the k-th smallest of m sites' l-th smallest scores covers a new score.

    Parameters
    ----------
    m
        The number of sites.
    n
        The number of scores at each.

    Returns
    -------
    The table, M[l - 1, k - 1]: exact where scores have no ties, at least that where they have.

    Examples
    --------
    >>> import sottovoce as sv
    >>> table = sv.conformal_coverage(5, 10)
    >>> table.shape, round(float(table[9, 2]), 10)
    ((10, 5), 0.9256259546)
    """
    sites, scores = _count(m, "m", "sites"), _count(n, "n", "scores per site")
    if sites * scores > CELLS:
        raise BadInput(
            f"a table of {scores:,} by {sites:,} cells does not fit in memory; conformal_threshold finds its orders "
            "without one."
        )
    from scipy.special import betaincinv, betaln, expit

    half = (scores + 1) // 2
    orders, rows = segments(half)
    y, width = nodes(sites)
    left, up, down = y[: len(y) // 2 + 1], orders[:, None], scores - orders[:, None] + 1
    # a probability near 1 by its complement: it would lose the digits that count for the largest of many sites
    levels = np.hstack([betaincinv(up, down, expit(left)), 1 - betaincinv(down, up, expit(left[:-1]))[:, ::-1]])
    ranks, columns = segments((sites + 1) // 2)
    # density of y under Beta(k, m - k + 1), times the spacing
    weights = ranks * _log_expit(y)[:, None] + (sites - ranks + 1) * _log_expit(-y)[:, None]
    weights = np.exp(weights - betaln(ranks, sites - ranks + 1)) * width[:, None]
    weights /= weights.sum(axis=0)  # takes out what rounding the logarithms of large factorials has cost
    # of rank k, and of rank m - k + 1: nodes lie symmetrically
    low, high = (levels @ weights).T, (levels[:, ::-1] @ weights).T
    few = np.empty((len(orders), sites))
    for part in columns:
        few[:, part.start : part.stop] = part.fill(low).T
        few[:, sites - part.stop : sites - part.start] = part.fill(high).T[:, ::-1]
    table = np.empty((scores, sites))
    for part in rows:
        table[part.start : part.stop] = part.fill(few)
    table[half:] = 1 - table[: scores - half][::-1, ::-1]  # M[l, k] + M[n - l + 1, m - k + 1] = 1
    return table


def nodes(sites: int) -> tuple[Floats, Floats]:
    """Return the nodes in y, symmetric about 0, and the width that each stands for."""
    scale = math.sqrt(sites) / (2 * NEAR)
    end = TAIL + math.log(sites)
    count = math.ceil(end / FAR + 4 * scale * math.atan(math.tanh(end / 4)))
    wanted = np.arange(1, count + 1, dtype=np.float64)
    y = wanted * (end / count)
    for _ in range(60):  # Newton on a rising function; it is curved one way on each side of zero
        step = (y / FAR + 4 * scale * np.arctan(np.tanh(y / 4)) - wanted) / _density(y, scale)
        y = np.maximum(y - step, y / 4)
        if np.max(np.abs(step)) < 1e-13 * end:
            break
    y = np.concatenate([-y[::-1], [0.0], y])
    return y, 1 / _density(y, scale)


def _density(y: Floats, scale: float) -> Floats:
    return np.asarray(1 / FAR + scale / np.cosh(y / 2))


def _log_expit(y: Floats) -> Floats:
    return np.asarray(-np.logaddexp(0.0, -y))


def _count(value: int, name: str, what: str) -> int:
    """Return a positive whole number or refuse."""
    import operator

    try:
        count = operator.index(value)
    except TypeError:
        raise BadInput(f"{name}, the number of {what}, must be a whole number, not {value!r}; correct it.") from None
    if count < 1 or isinstance(value, bool):
        raise BadInput(f"{name}, the number of {what}, must be at least 1, not {value!r}; correct it.")
    return count


class Segment(NamedTuple):
    """Whole numbers ``start + 1`` to ``stop``, the first of their points, and the matrix from points to numbers."""

    start: int
    stop: int
    first: int
    matrix: Floats | None  # None: the points are the numbers

    def fill(self, known: Floats) -> Floats:
        """Return the values at the whole numbers from those at all points, along the first axis."""
        if self.matrix is None:
            return known[self.first : self.first + self.stop - self.start]
        return np.asarray(self.matrix @ known[self.first : self.first + DEGREE])


def segments(count: int) -> tuple[Floats, list[Segment]]:
    """Return the points, and how the values at 1, ..., ``count`` follow from those at the points.

    >>> points, parts = segments(1_000_000)
    >>> len(points), max(float(abs(part.fill(np.sqrt(points)) ** 2 - np.arange(part.start + 1, part.stop + 1)).max())
    ...                  / part.stop for part in parts) < 1e-13
    (344, True)
    """
    points, parts = [np.arange(1.0, min(THEMSELVES, count) + 1)], [Segment(0, min(THEMSELVES, count), 0, None)]
    angle = np.pi * (2 * np.arange(DEGREE) + 1) / (2 * DEGREE)
    weight = (-1.0) ** np.arange(DEGREE) * np.sin(angle)
    while (start := parts[-1].stop) < count:
        stop = min(2 * start, count)
        placed = (start + 1 + stop) / 2 + (stop - start) / 2 * np.cos(angle)
        apart = np.arange(start + 1.0, stop + 1)[:, None] - placed
        hit = apart == 0
        matrix = weight / np.where(hit, 1.0, apart)
        matrix = np.where(hit.any(axis=1, keepdims=True), hit, matrix / matrix.sum(axis=1, keepdims=True))
        parts.append(Segment(start, stop, sum(map(len, points)), matrix))
        points.append(placed)
    return np.concatenate(points), parts

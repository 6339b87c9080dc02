"""How sites of every kind vote below a level of the scores, and integrals over that level.

Of a site's n scores, c ~ Bin(n, t) lie below level t. Asked for its l-th smallest, it answers with a value below the
level if c >= l; a private site does so with probability ``failure(c - l)`` at most. Hence

    p_l(t) = sum_c P(Bin(n, t) = c) failure(c - l),      without privacy I_t(l, n - l + 1).

Sites without privacy are computed all at once, private ones kind by kind.

*Integrals over the level t* of a new score, from the exact probabilities that the threshold is not below it. The
coverage C of a threshold has E C = int P(C >= t) dt and E C^2 = int 2 t P(C >= t) dt. In x = logit t the integrand is
smooth and falls off at both ends, so that the trapezoid rule is exact to rounding. Noise for privacy has a corner,
which a site's binomial distribution rounds off over a width of its own, however wide the noise: then panels of Gauss
and Legendre, small ones around the corners. Left of the grid P hardly changes: its value at the first level, which is
no larger, counts for all of them; right of the grid nothing is counted. So the integrals err, if at all, on the safe
side.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints

Failure = Callable[[Ints], Floats]

MARGIN = 1 << 30  # scores that noise may reach
PIECE = 1 << 20  # probabilities held at once
REACH = 9.0  # standard deviations of a binomial distribution, and as many scores again for small ones
SLIGHT = 0.01  # of the votes, squared: the corner of such a kind of site is lost among the others

SPACING, NARROW = 0.25, 0.6  # between nodes: absolute, and in standard deviations of logit C
FINE = 1e-3  # spacing below which a sum of thousands of nodes is its integral and two corrections
NORMAL, EXPONENTIAL = 9.5, 27.0  # standard deviations beyond which a distribution is nothing
TAIL = 37.0  # exp(-37) is nothing beside 1; the logit of a Beta distribution falls off like its rate
NODES, WIDE, PANEL = 10, 2.0, 2.0  # of a panel: how many, and the largest width, absolute and in standard deviations
BODY, BROAD = 8.0, 2.5  # standard deviations beyond which panels are so many times as wide
CORNER = 6.0  # widths of a corner within which panels have half as many


class Corner(NamedTuple):
    """Where, in x, the noise of a site has its corner, and over what width it is rounded off."""

    place: float
    width: float


class LevelGrid(NamedTuple):
    """Levels at which P(C >= t) is to be computed, and what the lower ones contribute."""

    levels: Floats
    weights: Floats  # of P in E C
    mean_below: float
    square_below: float

    def mean(self, survival: Floats) -> Floats:
        """Return E C from P(C >= t), levels along the first axis."""
        return np.asarray(self.mean_below * survival[0] + np.tensordot(self.weights, survival, 1))

    def sd(self, survival: Floats) -> Floats:
        """Return the standard deviation of C."""
        square = self.square_below * survival[0] + np.tensordot(2 * self.levels * self.weights, survival, 1)
        return np.asarray(np.sqrt(np.maximum(square - self.mean(survival) ** 2, 0.0)))


def level_grid(level: float, deviation: float, reach: float = NORMAL, corners: Sequence[Corner] = ()) -> LevelGrid:
    """Return the levels for a coverage near ``level`` whose logit has about the standard deviation ``deviation``.

    >>> grid = level_grid(0.9, 0.1)
    >>> survival = (grid.levels <= 0.9).astype(float)  # a step instead of a smooth distribution: right to the spacing
    >>> abs(float(grid.mean(survival)) - 0.9) < 0.01
    True
    """
    centre = math.log(level) - math.log1p(-level)
    half = min(reach * deviation + TAIL * deviation * deviation, 2 * TAIL)
    if not corners:
        return _even(centre, half, min(SPACING, NARROW * deviation))
    return _panels(centre, half, deviation, corners)


def _even(centre: float, half: float, spacing: float) -> LevelGrid:
    """Return the nodes of the trapezoid rule."""
    from scipy.special import expit

    steps = math.ceil(half / spacing)
    x = centre + spacing * np.arange(-steps, steps + 1)
    levels, weights = expit(x), spacing * expit(x) * expit(-x)
    if spacing >= FINE:
        below = x[0] - spacing * np.arange(1, max(math.ceil((x[0] + TAIL + 4) / spacing), 1) + 1)
        known = spacing * expit(below) * expit(-below)
        return LevelGrid(levels, weights, float(known.sum()), float((2 * expit(below) * known).sum()))
    t = float(levels[0])
    slope = t * (1 - t)  # Euler and Maclaurin, for t and for t^2 as functions of x
    mean = t - spacing / 2 * slope + spacing**2 / 12 * slope * (1 - 2 * t)
    return LevelGrid(levels, weights, mean, t * t - spacing * t * slope + spacing**2 / 6 * slope * t * (2 - 3 * t))


def _panels(centre: float, half: float, deviation: float, corners: Sequence[Corner]) -> LevelGrid:
    """Return the nodes of panels that are small where an integrand may have a corner, and wide where it falls off."""
    from scipy.special import expit

    places, widths = np.array(corners).T
    edges = [centre - half]
    while edges[-1] < centre + half:
        away = np.abs(edges[-1] - places) / widths
        fine = float(np.min(widths * np.maximum(away - CORNER, CORNER / 2)))
        broad = PANEL * deviation * (1 if abs(edges[-1] - centre) < BODY * deviation else BROAD)
        edges.append(edges[-1] + min(WIDE, fine, broad))
    ends = np.array(edges)
    nodes, parts = np.polynomial.legendre.leggauss(NODES)
    middle, radius = (ends[1:] + ends[:-1])[:, None] / 2, np.diff(ends)[:, None] / 2
    x, spaced = (middle + radius * nodes).ravel(), (radius * parts).ravel()
    start = float(expit(ends[0]))
    return LevelGrid(expit(x), spaced * expit(x) * expit(-x), start, start**2)


class Kind(NamedTuple):
    """What the design must know of a site: its size, and how a private answer may fail; sites alike share one.

    A mechanism that is ``bounded`` can only be asked for orders from 1 to the size; ``unbounded(order)`` is at least
    the chance that its noise alone makes the answer infinite.
    """

    size: int
    failure: Failure | None = None
    bounded: bool = False
    unbounded: Callable[[int], float] | None = None


def below(kinds: Sequence[Kind], orders: Ints, levels: Floats) -> Floats:
    """Return the probabilities that the values of orders (kinds, values) lie below levels: (kinds, values, levels)."""
    from scipy.special import betainc

    sizes = np.array([kind.size for kind in kinds])[:, None]
    held = np.minimum(orders, sizes)[:, :, None]
    found = np.asarray(betainc(held, sizes[:, :, None] - held + 1, levels[None, None, :]))
    found[orders > sizes] = 0.0
    for i, kind in enumerate(kinds):
        if kind.failure is not None:
            found[i] = _noisy(kind.size, kind.failure, orders[i], levels)
    return found


def orders_for(kinds: Sequence[Kind], level: float, wanted: Floats) -> Ints:
    """Return for each kind the orders whose values lie below a level with nearest to the wanted probabilities."""
    from scipy.special import bdtrik, betainc

    sizes = np.array([kind.size for kind in kinds], dtype=np.float64)[:, None]
    # P(count >= l) = wanted is P(count <= l - 1) = 1 - wanted
    near = np.floor(bdtrik(np.clip(1 - wanted, 1e-12, 1 - 1e-12)[None, :], sizes, level)) + 1
    tried = np.clip(near[:, :, None] + np.array([-1.0, 0.0, 1.0, 2.0]), 1, sizes[:, :, None])
    chance = betainc(tried, sizes[:, :, None] - tried + 1, level)
    best = np.abs(chance - wanted[None, :, None]).argmin(axis=2)
    found = np.take_along_axis(tried, best[:, :, None], axis=2)[:, :, 0].astype(np.int64)
    for i, kind in enumerate(kinds):
        if kind.failure is not None:
            found[i] = [_private_order(kind, kind.failure, level, each) for each in wanted.tolist()]
    return np.asarray(found)


def information(kinds: Sequence[Kind], orders: Ints, level: float) -> Floats:
    """Return the best weight of each kind's votes: slope over variance of the chance to lie below a level.

    >>> told = information([Kind(100), Kind(10_000)], np.array([[91], [9001]]), 0.9)
    >>> round(float(told[1] / told[0]), 1)
    10.0
    """
    from scipy.special import betaln, xlog1py, xlogy

    sizes = np.array([kind.size for kind in kinds])[:, None]
    held = np.minimum(orders, sizes)
    above = sizes - held + 1
    slope = np.exp(xlogy(held - 1, level) + xlog1py(above - 1, -level) - betaln(held, above))
    slope[orders > sizes] = 0.0
    for i, kind in enumerate(kinds):
        if kind.failure is not None:
            counts, mass = (part[0] for part in binomial(kind.size, np.array([level])))
            score = mass * (counts - kind.size * level) / (level * (1 - level))
            slope[i] = [score @ kind.failure(counts - order) for order in orders[i]]
    chance = below(kinds, orders, np.array([level]))[:, :, 0]
    return np.asarray(np.mean(slope / np.maximum(chance * (1 - chance), 1e-12), axis=1))


def corners(kinds: Sequence[Kind], orders: Sequence[Sequence[int]], votes: Sequence[int]) -> list[Corner]:
    """Return where private values of weight turn from noise below their order to noise above it.

    >>> corners([Kind(100)], [(91,)], [1]), corners([Kind(100, lambda d: d >= 0)], [(80,)], [1])
    ([], [Corner(place=1.3862943611198906, width=0.25)])
    """
    heavy = SLIGHT * sum(each * each for each in votes)
    return [
        Corner(math.log(order / (kind.size - order)), math.sqrt(kind.size / (order * (kind.size - order))))
        for kind, asked, each in zip(kinds, orders, votes, strict=True)
        for order in asked
        if kind.failure is not None and each * each >= heavy and 0 < order < kind.size
    ]


def binomial(size: int, levels: Floats) -> tuple[Ints, Floats]:
    """Return for each level counts that hold all but 1e-17 of its binomial distribution, and the distribution."""
    from scipy.special import gammaln

    reach = math.ceil(REACH * (math.sqrt(size * float(np.max(levels * (1 - levels)))) + 3))
    if 2 * reach >= size:
        counts = np.broadcast_to(np.arange(size + 1), (len(levels), size + 1))
    else:
        first = np.clip(np.rint(size * levels).astype(np.int64) - reach, 0, size - 2 * reach)
        counts = first[:, None] + np.arange(2 * reach + 1)
    low = int(counts.min())
    every = np.arange(low, int(counts.max()) + 1)
    log_choose = (gammaln(size + 1) - gammaln(every + 1) - gammaln(size - every + 1))[counts - low]
    inside = np.clip(levels, 1e-300, 1 - 2.0**-53)[:, None]
    mass = np.exp(log_choose + counts * (np.log(inside) - np.log1p(-inside)) + size * np.log1p(-inside))
    return counts, mass / mass.sum(axis=1, keepdims=True)


def _noisy(size: int, failure: Failure, orders: Ints, levels: Floats) -> Floats:
    """Return the probabilities that noisy values lie below levels: (values, levels)."""
    found = np.empty((len(orders), len(levels)))
    rows = max(1, PIECE // (2 * math.ceil(REACH * (math.sqrt(size) / 2 + 3)) + 1))
    for start in range(0, len(levels), rows):
        counts, mass = binomial(size, levels[start : start + rows])
        low, high = int(counts.min()), int(counts.max())
        for j, order in enumerate(orders.tolist()):
            fails = failure(np.arange(low - order, high - order + 1))
            found[j, start : start + rows] = np.einsum("ij,ij->i", mass, fails[counts - low])
    return np.clip(found, 0.0, 1.0)


def _private_order(kind: Kind, failure: Failure, level: float, wanted: float) -> int:
    """Return the order whose noisy value lies below a level with nearest to the wanted probability."""
    counts, mass = (part[0] for part in binomial(kind.size, np.array([level])))

    def chance(order: int) -> float:
        return float(mass @ failure(counts - order))

    least, most = (1, kind.size) if kind.bounded else (-MARGIN, kind.size + MARGIN)
    low = high = min(max(round(kind.size * level), least), most)
    step = 4
    while low > least and chance(low) <= wanted:
        low, step = max(low - step, least), 2 * step
    step = 4
    while high < most and chance(high) > wanted:
        high, step = min(high + step, most), 2 * step
    while high - low > 1:  # the higher the order, the rarer a value below
        middle = (low + high) // 2
        low, high = (low, middle) if chance(middle) <= wanted else (middle, high)
    return low if abs(chance(low) - wanted) < abs(chance(high) - wanted) else high

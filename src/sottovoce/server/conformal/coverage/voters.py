"""How sites of every kind vote: the distribution of their values below a level of the scores.

Of a site's n scores, c ~ Bin(n, t) lie below level t. Asked for its l-th smallest, it answers with a value below the
level if c >= l; a private site does so with probability ``failure(c - l)`` at most. Hence

    p_l(t) = sum_c P(Bin(n, t) = c) failure(c - l),      without privacy I_t(l, n - l + 1).

Sites without privacy are computed all at once, private ones kind by kind.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.server.conformal.coverage.level_grid import Corner

Failure = Callable[[Ints], Floats]

MARGIN = 1 << 30  # scores that noise may reach
PIECE = 1 << 20  # probabilities held at once
REACH = 9.0  # standard deviations of a binomial distribution, and as many scores again for small ones
SLIGHT = 0.01  # of the votes, squared: the corner of such a kind of site is lost among the others


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
    """Return the probabilities that the values of orders (kinds, values) lie below levels: (kinds, values, levels).

    >>> below([Kind(10), Kind(9)], np.array([[9], [10]]), np.array([0.9])).round(4).tolist()
    [[[0.7361]], [[0.0]]]
    """
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
    """Return for each kind the orders whose values lie below a level with nearest to the wanted probabilities.

    >>> orders_for([Kind(100), Kind(3)], 0.9, np.array([0.8, 0.5, 0.2])).tolist()
    [[88, 91, 93], [3, 3, 3]]
    """
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

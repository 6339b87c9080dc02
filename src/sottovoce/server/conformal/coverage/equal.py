"""Which order statistic to ask of sites of equal size, and which of their answers to take.

The coverage of the k-th smallest of m sites' l-th smallest scores, given the calibration scores, is a random variable
with an exact distribution, whatever the scores: C = B_l^{-1}(V) with V ~ Beta(k, m - k + 1). Its mean is the table M;
its standard deviation says how far from the mean one calibration may be. So

    P(C >= t) = P(Bin(m, I_t(l, n - l + 1)) <= k - 1),

and both guarantees follow: on average over calibrations, E C >= 1 - alpha; for one calibration, P(C >= 1 - alpha) >=
1 - delta. For each order the smallest valid rank is the candidate: the mean grows with both. Three rules choose among
the orders:

* "closest" (default) takes the smallest root mean square distance of C from 1 - alpha;
* "paper" takes the smallest mean, however far single calibrations lie from it;
* for one calibration the smallest mean, and the paper's theorem 3.3 for comparison.

*What the paper asks of private sites* (Algorithm 3 of Humbert, Le Bars, Bellet and Arlot 2023, arXiv:2302.06322) is
kept for comparison. A part gamma of the miscoverage alpha is set aside for noise. The pair (l, k) covers (1 - alpha) /
(1 - gamma alpha) without privacy; each site is then asked for the order l + c, where by equation (10)

    c = 2 / epsilon log(cells / (1 - (1 - gamma alpha)^(1 / m))),

rounded up, so that all m sites name an edge at or above their l-th smallest score with probability 1 - gamma alpha, at
the mechanism's level q = (l + c) / n, or 1/2 if that is less. The paper is silent where l + c >= n, so that q >= 1: no
gamma that asks for so much is feasible, and if none is, the threshold is infinite. Of the feasible ones that of the
smallest coverage without noise, M[l + c, k], is taken.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sottovoce.core.arrays import Bools, Floats, Ints

ROUNDING = 1e-12  # 0.9 * 100 is not 90 in floating point: what is this close counts as reached
FEW = 500  # candidates of the theorem whose mean is computed, the best by their medians
SPACING, NARROW = 0.27, 0.6  # between nodes: in logit units of C and of V, and in standard deviations
OUTSIDE = 1e-18  # of a distribution, at each end

GAMMAS = tuple(np.geomspace(1e-3, 0.99, 60).tolist())  # small parts are enough where the noise is small


class RankPair(NamedTuple):
    """The rank among the sites and the order at each, with mean and standard deviation of the coverage."""

    order: int
    rank: int
    mean: float
    sd: float


def moments(sites: int, scores: int, orders: Any, ranks: Any) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of the coverage for each pair of order and rank.

    The trapezoid rule in x = logit C on the density, which falls off at both ends.

    >>> mean, sd = moments(10, 100, [95, 92], [1, 4])
    >>> mean.round(6).tolist(), sd.round(5).tolist()
    ([0.90018, 0.902278], [0.01924, 0.01197])
    """
    from scipy.special import betainc, betaincinv, betaln, expit

    order, rank = (np.atleast_1d(np.asarray(given, dtype=np.float64))[:, None] for given in (orders, ranks))
    above, over = scores - order + 1, sites - rank + 1
    middle = np.clip(betaincinv(order, above, rank / (sites + 1)), 1e-300, 1 - 1e-16)
    slope = np.exp(
        order * np.log(middle) + above * np.log1p(-middle) - betaln(order, above)
    )  # of the site's distribution, in x
    share = rank / (sites + 1)
    deviation = np.sqrt(share * (1 - share) / (sites + 2)) / np.maximum(slope, 1e-300)
    # an extreme of many sites falls off slowly on one side and at once on the other, so both ends are looked up
    low = betaincinv(order, above, betaincinv(rank, over, OUTSIDE))
    high = betaincinv(above, order, betaincinv(over, rank, OUTSIDE))
    start, stop = np.log(low) - np.log1p(-low), np.log1p(-high) - np.log(high)
    spacing = np.minimum(NARROW * deviation, SPACING * np.minimum(1.0, share * (1 - share) / slope))
    count = int(np.max(np.ceil((stop - start) / spacing))) + 1
    x = start + (stop - start) * np.linspace(0.0, 1.0, count)
    t, rest = expit(x), expit(-x)
    below, not_below = betainc(order, above, t), betainc(above, order, rest)
    with np.errstate(divide="ignore", invalid="ignore"):
        density = rank * np.log(below) + over * np.log(not_below)  # times d logit(below) / dx
        density += order * np.log(t) + above * np.log(rest) - np.log(below) - np.log(not_below)
    density = np.where((below > 0) & (not_below > 0), density, -np.inf)
    density = np.exp(density - np.max(density, axis=1, keepdims=True))
    density /= density.sum(axis=1, keepdims=True)
    mean = np.sum(t * density, axis=1)
    return mean, np.sqrt(np.sum((t - mean[:, None]) ** 2 * density, axis=1))


def probability(sites: int, scores: int, orders: Any, ranks: Any, level: float) -> Floats:
    """Return the probability that one calibration covers at least ``level``."""
    from scipy.special import betainc

    order, rank = np.asarray(orders, dtype=np.float64), np.asarray(ranks, dtype=np.float64)
    return np.asarray(betainc(sites - rank + 1, rank, betainc(scores - order + 1, order, 1 - level)))


def argmin(sites: int, scores: int, alpha: float) -> RankPair | None:
    """Return the pair with the smallest mean coverage that is at least 1 - alpha (the paper's rule); None if none is.

    >>> argmin(5, 10, 0.1)[:2], argmin(10, 100, 0.1)[:2], argmin(1000, 1000, 0.1)[:2], argmin(2, 2, 0.1)
    ((10, 3), (95, 1), (897, 649), None)
    """
    found = _candidates(sites, scores, alpha)
    return min(found, key=lambda pair: pair.mean, default=None)


def closest(sites: int, scores: int, alpha: float) -> RankPair | None:
    """Return the pair whose coverage is closest to 1 - alpha in root mean square, its mean being at least that.

    >>> closest(10, 100, 0.1)[:2], closest(1, 99, 0.1)[:2]
    ((92, 4), (90, 1))
    """
    found = _candidates(sites, scores, alpha)
    return min(found, key=lambda pair: (pair.mean - 1 + alpha) ** 2 + pair.sd**2, default=None)


def conditional(sites: int, scores: int, alpha: float, delta: float) -> RankPair | None:
    """Return the pair of smallest mean that covers 1 - alpha in all but a part delta of the calibrations."""

    def valid(orders: Ints, ranks: Ints) -> Bools:
        return probability(sites, scores, orders, ranks, 1 - alpha) >= 1 - delta - min(ROUNDING, 1e-6 * delta)

    orders, ranks = _frontier(sites, scores, valid, alpha)
    return min(_pairs(sites, scores, orders, ranks), key=lambda pair: pair.mean, default=None)


def theorem(sites: int, scores: int, alpha: float, delta: float) -> RankPair | None:
    """Return the pair of smallest mean that theorem 3.3 of the paper allows: l k >= (1 - alpha + margin) m n."""
    total = sites * scores
    needed = (1 - alpha + math.sqrt(math.log(1 / delta) / (2 * total))) * total
    orders = np.arange(math.ceil(needed / sites * (1 - ROUNDING)), scores + 1)
    ranks = np.ceil(needed / orders * (1 - ROUNDING)).astype(np.int64)
    kept = ranks <= sites
    orders, ranks = orders[kept], ranks[kept]
    if len(orders) > FEW:  # their medians tell which few may have the smallest mean
        from scipy.special import betaincinv

        best = np.argsort(betaincinv(orders, scores - orders + 1, (ranks - 0.3) / (sites + 0.4)))[:FEW]
        orders, ranks = orders[best], ranks[best]
    return min(_pairs(sites, scores, orders, ranks), key=lambda pair: pair.mean, default=None)


def _candidates(sites: int, scores: int, alpha: float) -> list[RankPair]:
    """Return the smallest valid rank of each order, with its distribution."""

    def valid(orders: Ints, ranks: Ints) -> Bools:
        return moments(sites, scores, orders, ranks)[0] >= 1 - alpha - min(ROUNDING, 1e-6 * alpha)

    return _pairs(sites, scores, *_frontier(sites, scores, valid, alpha))


def _pairs(sites: int, scores: int, orders: Ints, ranks: Ints) -> list[RankPair]:
    if not len(orders):
        return []
    columns = (orders.tolist(), ranks.tolist(), *(part.tolist() for part in moments(sites, scores, orders, ranks)))
    return [RankPair(*row) for row in zip(*columns, strict=True)]


def _frontier(sites: int, scores: int, valid: Callable[[Ints, Ints], Bools], alpha: float) -> tuple[Ints, Ints]:
    """Return every order that may be best with its smallest valid rank, valid growing with order and rank.

    Orders begin where the largest rank is valid, and end where rank 1 is: beyond it the mean only grows.
    """
    from scipy.special import betainc

    def first(rank: int) -> int:
        """Return the smallest order at which a rank is valid, one beyond the last if none."""
        low, high = 1, scores + 1
        while low < high:
            middle = (low + high) // 2
            if valid(np.array([middle]), np.array([rank]))[0]:
                high = middle
            else:
                low = middle + 1
        return low

    orders = np.arange(first(sites), min(first(1), scores) + 1)
    if not len(orders):
        return orders, orders
    guess = np.ceil((sites + 1) * betainc(orders, scores - orders + 1, 1 - alpha))
    ranks = np.clip(guess, 1, sites).astype(np.int64)
    open_ = np.arange(len(orders))
    while len(open_):  # up to the first valid rank
        open_ = open_[~valid(orders[open_], ranks[open_])]
        ranks[open_] += 1
    open_ = np.arange(len(orders))
    while len(open_):  # and down as long as it stays valid
        open_ = open_[ranks[open_] > 1]
        open_ = open_[valid(orders[open_], ranks[open_] - 1)] if len(open_) else open_
        ranks[open_] -= 1
    return orders, ranks


class PrivatePair(NamedTuple):
    """The order asked of each site and the rank taken, with the part set aside and what it adds to the order."""

    order: int
    rank: int
    gamma: float
    correction: int
    q: float
    mean: float


def paper_private(sites: int, scores: int, alpha: float, epsilon: float, cells: int) -> PrivatePair | None:
    """Return what the paper's private algorithm asks; None if no part set aside is feasible.

    ``epsilon`` is the paper's, which its mechanism does not spend in full; ``cells`` counts the infinite ones too.

    >>> pair = paper_private(5, 200, 0.1, 5.0, 100)
    >>> pair.order, pair.rank, pair.correction, paper_private(5, 200, 0.1, 0.5, 100)
    (184, 4, 5, None)
    """
    found = (_asked(sites, scores, alpha, epsilon, cells, gamma) for gamma in GAMMAS)
    return min((pair for pair in found if pair is not None), key=lambda pair: pair.mean, default=None)


def correction(sites: int, alpha: float, epsilon: float, cells: int, gamma: float) -> int:
    """Return by how many ranks noise raises the order, equation (10)."""
    short = -math.expm1(math.log1p(-gamma * alpha) / sites)  # of one site, that all m together fall short at most
    return math.ceil(2 / epsilon * math.log(cells / short))


def _asked(sites: int, scores: int, alpha: float, epsilon: float, cells: int, gamma: float) -> PrivatePair | None:
    added = correction(sites, alpha, epsilon, cells, gamma)
    if added >= scores - 1:
        return None
    pair = argmin(sites, scores, 1 - (1 - alpha) / (1 - gamma * alpha))
    if pair is None or pair.order + added >= scores:
        return None
    order = pair.order + added
    mean = float(moments(sites, scores, order, pair.rank)[0][0])
    return PrivatePair(order, pair.rank, gamma, added, max(order / scores, 0.5), mean)

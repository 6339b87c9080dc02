"""What the paper asks of private sites (Algorithm 3 of Humbert, Le Bars, Bellet and Arlot 2023), kept for comparison.

A part gamma of the miscoverage alpha is set aside for noise. The pair (l, k) covers (1 - alpha) / (1 - gamma alpha)
without privacy; each site is then asked for the order l + c, where by equation (10)

    c = 2 / epsilon log(cells / (1 - (1 - gamma alpha)^(1 / m))),

rounded up, so that all m sites name an edge at or above their l-th smallest score with probability 1 - gamma alpha, at
the mechanism's level q = (l + c) / n, or 1/2 if that is less. The paper is silent where l + c >= n, so that q >= 1: no
gamma that asks for so much is feasible, and if none is, the threshold is infinite. Of the feasible ones that of the
smallest coverage without noise, M[l + c, k], is taken.
"""

import math
from typing import NamedTuple

import numpy as np

from sottovoce.server.conformal.coverage.equal import argmin, moments

GAMMAS = tuple(np.geomspace(1e-3, 0.99, 60).tolist())  # small parts are enough where the noise is small


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

    Parameters
    ----------
    sites
        The number of sites.
    scores
        The number of scores at each.
    alpha
        The miscoverage.
    epsilon
        The paper's epsilon, which its mechanism does not spend in full.
    cells
        The number of cells of the grid, the infinite ones included.

    Examples
    --------
    >>> pair = paper_private(5, 200, 0.1, 5.0, 100)
    >>> pair.order, pair.rank, pair.correction, paper_private(5, 200, 0.1, 0.5, 100)
    (184, 4, 5, None)
    """
    found = (_asked(sites, scores, alpha, epsilon, cells, gamma) for gamma in GAMMAS)
    return min((pair for pair in found if pair is not None), key=lambda pair: pair.mean, default=None)


def correction(sites: int, alpha: float, epsilon: float, cells: int, gamma: float) -> int:
    """Return by how many ranks noise raises the order, equation (10).

    >>> correction(5, 0.1, 1.0, 100, 0.5)
    19
    """
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

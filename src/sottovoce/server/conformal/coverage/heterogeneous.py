"""The coverage to expect, calibration after calibration, where sites differ: the exact distribution of their votes.

A score s is covered if at most ``rank - 1`` votes fall below it. Site j, with calibration size n and F_j(s) of its
scores below s, has its l-th smallest below s with probability P(Bin(n, F_j(s)) >= l); so given s the votes below it are
a sum over independent sites, and its distribution is computed exactly. Averaged over the scores of a site, this is what
that site can expect; with one distribution for all sites it is the coverage that was promised. Only shares F_j(s) are
needed.

The probability falls as s rises. It is computed at about a hundred of the scores and interpolated in their rank.
Neighbours stand closer where it falls faster: between two it falls by ``STEP`` at most, and by less the more scores lie
between them (``AREA``). So averages over sites err by 1e-5 or so, and never by more than ``STEP``.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.server.conformal.coverage.voting import Voters, vote_distribution

STEP = 1 / 50
AREA = 1e-5
FIRST = 17  # ranks at which the search for the fall begins


class Asked(NamedTuple):
    """What a design asks: of each site its size, the orders of its values and the votes of each; and the rank taken."""

    sizes: tuple[int, ...]
    orders: tuple[tuple[int, ...], ...]
    votes: tuple[int, ...]
    rank: int


def covered(asked: Asked, shares: Floats) -> Floats:
    """Return the probability that a score is covered.

    Parameters
    ----------
    asked
        The design.
    shares
        The part of each site's scores that lies below the score, sites along the first axis and scores along the other.

    Examples
    --------
    >>> asked = Asked((9, 9), ((9,), (9,)), (1, 1), 2)  # the larger of the two maxima
    >>> covered(asked, np.array([[0.5, 0.9, 1.0], [0.5, 0.9, 1.0]])).round(6).tolist()
    [0.999996, 0.849905, 0.0]
    """
    from scipy.special import betainc

    most = max(len(orders) for orders in asked.orders)
    # a value beyond a site's scores is infinite: none below
    orders = np.array([[*sorted(each), *[math.inf] * (most - len(each))] for each in asked.orders])
    held = orders <= np.array(asked.sizes)[:, None]
    first, above = np.where(held, orders, 1.0), np.where(held, np.array(asked.sizes)[:, None] - orders + 1, 1.0)
    reached = np.where(held[:, None, :], betainc(first[:, None, :], above[:, None, :], shares[:, :, None]), 0.0)
    # at least x values lie below a score if the x-th does
    distribution = -np.diff(reached, axis=2, prepend=1.0, append=0.0)
    voters = Voters(np.maximum(distribution, 0.0), np.array(asked.votes), np.ones(len(asked.sizes), dtype=np.int64))
    return np.asarray(vote_distribution(voters).at_most(np.array([asked.rank - 1]))[:, 0])


def curve(asked: Asked, shares_at: Callable[[Ints], Floats], count: int) -> tuple[Ints, Floats]:
    """Return some ranks among the distinct scores of all sites, and the probability that such a score is covered.

    Parameters
    ----------
    asked
        The design.
    shares_at
        Gives the part of each site's scores that lies below the score of each rank, from 0.
    count
        The number of distinct scores.

    Examples
    --------
    >>> asked = Asked((99, 99), ((90,), (90,)), (1, 1), 1)
    >>> ranks, chance = curve(asked, lambda ranks: np.array([ranks, ranks]) / 1000, 1000)
    >>> len(ranks) < 150, bool(np.max(np.abs(np.diff(chance))) <= STEP)
    (True, True)
    """
    ranks = np.unique(np.linspace(0, count - 1, FIRST).astype(np.int64))
    chance = covered(asked, shares_at(ranks))
    while True:
        fall, gap = -np.diff(chance), np.diff(ranks)
        steep = (gap > 1) & ((fall > STEP) | (fall * gap > AREA * count))
        between = (ranks[:-1][steep] + ranks[1:][steep]) // 2
        if not len(between):
            return ranks, chance
        both = np.concatenate([ranks, between])
        order = np.argsort(both, kind="stable")
        ranks, chance = both[order], np.concatenate([chance, covered(asked, shares_at(between))])[order]

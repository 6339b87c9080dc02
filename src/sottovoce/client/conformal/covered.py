"""How many scores of a site a threshold covers: what it says in a second round, with or without noise."""

import math
from collections.abc import Sequence
from typing import NoReturn, SupportsIndex

import numpy as np

from sottovoce.client.conformal.draw import geometric
from sottovoce.client.conformal.site import OneMessageSite, order_values
from sottovoce.client.record import Records
from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource
from sottovoce.protocol.exact import within
from sottovoce.protocol.messages import CoverageCount, CoverageQuery, Message
from sottovoce.protocol.selection.geometric import SMALLEST, NoisyCount, noisy_count

_MOST_NOISE = noisy_count(SMALLEST).numerator  # more takes millions of words for one number


class CoverageSite(OneMessageSite):
    """A site that counts how many of its scores a threshold covers, once.

    Examples
    --------
    >>> site = CoverageSite(Records(np.array([3.0, 1.0, 2.0])), math.inf)
    >>> site.answer(CoverageQuery(2.5, 0, (3,)))
    CoverageCount(covered=2, values=(3.0,))
    """

    __slots__ = ()

    kinds = (CoverageQuery,)

    def reply(self, round: int, query: Message) -> CoverageCount:
        """Answer a query of the one round; a retry gets the same."""
        self._check_round(round)
        if not isinstance(query, CoverageQuery):
            raise BadInput("this site is asked how many scores are covered; correct the query.")
        return self.answer(query)

    def answer(self, query: CoverageQuery) -> CoverageCount:
        """Return the count, and scores where the site is not private; a retry gets the same, another query none."""
        if math.isnan(query.threshold):
            raise BadInput("the threshold of the query is not a number; correct the query.")
        if not 0 <= query.noise <= _MOST_NOISE:
            raise BadInput("the integer of the noise is out of range; make it of the study's epsilon.")
        noise = NoisyCount(query.noise) if query.noise else None
        if not within(None if noise is None else noise.ratio, self._budget):
            raise BadInput(
                f"the count would cost a record more than this site's budget of {self._budget:.6g}; ask for more noise."
            )
        if query.orders:
            if self._budget != math.inf:
                raise BadInput(f"this site has a budget of {self._budget:g}; ask it for a count, not for scores.")
            self._check_orders(query.orders)

        def drawn() -> CoverageCount:
            values = order_values(self._scores, query.orders)
            if noise is None:
                return CoverageCount(count_covered(self._scores, query.threshold), values)
            return CoverageCount(noisy_covered(self._scores, query.threshold, noise, self._dice), values)

        return self._once(query, CoverageCount, drawn)


def count_covered(scores: Records, threshold: float) -> int:
    """Count the scores at or below a threshold.

    >>> count_covered(Records(np.array([1.0, 2.0, 3.0])), 2.0)
    2
    """
    return int(np.count_nonzero(scores.values() <= threshold))


def noisy_covered(scores: Records, threshold: float, noise: NoisyCount, dice: RandomSource) -> int:
    """Count the scores at or below a threshold and add noise; the sum may fall outside 0 to the number of scores.

    Parameters
    ----------
    scores
        The scores of a site.
    threshold
        The threshold that was broadcast.
    noise
        The distribution of the noise.
    dice
        The source of words.

    Examples
    --------
    >>> from sottovoce.sim.randomness import dice
    >>> noisy_covered(Records(np.arange(100.0)), 89.0, noisy_count(1.0), dice(1))
    92
    """
    up, down = geometric(noise.numerator, 2, dice)
    return count_covered(scores, threshold) + int(up - down)


class PooledScores:
    """Hold the sorted scores of every site as long as a report is being made.

    Parameters
    ----------
    scores
        The scores of each site.

    Examples
    --------
    >>> pooled = PooledScores([Records(np.array([1.0, 4.0])), Records(np.array([2.0, 3.0]))])
    >>> len(pooled), pooled.shares_at(np.array([0, 3])).tolist()
    (4, [[0.25, 0.75], [0.0, 1.0]])
    >>> pooled.averages(np.array([0, 3]), np.array([1.0, 0.0])).round(3).tolist()
    [0.5, 0.5]
    """

    __slots__ = ("_distinct", "_sorted")

    def __init__(self, scores: Sequence[Records]) -> None:
        self._sorted = [np.sort(each.values()) for each in scores]
        self._distinct = np.unique(np.concatenate(self._sorted))

    def __len__(self) -> int:
        return int(self._distinct.size)

    def __repr__(self) -> str:
        return f"PooledScores({len(self._sorted):,} sites, values hidden)"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("the scores of all sites cannot be pickled or copied: they are kept for one report")

    def shares_at(self, ranks: Ints) -> Floats:
        """Return the part of each site's scores below the distinct scores of some ranks.

        A score counts half below itself: else a site's own would lie, on average, half a score too low.
        """
        points = self._distinct[ranks]
        parts = []
        for values in self._sorted:
            below = np.searchsorted(values, points, side="left")
            own = np.searchsorted(values, points, side="right") > below
            parts.append((below + 0.5 * own) / values.size)
        return np.array(parts)

    def averages(self, ranks: Ints, heights: Floats) -> Floats:
        """Return the average over each site's scores of a function given at some ranks, linear between them."""
        places = (np.searchsorted(self._distinct, values) for values in self._sorted)
        return np.array([np.interp(place, ranks, heights).mean() for place in places])

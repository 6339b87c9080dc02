"""The scores of all sites in one place, for a report that is not private: which part of each lies below a score."""

from collections.abc import Sequence
from typing import NoReturn, SupportsIndex

import numpy as np

from sottovoce.client.record import Records
from sottovoce.core.arrays import Floats, Ints


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

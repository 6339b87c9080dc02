"""How many scores of a site lie in each cell of a public grid: counts that never leave the site."""

import numpy as np

from sottovoce.client.record import Records
from sottovoce.core.arrays import Floats, Ints

PIECE = 1 << 16


def cell_counts(scores: Records, edges: Floats) -> Ints:
    """Count the scores in each cell: up to the first edge, above each edge up to the next, above the last edge.

    Parameters
    ----------
    scores
        The scores of a site.
    edges
        The edges of the public grid, increasing.

    Examples
    --------
    >>> cell_counts(Records(np.array([0.5, 1.0, 1.5, 9.0])), np.array([1.0, 2.0])).tolist()
    [2, 1, 1]
    """
    values, counts = scores.values(), np.zeros(len(edges) + 1, dtype=np.int64)
    for start in range(0, len(values), PIECE):
        # a score on an edge belongs to the cell below it: as many edges as are smaller
        place = np.searchsorted(edges, values[start : start + PIECE], side="left")
        counts += np.bincount(place, minlength=len(counts))
    return counts

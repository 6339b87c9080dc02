"""A site's one private message: a cell of the public grid, drawn from the law of a selection."""

from itertools import accumulate

import numpy as np

from sottovoce.client.conformal.cells import cell_counts
from sottovoce.client.conformal.noise import geometric, uniform_below
from sottovoce.client.record import Records
from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.random_source import RandomSource
from sottovoce.protocol.selection.base import WeightedSelection
from sottovoce.protocol.selection.sparse_vector import SparseVector


def select(scores: Records, edges: Floats, mechanism: SparseVector | WeightedSelection, dice: RandomSource) -> int:
    """Draw the cell that a site names; its counts are forgotten.

    Parameters
    ----------
    scores
        The scores of the site.
    edges
        The edges of the public grid, increasing.
    mechanism
        The selection, made for the number of scores and of cells.
    dice
        The source of words.

    Examples
    --------
    >>> from sottovoce.protocol.selection.sparse_vector import sparse_vector
    >>> from sottovoce.sim.randomness import dice
    >>> scores, edges = Records(np.linspace(0, 1, 500)), np.linspace(0, 1, 21)
    >>> select(scores, edges, sparse_vector(500, 451, 22, 4.0), dice(1))
    18
    """
    return draw(mechanism, cell_counts(scores, edges), dice)


def draw(mechanism: SparseVector | WeightedSelection, counts: Ints, dice: RandomSource) -> int:
    """Draw a cell from the law of a mechanism at some counts, in integer arithmetic."""
    if isinstance(mechanism, SparseVector):
        return _scan(mechanism, counts, dice)
    sums = list(accumulate(mechanism.weights(counts)))
    throw = uniform_below(sums[-1], dice)
    return sum(throw >= edge for edge in sums)


def _scan(mechanism: SparseVector, counts: Ints, dice: RandomSource) -> int:
    """Return the highest cell that stops; noise is drawn for all of them, so the time does not tell which."""
    noise = geometric(mechanism.query, mechanism.cells - 1, dice)
    threshold = geometric(mechanism.threshold, 1, dice)[0]
    stops = np.flatnonzero(noise - threshold >= mechanism.needs(counts))
    return mechanism.cells - 1 - int(stops[0]) if len(stops) else 0

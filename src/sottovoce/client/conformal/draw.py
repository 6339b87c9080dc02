"""A site's private draws: its counts on a public grid, exact noise from 64-bit words, and one cell of a selection."""

from itertools import accumulate

import numpy as np

from sottovoce.client.mapped import blocks
from sottovoce.client.record import Records
from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.random_source import RandomSource
from sottovoce.protocol.selection.base import WeightedSelection
from sottovoce.protocol.selection.geometric import WORD
from sottovoce.protocol.selection.sparse_vector import SparseVector

PIECE = 1 << 16  # scores, or words, held at once


def select(scores: Records, edges: Floats, mechanism: SparseVector | WeightedSelection, dice: RandomSource) -> int:
    """Draw the cell that a site names; its counts are forgotten."""
    return draw(mechanism, cell_counts(scores, edges), dice)


def cell_counts(scores: Records, edges: Floats) -> Ints:
    """Count the scores in each cell: up to the first edge, above each edge up to the next, above the last edge."""
    counts = np.zeros(len(edges) + 1, dtype=np.int64)
    for piece in blocks(scores.values(), PIECE):
        # a score on an edge belongs to the cell below it: as many edges as are smaller
        place = np.searchsorted(edges, piece, side="left")
        counts += np.bincount(place, minlength=len(counts))
    return counts


def draw(mechanism: SparseVector | WeightedSelection, counts: Ints, dice: RandomSource) -> int:
    """Draw a cell from the distribution of a mechanism at some counts, in integer arithmetic."""
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


def geometric(numerator: int, n: int, dice: RandomSource) -> Ints:
    """Draw noise with P(noise >= k) = (numerator / 2^64)^k: the lengths of runs of words below the numerator."""
    if not 0 < numerator < WORD:
        raise ValueError("the numerator of geometric noise lies between 0 and 2^64")
    least, ends, read, ended = np.uint64(numerator), [np.array([-1])], 0, 0
    piece = min(PIECE, 2 * n * WORD // (WORD - numerator) + 16)
    while ended < n:
        ends.append(read + np.flatnonzero(dice.words(piece) >= least))
        read += piece
        ended += len(ends[-1])
    return np.diff(np.concatenate(ends)[: n + 1]) - 1


def uniform_below(bound: int, dice: RandomSource) -> int:
    """Draw an integer from 0 to ``bound - 1``, each equally likely."""
    # one word more than needed: a second throw has a chance of 2^-64, so the time tells nothing about the bound
    words = bound.bit_length() // 64 + 2
    whole = 1 << 64 * words
    while True:
        throw = int.from_bytes(dice.words(words).astype("<u8").tobytes(), "little")
        if throw < whole - whole % bound:
            return throw % bound

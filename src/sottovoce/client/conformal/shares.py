"""A site's part of a secure sum: the counts of its scores in the cells of a public grid, plus its share of the noise.

A single message is **not** private by the stated epsilon: its noise is one share of many. The messages are integers
modulo 2^32 so that a secure aggregation can mask them (`masks`); the epsilon holds for the sum over all sites alone.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sottovoce.client.conformal.cells import cell_counts
from sottovoce.client.conformal.noise import geometric
from sottovoce.client.ledger import Ledger
from sottovoce.client.record import Records
from sottovoce.core.arrays import Ints
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource, SystemEntropy
from sottovoce.protocol.messages import Query
from sottovoce.protocol.selection.base import grid
from sottovoce.protocol.selection.geometric import WORD, Polya

ROUND = 1  # there is only one
Vector = npt.NDArray[np.uint32]


class SharingSite:
    """A place that holds scores and gives its share of one secure sum."""

    __slots__ = ("_dice", "_ledger", "_noise", "_scores")

    def __init__(self, scores: Records, noise: Polya, budget: float, dice: RandomSource | None = None) -> None:
        if not noise.epsilon <= budget:
            raise BadInput(
                f"the sum would cost epsilon {noise.epsilon:.6g}, more than this site's budget of {budget:.6g}; ask "
                "for more noise."
            )
        self._scores = scores
        self._noise = noise
        self._dice = SystemEntropy() if dice is None else dice
        self._ledger = Ledger(scores.size)

    def __repr__(self) -> str:
        return f"SharingSite({self._scores.size:,} records, {self._ledger.spent:,} answered)"

    @property
    def size(self) -> int:
        """Return how many records the site holds."""
        return self._scores.size

    @property
    def spent(self) -> int:
        """Return how many records have answered."""
        return self._ledger.spent

    @property
    def private(self) -> bool:
        """Tell whether nobody can reproduce the noise and its sum has a finite epsilon."""
        return self._dice.private and math.isfinite(self._noise.epsilon)

    def answer(self, edges: Sequence[float]) -> Vector:
        """Return the noisy counts above each edge up to the next; a retry gets the same, another grid is refused."""
        line = grid(edges)
        query = Query(ROUND, tuple(line.tolist()), (self.size,) + (0,) * (line.size - 1))
        kept = self._ledger.replay(query)
        if kept is None:
            self._ledger.spend(query)
            kept = noisy_counts(cell_counts(self._scores, line), self._noise, self._dice).astype("<u4").tobytes()
            self._ledger.remember(kept)
        return np.frombuffer(kept, dtype="<u4").astype(np.uint32)


def noisy_counts(counts: Ints, noise: Polya, dice: RandomSource) -> Vector:
    """Return the counts of all cells but the lowest with a share of noise, modulo 2^32.

    Parameters
    ----------
    counts
        How many scores lie in each cell, the lowest first; it is not sent.
    noise
        The law of the share.
    dice
        The source of words.

    Examples
    --------
    >>> from sottovoce.protocol.selection.geometric import polya
    >>> from sottovoce.sim.randomness import dice
    >>> noisy_counts(np.array([90, 7, 3]), polya(math.inf, 5), dice(1)).tolist()
    [7, 3]
    """
    ends = len(counts) - 1
    up, down = draw_polya(noise, ends, dice), draw_polya(noise, ends, dice)
    return np.asarray(np.mod(counts[1:] + up - down, 1 << 32), dtype=np.uint32)


def draw_polya(noise: Polya, n: int, dice: RandomSource) -> Ints:
    """Draw Pólya variables without error: a geometric proposal k survives k throws of ``noise.odds``.

    Parameters
    ----------
    noise
        The law of the share.
    n
        How many draws.
    dice
        The source of words.

    Examples
    --------
    >>> from sottovoce.protocol.selection.geometric import polya
    >>> from sottovoce.sim.randomness import dice
    >>> draw_polya(polya(0.5, 3), 6, dice(6)).tolist()
    [2, 0, 4, 1, 0, 0]
    """
    drawn = np.zeros(n, dtype=np.int64)
    if noise.numerator == 0:
        return drawn
    waiting = np.arange(n)
    while waiting.size:
        proposed = geometric(noise.numerator, waiting.size, dice)
        survived = _survive(proposed, noise, dice)
        drawn[waiting[survived]] = proposed[survived]
        waiting = waiting[~survived]
    return drawn


def _survive(counts: Ints, noise: Polya, dice: RandomSource) -> npt.NDArray[np.bool_]:
    """Tell which proposals are kept, each with probability weight(count) / ratio^count."""
    alive = np.ones(len(counts), dtype=np.bool_)
    for i in range(int(np.max(counts, initial=0))):
        thrown = np.flatnonzero(alive & (counts > i))
        if not thrown.size:
            break
        alive[thrown] = _throw(*noise.odds(i), thrown.size, dice)
    return alive


def _throw(numerator: int, denominator: int, n: int, dice: RandomSource) -> npt.NDArray[np.bool_]:
    """Throw ``n`` coins that show true with probability numerator / denominator exactly."""
    last = np.uint64(WORD - 1 - WORD % denominator)  # words beyond it would favour the small remainders: throw again
    words = dice.words(n).copy()
    while (beyond := np.flatnonzero(words > last)).size:
        words[beyond] = dice.words(beyond.size)
    return np.asarray(words % np.uint64(denominator) < np.uint64(numerator))

"""Which sites answer in a round when only a part of them does: a public coin, drawn by whoever runs the rounds."""

from collections.abc import Callable

import numpy as np
from numba import njit, uint64

from sottovoce.core.arrays import Bools, Words
from sottovoce.core.random_source import RandomSource, SystemEntropy
from sottovoce.server.quantile.recursion.study import WalkStudy


class Coin:
    """Draws the sites of each round, in order."""

    def __init__(self, study: WalkStudy, dice: RandomSource | None = None) -> None:
        self._sites, self._chosen = len(study.channels), study.chosen
        self._dice = SystemEntropy() if dice is None else dice

    def masks(self, rounds: int) -> Bools:
        """Return who answers in the next rounds, (rounds, sites); no rows if everybody always does."""
        if self._chosen == self._sites:
            return np.empty((0, self._sites), dtype=np.bool_)
        masks = np.zeros((rounds, self._sites), dtype=np.bool_)
        draw(self._dice.words(rounds * self._chosen), self._chosen, masks)
        return masks

    def by_round(self, rounds: int) -> Callable[[int], Bools | None]:
        """Draw all rounds at once, and return who answers in each, counted from 1 (`WalkMethod`)."""
        masks = self.masks(rounds)
        return lambda number: masks[number - 1] if len(masks) else None


@njit(cache=True)
def draw(words: Words, chosen: int, masks: Bools) -> None:
    """Mark ``chosen`` sites in each row, every subset with the same chance (Floyd's sampling without replacement)."""
    rounds, sites = masks.shape
    for i in range(rounds):
        for j in range(chosen):
            last = sites - chosen + j
            pick = np.int64(words[i * chosen + j] % uint64(last + 1))
            masks[i, last if masks[i, pick] else pick] = True

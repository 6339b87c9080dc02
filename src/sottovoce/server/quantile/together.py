"""Several conversations at once: one query a round carries the points of all of them.

Every record still answers one point of one conversation, so the conversations have disjoint records and independent
answers, and together take as many rounds as the longest alone.
"""

from collections.abc import Generator, Sequence
from typing import TypeVar

import numpy as np

from sottovoce.core.arrays import Ints
from sottovoce.server.quantile.asking import Ask

Outcome = TypeVar("Outcome")


def together(talks: Sequence[Generator[Ask, Ints, Outcome]]) -> Generator[Ask, Ints, list[Outcome]]:
    """Join conversations into one whose outcome is the list of theirs."""
    outcomes: dict[int, Outcome] = {}
    asks = {i: next(talk) for i, talk in enumerate(talks)}
    while asks:
        points = np.concatenate([ask.points for ask in asks.values()])
        counts = np.concatenate([ask.counts for ask in asks.values()], axis=1)
        ones = yield Ask(points, counts)
        start = 0
        for i, ask in list(asks.items()):
            stop = start + len(ask.points)
            try:
                asks[i] = talks[i].send(ones[:, start:stop])
            except StopIteration as end:
                outcomes[i] = end.value
                del asks[i]
            start = stop
    return [outcomes[i] for i in range(len(talks))]

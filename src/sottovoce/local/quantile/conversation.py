"""The one loop of the staged design: ask every site, hand the tallies back, until the procedure has its answer."""

from collections.abc import Callable, Generator, Sequence
from typing import Protocol, TypeVar

import numpy as np

from sottovoce.core.arrays import Ints
from sottovoce.protocol.messages import Query, Tally
from sottovoce.server.quantile.asking import Ask

Outcome = TypeVar("Outcome")


class Door(Protocol):
    """What the loop needs of a site, in this process or behind a network."""

    def tally(self, query: Query) -> Tally:
        """Answer a frozen query."""


def converse(
    procedure: Generator[Ask, Ints, Outcome], sites: Sequence[Door], progress: Callable[[int], None] | None = None
) -> tuple[Outcome, int]:
    """Drive a procedure against sites; return its outcome and the number of rounds.

    ``progress`` is told after each round how many records have just answered.
    """
    rounds = 0
    ask = next(procedure)
    while True:
        rounds += 1
        points = tuple(float(point) for point in ask.points)
        ones = np.zeros(ask.counts.shape, dtype=np.int64)
        for k, site in enumerate(sites):
            if ask.counts[k].any():
                ones[k] = site.tally(Query(rounds, points, tuple(int(n) for n in ask.counts[k]))).ones
        if progress is not None:
            progress(int(ask.counts.sum()))
        try:
            ask = procedure.send(ones)
        except StopIteration as stop:
            return stop.value, rounds

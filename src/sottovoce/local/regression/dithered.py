"""The loop of the dithered regression: rows in, each asked once; looks at their fixed numbers of people.

The compiled loop calls the same functions as message by message, on the same dice.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.client.order import Key, bits_for, order_key, places
from sottovoce.client.regression.loop import ask_piece
from sottovoce.client.regression.rows import Rows
from sottovoce.core.kernels import say_slow
from sottovoce.core.random_source import RandomSource
from sottovoce.protocol.regression.blocks import tables_of
from sottovoce.protocol.regression.dithered.state import DitheredState, init
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.server.regression.dithered.fit import DitheredFit

CHUNK = 1 << 13  # people whose dice are thrown at once


class DitheredRun:
    """One run: a study, and the state that people's reports have brought it to; no record stays."""

    def __init__(self, study: DitheredStudy) -> None:
        self.study = study
        self.state: DitheredState = init(study)
        self._tables = tables_of(study.channel)

    @property
    def people(self) -> int:
        """Return how many people were asked."""
        return self.state.people

    def ask(
        self,
        rows: Rows,
        dice: RandomSource,
        shuffle: "bool | Order" = True,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Ask every row once, in random order or, without ``shuffle``, in their own; or go on in an order."""
        walk(rows, dice, shuffle, 2 + max(self.study.channel.widest, 1), self._piece, progress)

    def _piece(self, rows: Rows, where: npt.NDArray[np.uint64], words: npt.NDArray[np.uint64]) -> None:
        letters = np.empty(len(where), dtype=np.int64)
        self.state = ask_piece(self.study, self._tables, self.state, rows, where, words, letters)

    def estimate(self) -> DitheredFit:
        """Return the estimate from all people so far; what is asked later does not change it."""
        return DitheredFit.of(self.study, self.state)


class Order(NamedTuple):
    """In which order rows are asked (no key: their own), and how many have been."""

    key: Key | None
    start: int = 0


def order_for(dice: RandomSource, shuffle: bool) -> Order:
    """Draw a random order, or take the rows' own."""
    return Order(order_key(dice) if shuffle else None)


def walk(
    rows: Rows,
    dice: RandomSource,
    shuffle: bool | Order,
    throws: int,
    piece: Callable[[Rows, npt.NDArray[np.uint64], npt.NDArray[np.uint64]], None],
    progress: Callable[[int], None] | None = None,
) -> None:
    """Hand out the rows piece by piece with ``throws`` words a person."""
    say_slow(rows.size)
    order = shuffle if isinstance(shuffle, Order) else order_for(dice, shuffle)
    for start in range(order.start, rows.size, CHUNK):
        where = people(rows.size, order.key, start, min(CHUNK, rows.size - start))
        words = dice.words(len(where) * throws).reshape(len(where), throws)
        words.setflags(write=False)  # whoever threw the dice: the loop is compiled for such words alone
        piece(rows, where, words)
        if progress is not None:
            progress(len(where))


def people(n: int, key: Key | None, start: int, count: int) -> npt.NDArray[np.uint64]:
    """Return which rows stand at some places of an order of ``n``."""
    where = np.arange(start, start + count, dtype=np.uint64)
    if key is not None:
        places(n, bits_for(n), key, start, where)
    return where

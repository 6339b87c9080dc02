"""The loop of the online regression: rows in, each asked once; looks at their fixed numbers of people."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from sottovoce.client.order import bits_for, order_key, places
from sottovoce.client.randomness import Dice
from sottovoce.client.rows import Rows
from sottovoce.engine.online_fused import stretch
from sottovoce.estimators.online import State, init, look
from sottovoce.estimators.online_fit import OnlineFit
from sottovoce.estimators.online_study import OnlineStudy
from sottovoce.protocol.block_tables import tables_of

CHUNK = 1 << 13  # people whose dice are thrown at once


class Online:
    """One run: a study, and the state that people's reports have brought it to; no record stays."""

    def __init__(self, study: OnlineStudy) -> None:
        self.study = study
        self.state: State = init(study)
        self._tables = tables_of(study.channel)

    @property
    def people(self) -> int:
        """Return how many people were asked."""
        return self.state.people

    def ask(self, rows: Rows, dice: Dice, shuffle: bool = True, progress: Callable[[int], None] | None = None) -> None:
        """Ask every row once, in random order or, without ``shuffle``, in their own."""
        walk(rows, dice, shuffle, 2 + max(self.study.channel.widest, 1), self._piece, progress)

    def _piece(self, rows: Rows, where: npt.NDArray[np.uint64], words: npt.NDArray[np.uint64]) -> None:
        done = 0
        while done < len(where):
            state = self.state
            n = min(len(where) - done, state.until - state.people)
            part = slice(done, done + n)
            stretch(
                self._tables,
                state.orders,
                state.sums,
                rows.features(),
                rows.response(),
                where[part],
                words[part],
                state.people,
                self.study.start,
                state.points,
            )
            self.state = state._replace(people=state.people + n)
            done += n
            if self.state.people == self.state.until:
                self.state = look(self.study, self.state)

    def estimate(self) -> OnlineFit:
        """Return the estimate from all people so far; what is asked later does not change it."""
        state = self.state
        kept = state._replace(points=state.points.copy(), sums=type(state.sums)(*(part.copy() for part in state.sums)))
        return OnlineFit(self.study, kept)


def walk(
    rows: Rows,
    dice: Dice,
    shuffle: bool,
    throws: int,
    piece: Callable[[Rows, npt.NDArray[np.uint64], npt.NDArray[np.uint64]], None],
    progress: Callable[[int], None] | None = None,
) -> None:
    """Hand out the rows piece by piece with ``throws`` words a person."""
    n = rows.size
    key = order_key(dice) if shuffle else None
    bits = bits_for(n)
    for start in range(0, n, CHUNK):
        count = min(CHUNK, n - start)
        where = np.arange(start, start + count, dtype=np.uint64)
        if key is not None:
            places(n, bits, key, start, where)
        piece(rows, where, dice.words(count * throws).reshape(count, throws))
        if progress is not None:
            progress(count)

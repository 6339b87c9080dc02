"""The loop of the paper's recursion: rows in, each asked once, averages out."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from sottovoce.client.regression.rows import Rows
from sottovoce.core.arrays import Words
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource
from sottovoce.inference.regression.vector_normalised import VectorMemory, add_all
from sottovoce.local.regression.dithered import walk
from sottovoce.local.regression.lent import make_room
from sottovoce.local.regression.liu_hu_compiled import segment
from sottovoce.server.regression.liu_hu.fit import LiuHuFit
from sottovoce.server.regression.liu_hu.step import LiuHuState, chains_of, inherited, init
from sottovoce.server.regression.study import LiuHuStudy


class LiuHuRun:
    """One run: a study, and the state that people's reports have brought it to; no record stays.

    ``people`` is how many there will be, which only a HiGrad tree has to know beforehand.
    """

    def __init__(self, study: LiuHuStudy, people: int | None = None) -> None:
        self.study = study
        self.chains = chains_of(study, people)
        self._start = np.ascontiguousarray(study.start, dtype=np.float64)
        self._room = make_room(study.levels, study.d)
        self.state: LiuHuState = init(study, self.chains)

    @property
    def people(self) -> int:
        """Return how many people were asked."""
        return self.state.people

    def ask(
        self, rows: Rows, dice: RandomSource, shuffle: bool = True, progress: Callable[[int], None] | None = None
    ) -> None:
        """Ask every row once, in random order or, without ``shuffle``, in their own."""
        if rows.p != self.study.channel.p:
            raise BadInput(f"the rows have {rows.p} covariates, but the study has {self.study.channel.p}.")
        tree = self.chains.tree
        if tree is not None and (self.people or rows.size != tree.n):
            raise BadInput(
                f"higrad needs all of its {tree.n:,} people at once, but {self.people:,} were asked before and "
                f"{rows.size:,} are given now; use fit, or another inference."
            )
        walk(rows, dice, shuffle, 2 + max(self.study.channel.widest, 1), self._piece, progress)

    def _piece(self, rows: Rows, where: npt.NDArray[np.uint64], words: Words) -> None:
        study, chains, done = self.study, self.chains, 0
        while done < len(where):
            state = self.state
            n = min(len(where) - done, chains.at(state.people).stop - state.people)
            part = slice(done, done + n)
            turns, times = chains.deal(state.people, n)
            points = inherited(chains, state.people, state.points)
            path = np.empty((study.levels, n if state.memories else 0, study.d))
            with np.errstate(over="ignore"):  # words wrap around, which only matters where nothing is compiled
                segment(
                    study.tables,
                    rows.features(),
                    rows.response(),
                    where[part],
                    words[part],
                    turns,
                    study.steps(times),
                    self._start,
                    study.bounds,
                    points,
                    state.totals,
                    path,
                    self._room,
                )
            memories = tuple(_looked(m, p) for m, p in zip(state.memories, path, strict=False))
            self.state = LiuHuState(state.people + n, points, state.totals, memories)
            done += n

    def estimate(self) -> LiuHuFit:
        """Return the estimate from all people so far."""
        state = self.state
        memories = tuple(VectorMemory(m.n, *(part.copy() for part in m[1:])) for m in state.memories)
        now = LiuHuState(state.people, state.points.copy(), state.totals.copy(), memories)
        return LiuHuFit(self.study, self.chains, now)


def _looked(memory: VectorMemory, path: npt.NDArray[np.float64]) -> VectorMemory:
    n, reference, total, first, outer = memory
    return VectorMemory(add_all(path, n, reference, total, first, outer), reference, total, first, outer)

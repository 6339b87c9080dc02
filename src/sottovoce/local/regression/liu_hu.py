"""The loop of the paper's recursion: rows in, each asked once, averages out.

The compiled loop calls the same functions as message by message, on the same dice.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from sottovoce.client.regression.lent import Room, lent, make_room
from sottovoce.client.regression.randomize_row import randomize_row, show
from sottovoce.client.regression.rows import Rows
from sottovoce.core.arrays import Floats, Ints, Words
from sottovoce.core.errors import BadInput
from sottovoce.core.kernels import njit
from sottovoce.core.random_source import RandomSource
from sottovoce.inference.regression.vector_normalised import VectorMemory, add_all
from sottovoce.local.regression.dithered import walk
from sottovoce.protocol.regression.blocks import FORM, OPEN, Tables
from sottovoce.protocol.regression.decode import decode
from sottovoce.protocol.regression.questions import choose
from sottovoce.server.regression.liu_hu.fit import LiuHuFit
from sottovoce.server.regression.liu_hu.step import LiuHuState, chains_of, inherited, init, move
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


@njit(cache=True, nogil=True, error_model="numpy")
def segment(
    tables: Tables,
    features: Floats,
    response: Floats,
    where: npt.NDArray[np.uint64],
    words: Words,
    chains: Ints,
    steps: Floats,
    start: Floats,
    bounds: Floats,
    points: Floats,
    totals: Floats,
    path: Floats,
    room: Room,
) -> None:
    """Ask the people ``where`` one after another, each at the point of their chain, which their step then moves.

    Either the points reached are written to ``path`` (levels, people, d) or, where it is empty, summed up.
    """
    upto, plan, faces, cuts, score = lent(tables[0]), lent(tables[1]), lent(tables[2]), lent(tables[3]), lent(tables[4])
    read, matrix, radius = lent(tables[5]), lent(tables[6]), tables[7]
    features, response, where, words = lent(features), lent(response), lent(where), lent(words)
    chains, steps, start, low, high = lent(chains), lent(steps), lent(start), lent(bounds[0]), lent(bounds[1])
    points, totals, path = lent(points), lent(totals), lent(path)
    chosen, index, values = lent(room[0]), lent(room[1]), lent(room[2])
    _, levels, d = points.shape
    p, keep = d - 1, path.shape[1] > 0
    for i in range(len(where)):
        who, at = where[i], chains[i]
        block = choose(upto, plan, p, words[i, 0], chosen)
        if plan[block, FORM] == OPEN:
            found = show(score, features, response, who, points, at, index, values)
        else:
            letter = randomize_row(
                plan, faces, cuts, score, radius, block, chosen, features, response, who, points, at, words, i
            )
            found = decode(plan, score, read, matrix, radius, block, chosen, letter, index, values)
        # the step is the chain's, and so is the point: chains share nothing but the study
        move(points, at, steps[i], found, index, values, low, high)
        if keep:
            for level in range(levels):
                for j in range(d):
                    path[level, i, j] = points[at, level, j]
        else:
            for level in range(levels):
                for j in range(d):
                    totals[at, level, j] += points[at, level, j] - start[level, j]

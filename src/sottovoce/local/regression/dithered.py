"""The loop of the dithered regression: rows in, each asked once; looks at their fixed numbers of people.

The compiled loop calls the same functions as message by message, on the same dice.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.client.order import Key, bits_for, order_key, places
from sottovoce.client.regression.randomize_row import randomize_product, randomize_row, show
from sottovoce.client.regression.rows import Rows
from sottovoce.core.arrays import Floats, Words
from sottovoce.core.kernels import njit, say_slow
from sottovoce.core.random_source import RandomSource
from sottovoce.local.regression.lent import Room, lent, make_room
from sottovoce.protocol.regression.blocks import FORM, OPEN, Tables, tables_of
from sottovoce.protocol.regression.questions import MOMENT, QueryDesign, aim, choose, which_product
from sottovoce.server.regression.decode import decode
from sottovoce.server.regression.dithered.fit import DitheredFit
from sottovoce.server.regression.dithered.state import DitheredState, init, look
from sottovoce.server.regression.dithered.step import InformationGain, Sums, learn
from sottovoce.server.regression.study import DitheredStudy

CHUNK = 1 << 13  # people whose dice are thrown at once


class DitheredRun:
    """One run: a study, and the state that people's reports have brought it to; no record stays."""

    def __init__(self, study: DitheredStudy) -> None:
        self.study = study
        self.state: DitheredState = init(study)
        self._tables = tables_of(study.channel)
        self._room = make_room(study.levels, study.d)

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
        done = 0
        while done < len(where):
            state = self.state
            n = min(len(where) - done, state.until - state.people)
            part = slice(done, done + n)
            with np.errstate(over="ignore"):  # not compiled, the mixing of a public word wraps round aloud
                segment(
                    self._tables,
                    state.design,
                    state.gain,
                    state.sums,
                    rows.features(),
                    rows.response(),
                    where[part],
                    words[part],
                    state.people,
                    self.study.start,
                    state.points,
                    self._room,
                )
            self.state = state._replace(people=state.people + n)
            done += n
            if self.state.people == self.state.until:
                self.state = look(self.study, self.state)

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


@njit(cache=True, nogil=True, error_model="numpy")
def segment(
    tables: Tables,
    design: QueryDesign,
    gain: InformationGain,
    sums: Sums,
    features: Floats,
    response: Floats,
    where: npt.NDArray[np.uint64],
    words: Words,
    first: int,
    reference: Floats,
    points: Floats,
    room: Room,
) -> None:
    """Ask the people ``where`` one after another; ``first`` is the number of the first of them."""
    upto, plan, faces, steps = lent(tables[0]), lent(tables[1]), lent(tables[2]), lent(tables[3])
    score, read, matrix, radius = lent(tables[4]), lent(tables[5]), lent(tables[6]), tables[7]
    directions, sizes, beside = lent(design[0]), lent(design[1]), lent(design[2])
    gains, needs, limit = lent(gain[0]), lent(gain[1]), gain[2]
    counts, vectors, squares, moments = lent(sums[0]), lent(sums[1]), lent(sums[2]), lent(sums[3])
    features, response, where, words = lent(features), lent(response), lent(where), lent(words)
    reference, points = lent(reference), lent(points)
    chosen, index, values, along = lent(room[0]), lent(room[1]), lent(room[2]), lent(room[3])
    _, _, d = points.shape
    p = d - 1
    for i in range(len(where)):
        word, who = words[i, 0], where[i]
        # the public part: what this person is asked, and where
        kind = aim(directions, sizes, beside, word, points)
        if kind == MOMENT:
            j, k = which_product(d, word)
            bit = randomize_product(faces, len(upto), features, who, j, k, words, i)
            counts[MOMENT] += 1.0
            moments[0, j, k] += 1.0
            moments[1, j, k] += bit
            continue
        block = choose(upto, plan, p, word, chosen)
        at = min(kind, 1)
        # the person's part: a letter (or, without a channel, the exact score), which the server decodes
        if plan[block, FORM] == OPEN:
            found = show(score, features, response, who, points, at, index, values)
        else:
            letter = randomize_row(
                plan, faces, steps, score, radius, block, chosen, features, response, who, points, at, words, i
            )
            found = decode(plan, score, read, matrix, radius, block, chosen, letter, index, values)
        # the server's part: everybody is booked under the point they were asked about, which they then move
        learn(
            gains, needs, limit, counts, vectors, squares, kind, word, first + i, found, index, values, reference,
            points, 0, along,
        )  # fmt: skip

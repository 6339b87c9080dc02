"""The paper's recursion in one compiled loop: the same functions as message by message, on the same dice."""

import numpy as np
import numpy.typing as npt
from numba import njit

from sottovoce.client.regression.randomize_row import randomize_row, show
from sottovoce.core.arrays import Floats, Ints, Words
from sottovoce.local.regression.lent import Room, lent
from sottovoce.protocol.regression.blocks import FORM, OPEN, Tables
from sottovoce.protocol.regression.questions import choose
from sottovoce.server.regression.decode import decode
from sottovoce.server.regression.liu_hu.step import move


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
        move(points, at, steps[i], found, index, values, low, high)
        if keep:
            for level in range(levels):
                for j in range(d):
                    path[level, i, j] = points[at, level, j]
        else:
            for level in range(levels):
                for j in range(d):
                    totals[at, level, j] += points[at, level, j] - start[level, j]

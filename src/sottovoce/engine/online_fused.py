"""The online regression in one compiled loop: the same functions as message by message, on the same dice."""

import numpy as np
import numpy.typing as npt
from numba import njit

from sottovoce.client.randomness import Words
from sottovoce.client.speak import show, speak, speak_product
from sottovoce.estimators.hear import choose, hear
from sottovoce.estimators.online_step import Orders, aim, learn, which_product
from sottovoce.estimators.online_sums import MOMENT, Sums
from sottovoce.protocol.block_tables import FORM, OPEN, Tables

Floats = npt.NDArray[np.float64]


@njit(cache=True, nogil=True, error_model="numpy")
def stretch(
    tables: Tables,
    orders: Orders,
    sums: Sums,
    features: Floats,
    response: Floats,
    where: npt.NDArray[np.uint64],
    words: Words,
    first: int,
    reference: Floats,
    points: Floats,
) -> None:
    """Ask the people ``where`` one after another; ``first`` is the number of the first of them."""
    upto, plan, faces, steps, score, read, matrix, radius = tables
    gains, needs, directions, sizes, beside, limit = orders
    counts, vectors, squares, moments = sums
    _, levels, d = points.shape
    p = d - 1
    chosen, index = np.zeros(max(p, 1), dtype=np.int64), np.zeros(d, dtype=np.int64)
    values, move = np.zeros((levels, d)), np.zeros(d)
    for i in range(len(where)):
        word, who = words[i, 0], where[i]
        kind = aim(directions, sizes, beside, word, points)
        if kind == MOMENT:
            j, k = which_product(d, word)
            bit = speak_product(faces, len(upto), features, who, j, k, words, i)
            counts[MOMENT] += 1.0
            moments[0, j, k] += 1.0
            moments[1, j, k] += bit
            continue
        block = choose(upto, plan, p, word, chosen)
        at = min(kind, 1)
        if plan[block, FORM] == OPEN:
            found = show(score, features, response, who, points, at, index, values)
        else:
            letter = speak(
                plan, faces, steps, score, radius, block, chosen, features, response, who, points, at, words, i
            )
            found = hear(plan, score, read, matrix, radius, block, chosen, letter, index, values)
        person = first + i
        learn(
            gains,
            needs,
            limit,
            counts,
            vectors,
            squares,
            kind,
            word,
            person,
            found,
            index,
            values,
            reference,
            points,
            move,
        )

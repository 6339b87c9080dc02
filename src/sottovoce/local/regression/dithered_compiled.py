"""The dithered regression in one compiled loop: the same functions as message by message, on the same dice."""

import numpy as np
import numpy.typing as npt
from numba import njit

from sottovoce.client.regression.randomize_row import randomize_product, randomize_row, show
from sottovoce.core.arrays import Floats, Words
from sottovoce.local.regression.lent import Room, lent
from sottovoce.protocol.regression.blocks import FORM, OPEN, Tables
from sottovoce.protocol.regression.questions import MOMENT, QueryDesign, aim, choose, which_product
from sottovoce.server.regression.decode import decode
from sottovoce.server.regression.dithered.step import InformationGain, learn
from sottovoce.server.regression.dithered.sums import Sums


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

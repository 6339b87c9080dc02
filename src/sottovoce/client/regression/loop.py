"""The loop of the dithered regression over people at hand: each is asked once, and their letter moves the point.

It calls the functions that people and server call message by message, on the same dice.
"""

import numpy as np
import numpy.typing as npt

from sottovoce.client.regression.lent import Room, lent, make_room
from sottovoce.client.regression.randomize_row import (
    randomize_beside,
    randomize_pair,
    randomize_product,
    randomize_row,
    show,
    weighed_side,
)
from sottovoce.client.regression.rows import Rows
from sottovoce.core.arrays import Floats, Ints, Words
from sottovoce.core.kernels import njit
from sottovoce.protocol.regression.blocks import FORM, OPEN, Tables
from sottovoce.protocol.regression.decode import decode
from sottovoce.protocol.regression.dithered.state import DitheredState, look
from sottovoce.protocol.regression.dithered.step import InformationGain, Sums, book_bit, learn
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.protocol.regression.overheard import Overheard, overhear
from sottovoce.protocol.regression.questions import (
    PRODUCT,
    TIGHT,
    QueryDesign,
    choose,
    is_up,
    which_cell,
    which_product,
)


def ask_piece(
    study: DitheredStudy, tables: Tables, state: DitheredState, rows: Rows, where: Words, words: Words, letters: Ints
) -> DitheredState:
    """Ask the people ``where``, with looks at their fixed numbers; fill their letters, and return where that led.

    The sums and points of ``state`` are worked on in place.
    """
    room, done = make_room(study.levels, study.d), 0
    while done < len(where):
        n = min(len(where) - done, state.until - state.people)
        part = slice(done, done + n)
        with np.errstate(over="ignore"):  # not compiled, the mixing of a public word wraps round aloud
            segment(
                tables,
                study.overheard,
                state.design,
                state.gain,
                state.sums,
                rows.features(),
                rows.response(),
                where[part],
                words[part],
                state.people,
                study.start,
                state.point[None],
                room,
                letters[part],
            )
        state = state._replace(people=state.people + n)
        done += n
        if state.people == state.until:
            state = look(study, state)
    return state


@njit(cache=True, nogil=True, error_model="numpy")
def segment(
    tables: Tables,
    heard: Overheard,
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
    letters: Ints,
) -> None:
    """Ask the people ``where`` one after another and note their letters; ``first`` is the number of the first."""
    upto, plan, faces, steps = lent(tables[0]), lent(tables[1]), lent(tables[2]), lent(tables[3])
    score, read, matrix, radius = lent(tables[4]), lent(tables[5]), lent(tables[6]), tables[7]
    pairs, ranges, ways, aside = lent(design[0]), lent(design[1]), lent(design[2]), lent(design[3])
    shares = lent(design[4])
    gains, needs, limit = lent(gain[0]), lent(gain[1]), gain[2]
    counts, vectors, squares = lent(sums[0]), lent(sums[1]), lent(sums[2])
    products, told, turned, overheard = lent(sums[3]), lent(sums[4]), lent(sums[5]), lent(sums[6])
    weights, table, scales = lent(heard[0]), lent(heard[1]), lent(heard[2])
    shifts, every = lent(heard[3]), lent(heard[4])
    features, response, where, words = lent(features), lent(response), lent(where), lent(words)
    reference, points, letters = lent(reference), lent(points), lent(letters)
    chosen, index, values, along = lent(room[0]), lent(room[1]), lent(room[2]), lent(room[3])
    _, levels, d = points.shape
    p, beyond, each = d - 1, 1 + 2 * len(pairs), len(ways) // levels
    exact = plan[0, FORM] == OPEN
    for i in range(len(where)):
        word, who = words[i, 0], where[i]
        # the public part: what this person is asked, and where
        cell = which_cell(shares, word)
        if cell != TIGHT:
            if cell == PRODUCT:
                j, k = which_product(d, word)
                bit = randomize_product(faces, len(upto), features, who, j, k, words, i)
            elif cell < beyond:
                pair = (cell - 1) % len(pairs)
                bit = randomize_pair(faces, len(upto), features, who, pairs, pair, ranges, cell - 1, words, i)
            elif exact:  # what the bit would be on average
                way = cell - beyond
                value = weighed_side(
                    features, response[who], who, points, 0, way // each, ways, aside, way, is_up(word)
                )
                book_bit(products, told, turned, d, cell, word, 0.5 * (value + 1.0))
                letters[i] = 0
                continue
            else:
                way = cell - beyond
                bit = randomize_beside(
                    faces,
                    len(upto),
                    features,
                    response[who],
                    who,
                    points,
                    0,
                    way // each,
                    ways,
                    aside,
                    way,
                    words,
                    i,
                )
            book_bit(products, told, turned, d, cell, word, float(bit))
            letters[i] = bit
            continue
        block = choose(upto, plan, p, word, chosen)
        # the person's part: a letter (or, without a channel, the exact score), which the server decodes
        if plan[block, FORM] == OPEN:
            found = show(score, features, response, who, points, 0, index, values)
            letters[i] = 0
        else:
            letter = randomize_row(
                plan, faces, steps, score, radius, block, chosen, features, response, who, points, 0, words, i
            )
            found = decode(plan, score, read, matrix, radius, block, chosen, letter, index, values)
            overhear(plan, weights, table, scales, shifts, every, block, chosen, letter, first + i, overheard)
            letters[i] = letter
        # the server's part: everybody is booked under the point they were asked about, which they then move
        learn(
            gains, needs, limit, counts, vectors, squares, first + i, found, index, values, reference, points, 0, along
        )

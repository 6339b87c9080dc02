"""From one person's record to one letter: a pure function of (tables, block, record, points, dice).

The lowest faces of the die name a letter whatever the record; on the faces above them the record speaks. So, as in
`client.quantile.encode`, at epsilon 0 the same dice give any two populations equal letters.
"""

import numpy as np

from sottovoce.core.arrays import Floats, Ints, Words
from sottovoce.core.kernels import njit, uint64
from sottovoce.protocol.regression.blocks import (
    BOX,
    CELLS,
    COMMON,
    EXTRA,
    FORM,
    INSIDE,
    KINDS,
    LOW,
    POSITIONS,
    SLOPES,
    WIDTH,
    Tables,
    Weights,
)
from sottovoce.protocol.regression.questions import (
    LEAST,
    MOST,
    PRODUCT,
    STEP,
    TIGHT,
    QueryDesign,
    choose,
    is_up,
    which_cell,
    which_product,
)

WORD = 2.0**-53


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def side_of(features: Floats, who: int, response: float, points: Floats, at: int) -> int:
    """Return how many of the fitted quantiles lie at or above the response, the highest of them being meant.

    Where fitted quantiles cross, the place with the fewest contradictions is told: a mere count would drive them apart.
    """
    levels = points.shape[1]
    wrong = least = side = 0
    for level in range(levels - 1, -1, -1):
        fit = points[at, level, 0]
        for j in range(features.shape[1]):
            fit += points[at, level, 1 + j] * features[who, j]
        wrong += -1 if response <= fit else 1
        if wrong < least:
            least, side = wrong, levels - level
    return side


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def randomize_row(
    plan: Ints,
    faces: Weights,
    steps: Weights,
    score: Floats,
    radius: float,
    block: int,
    chosen: Ints,
    features: Floats,
    response: Floats,
    who: int,
    points: Floats,
    at: int,
    words: Words,
    i: int,
) -> int:
    """Return the letter of one person.

    ``chosen`` are the slopes that the block speaks of, from 1, and ``points[at]`` where the person is asked. Row ``i``
    of ``words`` holds the person's throws: the public one, one for the rounding of each slope, and the die last.
    """
    die = words[i, words.shape[1] - 1] >> uint64(2)  # 2^62 faces
    positions = plan[block, POSITIONS]
    if plan[block, FORM] == BOX:
        # the first faces are every letter's alike, ``low`` each; then those of the letters in the record's box; then
        # the few that do not divide, which are letter 0's
        if die < faces[block, COMMON]:
            return int(np.int64(die // faces[block, LOW]))
        rest = die - faces[block, COMMON]
        if rest >= faces[block, INSIDE]:
            return 0
        offset = np.int64(rest // faces[block, EXTRA])
        side = side_of(features, who, response[who], points, at)
        slopes, cells, width = plan[block, SLOPES], plan[block, CELLS], plan[block, WIDTH]
        scale = 1.0 if plan[block, KINDS] > 1 else score[0, side] / radius
        letter, radix = np.int64(0), np.int64(1)
        # the letter is the side and a cell for each slope, in mixed radix: the box's corner, moved by a uniform step
        for k in range(slopes):
            place = 0.5 * (scale * features[who, chosen[k] - 1] + 1.0) * (positions - 1)
            letter += radix * (rounded(place, positions, words[i, 1 + k]) + offset % width)
            offset //= width
            radix *= cells
        return int(letter + radix * side if plan[block, KINDS] > 1 else letter)
    # a matrix: row 0 has the faces that all symbols share, the others what each has beyond; find the letter by halves
    low, high, row = np.int64(0), np.int64(steps.shape[2] - 1), 0
    if die >= steps[block, 0, high]:
        die -= steps[block, 0, high]
        side = side_of(features, who, response[who], points, at)
        place = 0.5 * (features[who, chosen[0] - 1] + 1.0) * (positions - 1)
        row = 1 + side * positions + rounded(place, positions, words[i, 1])
    while low < high:
        middle = (low + high) // 2
        if die < steps[block, row, middle]:
            high = middle
        else:
            low = middle + 1
    return int(low)


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def randomize_product(
    faces: Weights, block: int, features: Floats, who: int, first: int, second: int, words: Words, i: int
) -> int:
    """Return one bit about the product of two covariates (0: the constant one), whose mean is a public moment.

    A square lies between 0 and 1, another product between -1 and 1.
    """
    die = words[i, words.shape[1] - 1] >> uint64(2)
    if die < faces[block, COMMON]:
        return int(np.int64(die // faces[block, LOW]))
    if die - faces[block, COMMON] >= faces[block, INSIDE]:
        return 0
    product = features[who, second - 1]
    if first == second:
        return rounded(product * product, 2, words[i, 1])
    if first > 0:
        product *= features[who, first - 1]
    return rounded(0.5 * (product + 1.0), 2, words[i, 1])


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def randomize_pair(
    faces: Weights,
    block: int,
    features: Floats,
    who: int,
    pairs: Floats,
    pair: int,
    ranges: Floats,
    within: int,
    words: Words,
    i: int,
) -> int:
    """Return one bit about the product of two combinations of covariates, moved to a range."""
    die = words[i, words.shape[1] - 1] >> uint64(2)
    if die < faces[block, COMMON]:
        return int(np.int64(die // faces[block, LOW]))
    if die - faces[block, COMMON] >= faces[block, INSIDE]:
        return 0
    one, other = pairs[pair, 0, 0], pairs[pair, 1, 0]
    for j in range(features.shape[1]):
        one += pairs[pair, 0, 1 + j] * features[who, j]
        other += pairs[pair, 1, 1 + j] * features[who, j]
    low, high = ranges[within, 0], ranges[within, 1]
    return rounded((min(max(one * other, low), high) - low) / (high - low), 2, words[i, 1])


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def randomize_beside(
    faces: Weights,
    block: int,
    features: Floats,
    response: float,
    who: int,
    points: Floats,
    at: int,
    level: int,
    ways: Floats,
    steps: Floats,
    way: int,
    words: Words,
    i: int,
) -> int:
    """Return one bit about the side on which the response lies of a point beside ``points[at]``."""
    die = words[i, words.shape[1] - 1] >> uint64(2)
    if die < faces[block, COMMON]:
        return int(np.int64(die // faces[block, LOW]))
    if die - faces[block, COMMON] >= faces[block, INSIDE]:
        return 0
    told = weighed_side(features, response, who, points, at, level, ways, steps, way, is_up(words[i, 0]))
    return rounded(0.5 * (told + 1.0), 2, words[i, 1])


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def weighed_side(
    features: Floats,
    response: float,
    who: int,
    points: Floats,
    at: int,
    level: int,
    ways: Floats,
    steps: Floats,
    way: int,
    up: bool,
) -> float:
    """Return a product of combinations, its range turned to [-1, 1]; its negative where the response lies above."""
    off = steps[way, STEP]
    fit = points[at, level, 0] + (off if up else -off)
    one, other = ways[way, 0, 0], ways[way, 1, 0]
    for j in range(features.shape[1]):
        fit += points[at, level, 1 + j] * features[who, j]
        one += ways[way, 0, 1 + j] * features[who, j]
        other += ways[way, 1, 1 + j] * features[who, j]
    low, high = steps[way, LEAST], steps[way, MOST]
    told = (2.0 * min(max(one * other, low), high) - low - high) / (high - low)
    return float(told if response <= fit else -told)


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def rounded(place: float, positions: int, word: np.uint64) -> int:
    """Round a place up or down at random, so that it is right on average."""
    below = np.int64(np.floor(place))
    if float(word >> uint64(11)) * WORD < place - below:
        below += 1
    if below < 0:
        return 0
    return int(below if below < positions else positions - 1)


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def show(
    score: Floats, features: Floats, response: Floats, who: int, points: Floats, at: int, index: Ints, values: Floats
) -> int:
    """Fill the exact score of all coordinates, as `protocol.regression.decode` would: no channel, no privacy."""
    p = features.shape[1]
    for j in range(p + 1):
        index[j] = j
    for level in range(points.shape[1]):
        fit = points[at, level, 0]
        for j in range(p):
            fit += points[at, level, 1 + j] * features[who, j]
        exact = score[level, 0] + (1.0 if response[who] <= fit else 0.0)
        values[level, 0] = exact
        for j in range(p):
            values[level, 1 + j] = exact * features[who, j]
    return int(p + 1)


@njit(cache=True, nogil=True, error_model="numpy")
def randomize_people(
    tables: Tables,
    points: Floats,
    design: QueryDesign,
    features: Floats,
    response: Floats,
    where: Words,
    words: Words,
    letters: Ints,
) -> None:
    """Fill the letters of the people ``where``, all asked about one point; column 0 of ``words`` is public.

    ``points[0]`` is the point. Each question follows from the public word alone.
    """
    upto, plan, faces, steps, score, radius = tables[0], tables[1], tables[2], tables[3], tables[4], tables[7]
    p = points.shape[2] - 1
    chosen, pairs, each = np.zeros(max(p, 1), dtype=np.int64), len(design[0]), len(design[2]) // points.shape[1]
    beyond = 1 + 2 * pairs
    for i in range(len(where)):
        word, who = words[i, 0], where[i]
        cell = which_cell(design[4], word)
        if cell == PRODUCT:
            j, k = which_product(p + 1, word)
            letters[i] = randomize_product(faces, len(upto), features, who, j, k, words, i)
            continue
        if cell >= beyond:
            way = cell - beyond
            letters[i] = randomize_beside(
                faces, len(upto), features, response[who], who, points, 0, way // each, design[2], design[3], way,
                words, i,
            )  # fmt: skip
            continue
        if cell != TIGHT:
            pair = (cell - 1) % pairs
            letters[i] = randomize_pair(faces, len(upto), features, who, design[0], pair, design[1], cell - 1, words, i)
            continue
        block = choose(upto, plan, p, word, chosen)
        letters[i] = randomize_row(
            plan, faces, steps, score, radius, block, chosen, features, response, who, points, 0, words, i
        )


def count_above(response: Floats, where: Words, die: Words, flips: int, point: float) -> int:
    """Return how many of the people ``where`` say that their response lies above a point, a word of ``die`` for each.

    The lowest faces of the die say zero and as many of the highest one, whatever the record.
    """
    lowest = np.uint64(flips << 2)
    heard = (response[where] > point) & (die >= lowest)
    return int(np.count_nonzero(heard | (die > ~lowest)))

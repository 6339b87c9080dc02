"""What one person's decoded gradient does in the dithered regression: it is booked, and it moves the point.

A public few are asked beside the point (dithered): they tell the slope of the mean gradient and do not
move the point. The rest move it by ``left diag(1 / (need + i / pace)) right``: the information gain. Between two looks
only sums are kept, of a size that does not grow with the people.
"""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints, Words
from sottovoce.core.kernels import njit, uint64
from sottovoce.protocol.regression.blocks import Tables
from sottovoce.protocol.regression.decode import decode
from sottovoce.protocol.regression.questions import (
    MOMENT,
    SIGNS,
    QueryDesign,
    aim,
    choose,
    public,
    which_product,
)

LOOKED = 4  # of the counts, after the four kinds of question: people whose spread was looked at
POINT, GRADIENT = 0, 1
PRODUCT, SPREAD = 2, 3  # of the squares; the first two are the slopes of the near and the far
SELDOM = 8  # every so many people the spread of the points is looked at: d^2 sums that need no precision
ASKED = 2  # of the points of a batch: the one that everybody in it was asked about


class Sums(NamedTuple):
    """Sums over the people of one segment; points are counted from a reference, so that none is large."""

    counts: Floats  # (5,): tight, near, far, moment; people whose spread was looked at
    vectors: Floats  # (3, 2, levels, d): points and gradients of tight, near, far
    squares: Floats  # (4, levels, d, d): gradient x sign of near and far; gradient x gradient; point x point
    moments: Floats  # (2, d, d): people asked about a product of covariates, and the sum of their bits


def no_sums(levels: int, d: int) -> Sums:
    """Return empty sums."""
    return Sums(np.zeros(5), np.zeros((3, 2, levels, d)), np.zeros((4, levels, d, d)), np.zeros((2, d, d)))


class InformationGain(NamedTuple):
    """What a gradient does to the point, fixed between two looks."""

    gains: Floats  # (2, levels, d, d): left factor, and right factor
    needs: Floats  # (levels, d + 1): people after which noise equals the guess, along each; then one over the pace
    limit: float  # how far a coordinate may go from the reference


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def learn(
    gains: Floats,
    needs: Floats,
    limit: float,
    counts: Floats,
    vectors: Floats,
    squares: Floats,
    kind: int,
    word: np.uint64,
    person: int,
    found: int,
    index: Ints,
    values: Floats,
    reference: Floats,
    points: Floats,
    asked: int,
    along: Floats,
) -> None:
    """Book one person's gradient under the point they were asked about, and move the present one if it was at it.

    ``points[asked]`` is that point, ``points[0]`` the present one: the same where people are asked one by one. Booking
    and moving are one function because numba counts references of all arrays at each one it inlines (a tenth of the
    loop's time). ``along`` is room to work.
    """
    _, levels, d = points.shape
    counts[kind] += 1.0
    if kind > 0:
        # beside the point: the gradient times each sign, whose mean is H times the directions (`knowledge`)
        signs = public(word, SIGNS)
        for level in range(levels):
            for j in range(d):
                vectors[kind, POINT, level, j] += points[asked, level, j] - reference[level, j]
            for a in range(found):
                value, j = values[level, a], index[a]
                vectors[kind, GRADIENT, level, j] += value
                for k in range(d):
                    if d > 64 and k % 64 == 0:
                        signs = public(word, SIGNS + k // 64)
                    squares[kind - 1, level, j, k] += value if (signs >> uint64(k % 64)) & uint64(1) else -value
        return
    if person % SELDOM == 0:
        # how far the points swing: the curvature that they see grows with it (`fit.square_about`)
        counts[LOOKED] += 1.0
        for level in range(levels):
            for j in range(d):
                off = points[asked, level, j] - reference[level, j]
                for k in range(j + 1):
                    squares[SPREAD, level, j, k] += off * (points[asked, level, k] - reference[level, k])
    for level in range(levels):
        elapsed = person * needs[level, d]  # people so far over the pace
        # book: the noise of a gradient is learnt from its own products, each pair of coordinates once
        for a in range(found):
            value, j = values[level, a], index[a]
            vectors[0, GRADIENT, level, j] += value
            for b in range(a + 1):
                squares[PRODUCT, level, j, index[b]] += value * values[level, b]
        # move, right factor: the gradient along the directions in which information and guess are both diagonal
        for k in range(d):
            told = 0.0
            for a in range(found):
                told += gains[1, level, k, index[a]] * values[level, a]
            along[k] = told / (needs[level, k] + elapsed)
        # move, left factor: back to the coefficients, whose asked values are booked on the way
        for j in range(d):
            here = points[0, level, j]
            vectors[0, POINT, level, j] += points[asked, level, j] - reference[level, j]
            for k in range(d):
                here -= gains[0, level, j, k] * along[k]
            points[0, level, j] = here
        if limit < np.inf:
            for j in range(d):
                low, high = reference[level, j] - limit, reference[level, j] + limit
                points[0, level, j] = min(max(points[0, level, j], low), high)


@njit(cache=True, nogil=True, error_model="numpy")
def which_blocks(tables: Tables, upto: Floats, words: Words, p: int, blocks: Ints) -> None:
    """Fill the block that each person's public word gives them; the number of blocks: a bit about a moment."""
    chosen, nowhere = np.zeros(max(p, 1), dtype=np.int64), np.zeros((2, 0, p + 1))
    for i in range(len(words)):
        if aim(np.zeros((0, 0, 0)), np.zeros((2, 0)), upto, words[i], nowhere) == MOMENT:
            blocks[i] = len(tables[0])
        else:
            blocks[i] = choose(tables[0], tables[1], p, words[i], chosen)


@njit(cache=True, nogil=True, error_model="numpy")
def take_letters(
    tables: Tables,
    design: QueryDesign,
    gain: InformationGain,
    sums: Sums,
    words: Words,
    letters: Ints,
    first: int,
    reference: Floats,
    asked: Floats,
    points: Floats,
    at: int,
) -> None:
    """Take in checked letters of people who were all asked under one design, in place.

    ``points[0]`` is the point that they move, and ``points[at]`` the one that they were asked about; ``asked`` begins
    with that point, and has room for a dithered one. Where each was asked at the point that the one before has moved,
    both are one array and ``at`` is 0. ``first`` is how many people had answered before.
    """
    plan, score, read, matrix, radius = tables[1], tables[4], tables[5], tables[6], tables[7]
    _, levels, d = points.shape
    chosen, index = np.zeros(max(d - 1, 1), dtype=np.int64), np.zeros(d, dtype=np.int64)
    values, along = np.zeros((levels, d)), np.zeros(d)
    for i in range(len(words)):
        word, person = words[i], first + i
        kind = aim(design[0], design[1], design[2], word, asked)
        if kind == MOMENT:
            j, k = which_product(d, word)
            sums[0][MOMENT] += 1.0
            sums[3][0, j, k] += 1.0
            sums[3][1, j, k] += letters[i]
            continue
        block = choose(tables[0], plan, d - 1, word, chosen)
        found = decode(plan, score, read, matrix, radius, block, chosen, letters[i], index, values)
        learn(
            gain[0], gain[1], gain[2], sums[0], sums[1], sums[2], kind, word, person, found, index, values, reference,
            points, at, along,
        )  # fmt: skip

"""What one person's decoded gradient does in the dithered regression: it is booked, and it moves the point.

It moves it by ``left diag(1 / (need + i / pace)) right``: the information gain. A public few are asked for one bit
instead, about moments or beside the point (dithered), which tells the slope of the mean gradient; their bits are
counted. Between two looks only sums are kept, of a size that does not grow with the people.
"""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints, Words
from sottovoce.core.kernels import njit
from sottovoce.protocol.regression.blocks import Tables
from sottovoce.protocol.regression.decode import decode
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

AT_POINT, LOOKED = 0, 1  # of the counts: people asked at the point, and those of them whose spread was looked at
POINT, GRADIENT = range(2)  # of the vectors
PRODUCTS, SPREAD = range(2)  # of the squares: gradient x gradient, point x point
SELDOM = 8  # every so many people the spread of the points is looked at: d^2 sums that need no precision
PRESENT, ASKED = range(2)  # points: the present one, and the one that everybody in a batch was asked about
DOWN, UP = range(2)  # sides of the point


class Sums(NamedTuple):
    """Sums over the people of one segment; points are counted from a reference, so that none is large."""

    counts: Floats  # (2,): at the point; people whose spread was looked at
    vectors: Floats  # (2, levels, d): points and gradients of those at the point
    squares: Floats  # (2, levels, d, d): their gradient x gradient; point x point
    products: Floats  # (2, d, d): people asked about a product of covariates, and the sum of their bits
    pairs: Floats  # (2, 2 pairs): people asked about a pair of combinations within a range, and the sum of their bits
    ways: Floats  # (2, 2, ways): people asked beside the point, and the sum of their bits; below it and above it
    overheard: Floats  # (2, d, d): what letters tell of moments: precisions, and precisions x values


def no_sums(levels: int, d: int, pairs: int, ways: int) -> Sums:
    """Return empty sums of a design with so many pairs and ways."""
    return Sums(*(np.zeros(shape) for shape in shapes_of_sums(levels, d, pairs, ways)))


def shapes_of_sums(levels: int, d: int, pairs: int, ways: int) -> list[tuple[int, ...]]:
    """Return the shapes of sums."""
    squares = (2, levels, d, d)
    return [(2,), (2, levels, d), squares, (2, d, d), (2, 2 * pairs), (2, 2, ways), (2, d, d)]


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
    person: int,
    found: int,
    index: Ints,
    values: Floats,
    reference: Floats,
    points: Floats,
    asked: int,
    along: Floats,
) -> None:
    """Book one person's gradient under the point they were asked about, and move the present one.

    ``points[asked]`` is that point, ``points[0]`` the present one: the same where people are asked one by one. Booking
    and moving are one function because numba counts references of all arrays at each one it inlines (a tenth of the
    loop's time). ``along`` is room to work.
    """
    _, levels, d = points.shape
    counts[AT_POINT] += 1.0
    if person % SELDOM == 0:
        # how far the points swing: the curvature that they see grows with it (`root.square_about`)
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
            vectors[GRADIENT, level, j] += value
            for b in range(a + 1):
                squares[PRODUCTS, level, j, index[b]] += value * values[level, b]
        # move, right factor: the gradient along the directions in which information and guess are both diagonal
        for k in range(d):
            told = 0.0
            for a in range(found):
                told += gains[1, level, k, index[a]] * values[level, a]
            along[k] = told / (needs[level, k] + elapsed)
        # move, left factor: back to the coefficients, whose asked values are booked on the way
        for j in range(d):
            here = points[0, level, j]
            vectors[POINT, level, j] += points[asked, level, j] - reference[level, j]
            for k in range(d):
                here -= gains[0, level, j, k] * along[k]
            points[0, level, j] = here
        if limit < np.inf:
            for j in range(d):
                low, high = reference[level, j] - limit, reference[level, j] + limit
                points[0, level, j] = min(max(points[0, level, j], low), high)


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def book_bit(products: Floats, pairs: Floats, ways: Floats, d: int, cell: int, word: np.uint64, bit: float) -> None:
    """Book one bit."""
    if cell == PRODUCT:
        j, k = which_product(d, word)
        products[0, j, k] += 1.0
        products[1, j, k] += bit
    elif cell <= pairs.shape[1]:
        pairs[0, cell - 1] += 1.0
        pairs[1, cell - 1] += bit
    else:
        way, side = cell - 1 - pairs.shape[1], UP if is_up(word) else DOWN
        ways[0, side, way] += 1.0
        ways[1, side, way] += bit


@njit(cache=True, nogil=True, error_model="numpy")
def which_blocks(tables: Tables, upto: Floats, words: Words, p: int, blocks: Ints) -> None:
    """Fill the block that each person's public word gives them; the number of blocks: one bit."""
    chosen = np.zeros(max(p, 1), dtype=np.int64)
    for i in range(len(words)):
        if which_cell(upto, words[i]) != TIGHT:
            blocks[i] = len(tables[0])
        else:
            blocks[i] = choose(tables[0], tables[1], p, words[i], chosen)


@njit(cache=True, nogil=True, error_model="numpy")
def take_letters(
    tables: Tables,
    heard: Overheard,
    design: QueryDesign,
    gain: InformationGain,
    sums: Sums,
    words: Words,
    letters: Ints,
    first: int,
    reference: Floats,
    points: Floats,
    at: int,
) -> None:
    """Take in checked letters of people who were all asked under one design, in place.

    ``points[0]`` is the point that they move, and ``points[at]`` the one that they were asked about: the same, and
    ``at`` 0, where each was asked at the point that the one before has moved. ``first`` is how many people had answered
    before.
    """
    plan, score, read, matrix, radius = tables[1], tables[4], tables[5], tables[6], tables[7]
    _, levels, d = points.shape
    chosen, index = np.zeros(max(d - 1, 1), dtype=np.int64), np.zeros(d, dtype=np.int64)
    values, along = np.zeros((levels, d)), np.zeros(d)
    for i in range(len(words)):
        word, person = words[i], first + i
        cell = which_cell(design[4], word)
        if cell != TIGHT:
            book_bit(sums[3], sums[4], sums[5], d, cell, word, float(letters[i]))
            continue
        block = choose(tables[0], plan, d - 1, word, chosen)
        found = decode(plan, score, read, matrix, radius, block, chosen, letters[i], index, values)
        overhear(plan, heard[0], heard[1], heard[2], heard[3], heard[4], block, chosen, letters[i], person, sums[6])
        learn(
            gain[0], gain[1], gain[2], sums[0], sums[1], sums[2], person, found, index, values, reference, points, at,
            along,
        )  # fmt: skip

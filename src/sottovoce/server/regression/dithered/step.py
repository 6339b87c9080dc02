"""One person of the online regression: where they are asked, and what their decoded gradient does.

A public few are asked beside the point (dithered): they tell the slope of the mean gradient and do not
move the point. The rest move it by ``left diag(1 / (need + i / pace)) right``: the information gain.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, uint64

from sottovoce.core.arrays import Floats, Ints
from sottovoce.server.regression.decode import public, uniform
from sottovoce.server.regression.dithered.sums import (
    FAR,
    GRADIENT,
    LOOKED,
    MOMENT,
    NEAR,
    POINT,
    PRODUCT,
    SELDOM,
    SPREAD,
    TIGHT,
)

KIND, PRODUCT_OF, SIGNS = 1 << 20, 1 << 21, 1 << 22  # public draws beyond those that choose a block


class Orders(NamedTuple):
    """What is fixed between two looks: the gain, and how and how often to dither."""

    gains: Floats  # (2, levels, d, d): left factor, and right factor
    needs: Floats  # (levels, d + 1): people after which noise equals the guess, along each; then the pace
    directions: Floats  # (levels, d, d): from signs to a dither of size one
    sizes: Floats  # (2, levels): of the near and the far dither
    upto: Floats  # (3,): cumulative probabilities of a moment, of near and of far
    limit: float  # how far a coordinate may go from the reference


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def aim(directions: Floats, sizes: Floats, upto: Floats, word: np.uint64, points: Floats) -> int:
    """Return what a person is asked; if beside ``points[0]``, fill ``points[1]`` with where."""
    _, levels, d = points.shape
    u = uniform(word, KIND)
    if u >= upto[2]:
        return TIGHT
    if u < upto[0]:
        return MOMENT
    kind = NEAR if u < upto[1] else FAR
    signs = public(word, SIGNS)
    for level in range(levels):
        for j in range(d):
            off = 0.0
            for k in range(d):
                if d > 64 and k % 64 == 0:
                    signs = public(word, SIGNS + k // 64)
                way = directions[level, j, k]
                off += way if (signs >> uint64(k % 64)) & uint64(1) else -way
            points[1, level, j] = points[0, level, j] + sizes[kind - 1, level] * off
    return kind


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def which_product(d: int, word: np.uint64) -> tuple[int, int]:
    """Draw the product of covariates that a person is asked about, the constant alone left out."""
    rest, first = 1 + int(uniform(word, PRODUCT_OF) * (d * (d + 1) // 2 - 1)), 0
    while rest >= d - first:
        rest -= d - first
        first += 1
    return first, first + rest


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
    move: Floats,
) -> None:
    """Add one person's gradient to the sums, and move the point if they were asked at it (``move`` is room to work)."""
    _, levels, d = points.shape
    counts[kind] += 1.0
    if kind > 0:
        signs = public(word, SIGNS)
        for level in range(levels):
            for j in range(d):
                vectors[kind, POINT, level, j] += points[0, level, j] - reference[level, j]
            for a in range(found):
                value, j = values[level, a], index[a]
                vectors[kind, GRADIENT, level, j] += value
                for k in range(d):
                    if d > 64 and k % 64 == 0:
                        signs = public(word, SIGNS + k // 64)
                    squares[kind - 1, level, j, k] += value if (signs >> uint64(k % 64)) & uint64(1) else -value
        return
    if person % SELDOM == 0:
        counts[LOOKED] += 1.0
        for level in range(levels):
            for j in range(d):
                off = points[0, level, j] - reference[level, j]
                for k in range(j + 1):
                    squares[SPREAD, level, j, k] += off * (points[0, level, k] - reference[level, k])
    for level in range(levels):
        elapsed = person * needs[level, d]
        for a in range(found):
            value, j = values[level, a], index[a]
            vectors[0, GRADIENT, level, j] += value
            for b in range(a + 1):
                squares[PRODUCT, level, j, index[b]] += value * values[level, b]
        for k in range(d):
            along = 0.0
            for a in range(found):
                along += gains[1, level, k, index[a]] * values[level, a]
            move[k] = along / (needs[level, k] + elapsed)
        for j in range(d):
            here = points[0, level, j]
            vectors[0, POINT, level, j] += here - reference[level, j]
            for k in range(d):
                here -= gains[0, level, j, k] * move[k]
            points[0, level, j] = here
        if limit < np.inf:
            for j in range(d):
                low, high = reference[level, j] - limit, reference[level, j] + limit
                points[0, level, j] = min(max(points[0, level, j], low), high)

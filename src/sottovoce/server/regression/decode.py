"""From a letter to the decoded gradient, and the public draw of what a person is asked."""

import numpy as np
from numba import njit, uint64

from sottovoce.core.arrays import Floats, Ints
from sottovoce.protocol.regression.blocks import CELLS, FIXED, FORM, KINDS, MATRIX, SLOPES

WORD = 2.0**-53


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def public(word: np.uint64, k: int) -> np.uint64:
    """Return the k-th public draw of a person's public word (the finaliser of splitmix64, Steele et al. 2014)."""
    z = word + uint64(k) * uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
    return z ^ (z >> uint64(31))


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def uniform(word: np.uint64, k: int) -> float:
    """Return the k-th public draw as a number in [0, 1)."""
    return float(public(word, k) >> uint64(11)) * WORD


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def choose(upto: Floats, plan: Ints, p: int, word: np.uint64, chosen: Ints) -> int:
    """Draw the block that a person is asked, and fill ``chosen`` with its slopes (from 1)."""
    block = 0
    if len(upto) > 1:
        u = uniform(word, 1)
        while u >= upto[block]:
            block += 1
    slopes = plan[block, SLOPES]
    if slopes == 0:
        return block
    if plan[block, FIXED] > 0:
        for k in range(slopes):
            chosen[k] = plan[block, FIXED + k]
    elif slopes == p:
        for k in range(slopes):
            chosen[k] = k + 1
    elif slopes == 1:
        chosen[0] = 1 + int(uniform(word, 2) * p)
    else:  # a random subset, ascending: keep each slope with the probability that the rest still needs
        found = 0
        for j in range(p):
            if uniform(word, 2 + j) * (p - j) < slopes - found:
                chosen[found] = j + 1
                found += 1
                if found == slopes:
                    break
    return block


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def decode(
    plan: Ints,
    score: Floats,
    read: Floats,
    matrix: Floats,
    radius: float,
    block: int,
    chosen: Ints,
    letter: int,
    index: Ints,
    values: Floats,
) -> int:
    """Decode a letter: fill which coordinates it speaks of and their gradient at each level; return how many."""
    levels, found, tail = values.shape[0], 0, score.shape[1] + 1
    if plan[block, FORM] == MATRIX:
        j = chosen[0]
        index[0], index[1] = 0, j
        for level in range(levels):
            values[level, 0] = matrix[block, letter, 0] * read[block, level, tail]
            values[level, 1] = matrix[block, letter, 1] * read[block, level, tail + j]
        return 2
    slopes, cells = plan[block, SLOPES], plan[block, CELLS]
    speaks = plan[block, KINDS] > 1
    rest, step = np.int64(letter), np.int64(1)
    for _ in range(slopes):
        step *= cells
    face = rest // step
    if speaks:
        index[0] = 0
        found = 1
        for level in range(levels):
            values[level, 0] = read[block, level, face]
    for k in range(slopes):
        j = chosen[k]
        value = (2 * (rest % cells) + 1 - cells) / cells
        rest //= cells
        index[found] = j
        for level in range(levels):
            raw = (score[level, face] if speaks else radius) * value
            values[level, found] = (raw - read[block, level, tail - 1]) * read[block, level, tail + j]
        found += 1
    return found

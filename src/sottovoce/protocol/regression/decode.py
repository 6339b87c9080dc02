"""From a letter to the decoded gradient; letters are checked against their alphabet before they are looked up."""

from collections.abc import Sequence

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.errors import BadInput
from sottovoce.core.kernels import njit
from sottovoce.protocol.regression.blocks import CELLS, FORM, KINDS, MATRIX, OPEN, SLOPES, RegressionChannel, Tables
from sottovoce.protocol.regression.box_channel import BoxChannel

BITS = 2  # letters of a report about a moment


def alphabets(channel: RegressionChannel) -> Ints:
    """Return how many letters each block has, and last those of a bit about a moment.

    >>> from sottovoce.protocol.regression.box import cq
    >>> alphabets(cq(0.5, 2, 2.0, q=3, s=1)).tolist()
    [2, 3, 2]
    """
    sizes = [
        block.channel.letters if isinstance(block.channel, BoxChannel) else len(getattr(block.channel, "table", ()))
        for block in channel.blocks
    ]
    return np.array([*sizes, BITS], dtype=np.int64)


def checked_letters(letters: Sequence[int], sizes: Ints, round: int) -> Ints:
    """Return letters as an array, or refuse them all: one each, and each within its alphabet."""
    if len(letters) != len(sizes):
        raise BadInput(f"round {round} asked {len(sizes)} people; answer with one letter for each.")
    whole = all(
        type(letter) is int and 0 <= letter < size for letter, size in zip(letters, sizes.tolist(), strict=True)
    )
    if not whole:
        raise BadInput(f"a letter of round {round} is not one of its alphabet; answer through the study's channel.")
    return np.array(letters, dtype=np.int64)


def check_sendable(tables: Tables) -> None:
    """Refuse a conversation about exact scores, which are not letters."""
    if np.any(tables.plan[:, FORM] == OPEN):
        raise BadInput("exact scores are not letters, and are not sent; give a channel with a finite epsilon.")


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
    if plan[block, FORM] == MATRIX:  # a table of what each letter tells of the side and of the slope
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
    side = rest // step
    if speaks:
        index[0] = 0
        found = 1
        for level in range(levels):
            values[level, 0] = read[block, level, side]
    # a cell's middle, times the score at that side, less its mean under noise, over the chance that the record is told
    for k in range(slopes):
        j = chosen[k]
        value = (2 * (rest % cells) + 1 - cells) / cells
        rest //= cells
        index[found] = j
        for level in range(levels):
            raw = (score[level, side] if speaks else radius) * value
            values[level, found] = (raw - read[block, level, tail - 1]) * read[block, level, tail + j]
        found += 1
    return found

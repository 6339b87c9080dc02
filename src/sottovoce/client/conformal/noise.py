"""Exact draws from 64-bit words: geometric noise in bulk, and a uniform integer below any bound."""

import numpy as np

from sottovoce.core.arrays import Ints
from sottovoce.core.random_source import RandomSource
from sottovoce.protocol.selection.geometric import WORD

PIECE = 1 << 16


def geometric(numerator: int, n: int, dice: RandomSource) -> Ints:
    """Draw noise with P(noise >= k) = (numerator / 2^64)^k: the lengths of runs of words below the numerator.

    Parameters
    ----------
    numerator
        The integer that holds the law.
    n
        How many draws.
    dice
        The source of words.

    Examples
    --------
    >>> from sottovoce.sim.randomness import dice
    >>> geometric(1 << 63, 5, dice(1)).tolist()
    [2, 0, 9, 0, 0]
    """
    if not 0 < numerator < WORD:
        raise ValueError("the numerator of geometric noise lies between 0 and 2^64")
    least, ends, read, ended = np.uint64(numerator), [np.array([-1])], 0, 0
    piece = min(PIECE, 2 * n * WORD // (WORD - numerator) + 16)
    while ended < n:
        ends.append(read + np.flatnonzero(dice.words(piece) >= least))
        read += piece
        ended += len(ends[-1])
    return np.diff(np.concatenate(ends)[: n + 1]) - 1


def uniform_below(bound: int, dice: RandomSource) -> int:
    """Draw an integer from 0 to ``bound - 1``, each equally likely.

    Parameters
    ----------
    bound
        A positive integer of any size.
    dice
        The source of words.

    Examples
    --------
    >>> from sottovoce.sim.randomness import dice
    >>> uniform_below(6, dice(1))
    5
    """
    # one word more than needed: a second throw has a chance of 2^-64, so the time tells nothing about the bound
    words = bound.bit_length() // 64 + 2
    whole = 1 << 64 * words
    while True:
        throw = int.from_bytes(dice.words(words).astype("<u8").tobytes(), "little")
        if throw < whole - whole % bound:
            return throw % bound

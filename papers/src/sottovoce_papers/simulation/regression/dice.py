"""Random words inside a kernel: xoshiro256++ (Blackman and Vigna 2021), its four words carried in registers.

A kernel reads the state once, passes it along as a tuple, and writes it back: no call leaves the loop for its dice.
"""

import numpy as np

from sottovoce.core.arrays import Words
from sottovoce.core.kernels import njit

State = tuple[np.uint64, np.uint64, np.uint64, np.uint64]

_1, _11, _17, _19, _23, _41, _45 = (np.uint64(k) for k in (1, 11, 17, 19, 23, 41, 45))
UNIT = 2.0**-53
HALF = np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)
SMALL = 2.0**-32


def seeded(seed: int | np.random.SeedSequence) -> Words:
    """Return the state that a seed stands for.

    Examples
    --------
    >>> seeded(1).shape
    (4,)
    """
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return sequence.generate_state(4, np.uint64).astype(np.uint64)


@njit(cache=True, forceinline=True)
def roll(state: State) -> tuple[State, np.uint64]:
    """Return the next state, and 64 random bits."""
    a, b, c, d = state
    sum_ = a + d
    word = ((sum_ << _23) | (sum_ >> _41)) + a
    shifted = b << _17
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = (d << _45) | (d >> _19)
    return (a, b, c, d), word


@njit(cache=True, forceinline=True)
def unit(word: np.uint64) -> float:
    """Return a word as a number in [0, 1), by its 53 high bits."""
    return float(word >> _11) * UNIT


@njit(cache=True, forceinline=True)
def halves(word: np.uint64) -> tuple[float, float]:
    """Return a word as two independent numbers in [0, 1) of 32 bits."""
    return float(word >> HALF) * SMALL, float(word & LOW) * SMALL

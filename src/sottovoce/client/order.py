"""A keyed random order of 0..n-1 that needs no memory: a Feistel network with cycle walking (Black & Rogaway 2002).

A file sorted by value or by time must give the same answers as a shuffled one, and a permutation held in memory would
cost as much as the data. Privacy does not rest on the order, only validity does.
"""

import numpy as np
from numba import njit, uint64

from sottovoce.client.randomness import Dice, Words

ROUNDS = 6


def order_key(dice: Dice) -> Words:
    """Draw the round keys of a random order."""
    return dice.words(ROUNDS).copy()


@njit(cache=True, inline="always")
def _mix(half: np.uint64, key: np.uint64) -> np.uint64:
    """Scramble one half with a round key (the finaliser of MurmurHash3)."""
    word = half ^ key
    word = (word ^ (word >> uint64(33))) * uint64(0xFF51AFD7ED558CCD)
    word = (word ^ (word >> uint64(33))) * uint64(0xC4CEB9FE1A85EC53)
    return word ^ (word >> uint64(33))


@njit(cache=True)
def place(position: int, n: int, bits: int, key: Words) -> int:
    """Return which record stands at a position of the random order."""
    low_bits, high_bits = uint64(bits // 2), uint64(bits - bits // 2)
    low_mask, high_mask = (uint64(1) << low_bits) - uint64(1), (uint64(1) << high_bits) - uint64(1)
    index = uint64(position)
    while True:
        high, low = index >> low_bits, index & low_mask
        for i in range(0, ROUNDS, 2):
            high ^= _mix(low, key[i]) & high_mask
            low ^= _mix(high, key[i + 1]) & low_mask
        index = (high << low_bits) | low
        if index < uint64(n):
            return int(index)


def bits_for(n: int) -> int:
    """Return the size in bits of the network that covers ``n`` places."""
    return max(2, (n - 1).bit_length())

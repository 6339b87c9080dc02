"""The kernel's dice: the published generator, and numbers where they belong."""

import numpy as np

from sottovoce_papers.simulation.regression.dice import halves, roll, seeded, unit

MASK = (1 << 64) - 1


def reference(words: list[int]) -> tuple[list[int], int]:
    """Step xoshiro256++ in Python's own integers."""
    a, b, c, d = words
    total = (a + d) & MASK
    out = ((((total << 23) | (total >> 41)) & MASK) + a) & MASK
    shifted = (b << 17) & MASK
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    return [a, b, c, ((d << 45) | (d >> 19)) & MASK], out


def test_words_are_those_of_the_published_generator() -> None:
    words = seeded(5)
    state, plain = (words[0], words[1], words[2], words[3]), [int(w) for w in words]
    for _ in range(100):
        with np.errstate(over="ignore"):
            state, word = roll(state)
        plain, expected = reference(plain)
        assert int(word) == expected


def test_the_first_words_of_a_known_state() -> None:
    """State (1, 2, 3, 4) gives 41943041 and 58720359, as in the authors' own code."""
    state = (np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4))
    state, one = roll(state)
    state, two = roll(state)
    assert (int(one), int(two)) == (41943041, 58720359)


def test_numbers_stay_below_one() -> None:
    top = np.uint64(MASK)
    assert unit(top) == 1 - 2.0**-53
    assert unit(np.uint64(0)) == 0.0
    assert halves(top) == (1 - 2.0**-32, 1 - 2.0**-32)
    assert halves(np.uint64(1 << 63)) == (0.5, 0.0)

"""One bit a person about their response: the law of the die, face by face, and what it hides."""

import math

import numpy as np
import pytest

from sottovoce.client.regression.randomize_row import count_above
from sottovoce.protocol.channel import OUTCOMES
from sottovoce.protocol.randomised_response import binary, flips_of
from sottovoce.sim.randomness import dice

FLIPS = flips_of(binary(1.0))
TWO = np.array([-1.0, 1.0])


def says(response: float, word: int, flips: int = FLIPS, point: float = 0.0) -> int:
    where = np.zeros(1, dtype=np.uint64)
    return count_above(np.array([response]), where, np.array([word], dtype=np.uint64), flips, point)


@pytest.mark.parametrize(
    ("die", "below", "above"),
    [
        (0, 0, 0),
        (FLIPS - 1, 0, 0),
        (FLIPS, 0, 1),
        (OUTCOMES // 2, 0, 1),
        (OUTCOMES - FLIPS - 1, 0, 1),
        (OUTCOMES - FLIPS, 1, 1),
        (OUTCOMES - 1, 1, 1),
    ],
)
@pytest.mark.parametrize("low_bits", [0, 3])
def test_faces_of_the_die(die: int, below: int, above: int, low_bits: int) -> None:
    # a flip on exactly FLIPS faces either way, as the matrix of the channel says
    assert says(-1.0, (die << 2) + low_bits) == below
    assert says(1.0, (die << 2) + low_bits) == above


def test_a_response_on_the_point_is_not_above_it() -> None:
    assert says(0.0, 1 << 63) == 0
    assert says(np.nextafter(0.0, 1.0), 1 << 63) == 1


def test_only_the_people_named_are_counted_each_with_their_own_word() -> None:
    response = np.arange(10.0)
    where = np.array([9, 2, 8, 3], dtype=np.uint64)
    words = np.full(4, 1 << 63, dtype=np.uint64)
    assert count_above(response, where, words, FLIPS, 4.5) == 2
    words[0] = 0
    assert count_above(response, where, words, FLIPS, 4.5) == 1
    assert count_above(response, where[:0], words[:0], FLIPS, 4.5) == 0


def test_at_epsilon_zero_the_same_dice_count_the_same() -> None:
    words = dice(4).words(5000)
    where = np.arange(5000, dtype=np.uint64)
    low, high = np.full(5000, -1e9), np.full(5000, 1e9)
    assert count_above(low, where, words, OUTCOMES // 2, 0.0) == count_above(high, where, words, OUTCOMES // 2, 0.0)
    assert count_above(low, where, words, FLIPS, 0.0) < count_above(high, where, words, FLIPS, 0.0)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, math.inf])
def test_counts_have_the_mean_of_the_channel(epsilon: float) -> None:
    n, flips = 100_000, flips_of(binary(epsilon))
    response = np.where(np.arange(n) % 4 == 0, 1.0, -1.0)
    ones = count_above(response, np.arange(n, dtype=np.uint64), dice(8).words(n), flips, 0.0)
    flip = flips / OUTCOMES
    mean = n * (0.25 * (1 - flip) + 0.75 * flip)
    assert abs(ones - mean) <= 4.9 * math.sqrt(n * flip * (1 - flip))  # false alarm 1e-6

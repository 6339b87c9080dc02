"""From records to letters: a pure function of values, order, query, channel and dice."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from sottovoce.client.order import ROUNDS, Key, bits_for, place
from sottovoce.client.quantile.encode import answer
from sottovoce.core.arrays import Words
from sottovoce.protocol.channel import OUTCOMES
from sottovoce.protocol.randomised_response import binary
from sottovoce.protocol.walk import moves, walk
from sottovoce.sim.randomness import dice

KEY: Key = np.arange(1, ROUNDS + 1, dtype=np.uint32) * np.uint32(0x13C6EF37)
VALUES = np.linspace(-3.0, 3.0, 40)
MOVES = moves(binary(1.0), 0.5)
FLIPS = binary(1.0).weights[0][1]


def letters_of(
    words: Words,
    point: float,
    *,
    flips: int = FLIPS,
    start: int = 0,
    count: int | None = None,
    resolution: float = 0.0,
    step: float = 0.0,
    period: float = 0.0,
    kernel: Any = answer,
) -> tuple[npt.NDArray[np.uint8], float]:
    n = len(words) // (2 if resolution else 1) if count is None else count
    letters = np.full(n, 9, dtype=np.uint8)
    room = np.empty(n, dtype=np.uint64)
    order = (VALUES, bits_for(len(VALUES)), KEY, start)
    return letters, float(kernel(*order, words, flips, resolution, point, period, step, MOVES, letters, room))


def in_order() -> npt.NDArray[np.float64]:
    return VALUES[[place(i, len(VALUES), bits_for(len(VALUES)), KEY) for i in range(len(VALUES))]]


def test_without_flips_letters_are_the_truth_in_the_random_order() -> None:
    letters, end = letters_of(dice(1).words(40), 0.5, flips=0)
    assert letters.tolist() == (in_order() > 0.5).astype(int).tolist()
    assert end == 0.5


def test_with_half_the_faces_letters_are_a_fair_coin() -> None:
    for point in (-9.0, 9.0):
        letters, _ = letters_of(dice(2).words(40), point, flips=OUTCOMES // 2)
        assert 4 < letters.sum() < 36  # outside with probability 2e-7 for a fair coin


def test_a_start_goes_on_where_the_last_piece_ended() -> None:
    words = dice(3).words(40)
    whole, _ = letters_of(words, 0.1)
    first, _ = letters_of(words[:15], 0.1)
    rest, _ = letters_of(words[15:], 0.1, start=15)
    assert whole.tolist() == [*first.tolist(), *rest.tolist()]


def test_the_point_walks_by_the_letters() -> None:
    letters, end = letters_of(dice(4).words(40), 0.1, step=0.3)
    assert end == walk(0.1, 0.3, letters, MOVES)[-1]
    assert end != 0.1


def test_the_kernel_is_pure() -> None:
    words, before = dice(5).words(40), VALUES.copy()
    kept = words.copy()
    assert letters_of(words, 0.1)[0].tolist() == letters_of(words, 0.1)[0].tolist()
    assert words.tolist() == kept.tolist()
    assert VALUES.tolist() == before.tolist()


@pytest.mark.parametrize("resolution", [0.0, 0.5])
def test_compiled_and_plain_agree_bit_for_bit(resolution: float) -> None:
    plain = getattr(answer, "py_func", answer)
    words = dice(6).words(80 if resolution else 40)
    compiled, there = letters_of(words, 0.1, resolution=resolution, step=0.25)
    interpreted, end = letters_of(words, 0.1, resolution=resolution, step=0.25, kernel=plain)
    assert compiled.tolist() == interpreted.tolist()
    assert there == end


def test_dither_stays_within_half_a_step_and_fills_it() -> None:
    extremes = np.array([0, 2**64 - 1], dtype=np.uint64)
    value = float(in_order()[0])
    for word, shift in zip(extremes, (-0.5, 0.5), strict=True):
        words = np.array([2**63, word], dtype=np.uint64)
        inside = letters_of(words, value + 0.4999 * shift / 0.5 * 0.2, flips=0, resolution=0.2, count=1)[0][0]
        beyond = letters_of(words, value + 0.5001 * shift / 0.5 * 0.2, flips=0, resolution=0.2, count=1)[0][0]
        assert (inside, beyond) == ((0, 1) if shift < 0 else (1, 0))


def test_dither_is_unbiased() -> None:
    # a record on the point is above it half the time; five standard deviations either way leave 6e-7
    point = float(in_order()[0])
    ups = 0
    for seed in range(50):
        letters, _ = letters_of(dice(seed).words(2), point, flips=0, resolution=1.0, count=1)
        ups += int(letters[0])
    assert abs(ups - 25) < 5 * 3.54

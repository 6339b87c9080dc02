"""Without a compiler a site answers with the same bits: `client.vectors` beside the compiled kernels."""

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.client import order, vectors
from sottovoce.client.order import bits_for, order_key
from sottovoce.client.quantile import encode
from sottovoce.core.kernels import COMPILED

pytestmark = pytest.mark.skipif(not COMPILED, reason="there is nothing to compare with where nothing is compiled")
DICE = sv.sim.dice(58)
SIZES = (1, 5, 255, 256, 257, 3000, 8192)
FLIPS = (0, 1, 2**40, 2**61)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", ["places", "positions"])
def test_the_order_is_the_same(n: int, name: str) -> None:
    key, found = order_key(DICE), np.empty((2, n), dtype=np.uint64)
    for room, home in zip(found, (order, vectors), strict=True):
        getattr(home, name)(n, bits_for(n), key, 0, room)
    assert found[0].tolist() == found[1].tolist()
    assert sorted(found[0].tolist()) == list(range(n))
    part = np.empty(n - n // 3, dtype=np.uint64)
    getattr(vectors, name)(n, bits_for(n), key, n // 3, part)
    assert part.tolist() == found[0][n // 3 :].tolist()


def test_the_order_of_the_largest_site_is_the_same() -> None:
    n, key, found = 2**50, order_key(DICE), np.empty((2, 50), dtype=np.uint64)
    for room, home in zip(found, (order, vectors), strict=True):
        home.places(n, bits_for(n), key, n - 50, room)
    assert found[0].tolist() == found[1].tolist()


@pytest.mark.parametrize("flips", FLIPS)
@pytest.mark.parametrize("resolution", [0.0, 0.5])
@pytest.mark.parametrize(("period", "step"), [(0.0, 0.0), (0.25, 0.0), (5e-324, 0.0), (0.0, 0.01)])
def test_letters_and_the_moved_point_are_the_same(flips: int, resolution: float, period: float, step: float) -> None:
    draw = DICE.generator()
    values = np.concatenate((draw.normal(size=497), [1e308, -1e308, 0.25]))
    key, words = order_key(DICE), DICE.words(2 * len(values))
    moves, ends = np.array([-0.3, 0.7]), []
    letters = np.empty((2, 400), dtype=np.uint8)
    for room, home in zip(letters, (encode, vectors), strict=True):
        where = np.empty(500, dtype=np.uint64)
        given = words[: 400 * (2 if resolution else 1)]
        ends.append(home.answer(values, 9, key, 50, given, flips, resolution, 0.25, period, step, moves, room, where))
    assert letters[0].tolist() == letters[1].tolist()
    assert ends[0] == ends[1]
    assert (ends[0] != 0.25) == (step > 0)


@pytest.mark.parametrize("flips", FLIPS)
@pytest.mark.parametrize("resolution", [0.0, 0.5])
def test_a_scan_in_the_order_of_memory_gives_the_same_sums(flips: int, resolution: float) -> None:
    n, start, looked = 3000, 700, 1500
    values, key = DICE.generator().normal(size=n), order_key(DICE)
    points, ends = np.array([-0.5, 0.0, 1.0]), np.array([400, 900, 2100], dtype=np.uint64)
    words, sums, taken = DICE.words(2 * n), np.zeros((2, 3), dtype=np.int64), []
    for ones, home in zip(sums, (encode, vectors), strict=True):
        where, picked, at = np.empty(looked, dtype=np.uint64), np.empty(n), np.empty(n, dtype=np.uint64)
        taken.append(home.pick(values, bits_for(n), key, start, 100, 2100, where, picked, at))
        given = words[: taken[-1] * (2 if resolution else 1)]
        home.count_ones(picked, at, given, flips, resolution, points, ends, ones)
    assert taken[0] == taken[1] > 0
    assert sums[0].tolist() == sums[1].tolist()
    assert sums.sum() > 0

"""The random order: a permutation for every size, the same compiled or not, and every order about as likely."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from sottovoce.client.order import ROUNDS, Key, bits_for, order_key, place, places, positions
from sottovoce.sim.randomness import dice

FALSE_ALARM = 1e-6
PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
KEY: Key = np.arange(1, ROUNDS + 1, dtype=np.uint32) * np.uint32(0x13C6EF37)


def order(n: int, key: Key) -> list[int]:
    where = np.empty(n, dtype=np.uint64)
    places(n, bits_for(n), key, 0, where)
    return [int(i) for i in where]


@settings(deadline=None, max_examples=10 if PLAIN else 100)
@given(st.integers(1, 300), st.integers(0, 2**32))
def test_every_record_stands_at_one_place(n: int, seed: int) -> None:
    assert sorted(order(n, order_key(dice(seed)))) == list(range(n))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 63, 64, 65, 255, 256, 257, 1023, 1025])
def test_sizes_around_a_power_of_two(n: int) -> None:
    assert sorted(order(n, KEY)) == list(range(n))


def test_the_order_is_the_one_written_down() -> None:
    # compiled and not: the suite also runs with NUMBA_DISABLE_JIT=1, and warnings are errors
    assert order(11, KEY) == [3, 7, 2, 1, 8, 10, 4, 9, 0, 5, 6]


def test_one_place_is_one_of_the_places() -> None:
    assert [place(i, 11, bits_for(11), KEY) for i in range(11)] == order(11, KEY)


@pytest.mark.parametrize("n", [1, 2, 33, 64, 65])
def test_places_in_pieces_are_those_of_the_whole_order_each_once(n: int) -> None:
    key, bits = order_key(dice(2)), bits_for(n)
    where = np.empty(n, dtype=np.uint64)
    for start in range(0, n, 7):
        places(n, bits, key, start, where[start : start + 7])
    assert where.tolist() == order(n, key) == [place(i, n, bits, key) for i in range(n)]
    assert sorted(where.tolist()) == list(range(n))


@settings(deadline=None, max_examples=10 if PLAIN else 100)
@given(st.integers(1, 300), st.integers(0, 2**32), st.integers(0, 299))
def test_positions_are_the_places_the_other_way(n: int, seed: int, start: int) -> None:
    key, start = order_key(dice(seed)), start % n
    where = np.empty(n - start, dtype=np.uint64)
    positions(n, bits_for(n), key, start, where)
    assert [order(n, key)[int(position)] for position in where] == list(range(start, n))


def test_far_places_of_a_large_site_are_inside() -> None:
    n = 10**12 + 39
    seen = [int(place(i, n, bits_for(n), KEY)) for i in range(n - 50, n)]
    assert len(set(seen)) == 50
    assert all(0 <= i < n for i in seen)
    assert max(seen) - min(seen) > n // 10
    there = np.empty(1, dtype=np.uint64)
    for position, found in zip(range(n - 50, n), seen, strict=True):
        positions(n, bits_for(n), KEY, found, there)
        assert int(there[0]) == position


def test_another_key_gives_another_order() -> None:
    orders = {tuple(order(20, order_key(dice(seed)))) for seed in range(30)}
    assert len(orders) == 30


@pytest.mark.skipif(PLAIN, reason="uncompiled it takes a minute, and the order written down above is the same")
@pytest.mark.parametrize(("n", "second"), [(2, 1), (3, 1), (5, 1), (5, 2), (8, 4), (12, 6)])
def test_pairs_of_places_are_uniform(n: int, second: int) -> None:
    draws = 4000
    keys = dice(77).words(ROUNDS * draws // 2).view(np.uint32).reshape(-1, ROUNDS)
    seen, where = np.zeros((n, n)), np.empty(second + 1, dtype=np.uint64)
    for key in keys:
        places(n, bits_for(n), key, 0, where)
        seen[where[0], where[second]] += 1
    assert not np.diagonal(seen).any()
    expected = len(keys) / (n * (n - 1))
    statistic = float(np.sum((seen[~np.eye(n, dtype=bool)] - expected) ** 2) / expected)
    assert special.chdtrc(n * (n - 1) - 1, statistic) > FALSE_ALARM, seen


def test_a_sorted_file_is_mixed() -> None:
    # the first tenth of the order must look like the whole: its mean within five standard errors (two-sided 6e-7)
    n = 5000
    first = np.array([place(i, n, bits_for(n), KEY) for i in range(n // 10)])
    error = n / np.sqrt(12 * len(first))
    assert abs(first.mean() - n / 2) < 5 * error


def test_bits_cover_the_places() -> None:
    for n in (1, 2, 3, 4, 5, 2**20, 2**20 + 1):
        assert 2 ** bits_for(n) >= n
        assert bits_for(n) == 8 or 2 ** (bits_for(n) - 1) < n


def test_the_key_is_drawn_from_the_dice_alone() -> None:
    assert order_key(dice(5)).tobytes() == dice(5).words(ROUNDS // 2).tobytes()

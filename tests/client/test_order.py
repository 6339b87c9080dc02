"""The random order: a permutation for every size, the same compiled or not, and every order about as likely."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from sottovoce.client.order import ROUNDS, bits_for, order_key, place
from sottovoce.sim.randomness import dice

FALSE_ALARM = 1e-6
KEY = np.arange(1, ROUNDS + 1, dtype=np.uint64) * np.uint64(0x13C6EF372FE94F82)


def order(n: int, key: npt.NDArray[np.uint64]) -> list[int]:
    return [int(place(i, n, bits_for(n), key)) for i in range(n)]


@given(st.integers(1, 300), st.integers(0, 2**32))
def test_every_record_stands_at_one_place(n: int, seed: int) -> None:
    assert sorted(order(n, order_key(dice(seed)))) == list(range(n))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 63, 64, 65, 255, 256, 257, 1023, 1025])
def test_sizes_around_a_power_of_two(n: int) -> None:
    assert sorted(order(n, KEY)) == list(range(n))


def test_the_order_is_the_one_written_down() -> None:
    # compiled and not: the suite also runs with NUMBA_DISABLE_JIT=1, and warnings are errors
    assert order(11, KEY) == [5, 6, 10, 9, 7, 1, 0, 2, 4, 8, 3]


def test_far_places_of_a_large_site_are_inside() -> None:
    n = 10**12 + 39
    seen = [int(place(i, n, bits_for(n), KEY)) for i in range(n - 50, n)]
    assert len(set(seen)) == 50
    assert all(0 <= i < n for i in seen)
    assert max(seen) - min(seen) > n // 10


def test_another_key_gives_another_order() -> None:
    orders = {tuple(order(20, order_key(dice(seed)))) for seed in range(30)}
    assert len(orders) == 30


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_the_first_two_places_are_uniform(n: int) -> None:
    keys = dice(77).words(ROUNDS * 4000).reshape(-1, ROUNDS)
    seen = np.zeros((n, n))
    for key in keys:
        seen[place(0, n, bits_for(n), key), place(1, n, bits_for(n), key)] += 1
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
    assert order_key(dice(5)).tolist() == dice(5).words(ROUNDS).tolist()

"""One person of the dithered regression: what they are asked, and what their gradient does, by hand."""

import math
import os
from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special

from sottovoce.protocol.regression.dithered.step import (
    ASKED,
    DOWN,
    GRADIENT,
    LOOKED,
    POINT,
    PRESENT,
    PRODUCTS,
    SELDOM,
    SPREAD,
    UP,
    Sums,
    book_bit,
    learn,
    no_sums,
)
from sottovoce.protocol.regression.questions import TIGHT, is_up, which_cell, which_product
from sottovoce.sim.randomness import dice

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
FALSE_ALARM = 1e-6
Floats = npt.NDArray[np.float64]
UPTO = np.array([0.1, 0.1, 0.3, 0.6])


def test_people_are_asked_as_often_as_ordered() -> None:
    n = 1000 if PLAIN else 20_000
    cells = [which_cell(UPTO, word) for word in dice(1).words(n)]
    seen = np.array([cells.count(cell) for cell in (0, 2, 3, TIGHT)])
    expected = n * np.array([0.1, 0.2, 0.3, 0.4])
    assert seen.sum() == n
    assert special.chdtrc(3, float(np.sum((seen - expected) ** 2 / expected))) > FALSE_ALARM


def test_nobody_is_asked_what_is_not_ordered() -> None:
    assert {which_cell(np.zeros(3), word) for word in dice(1).words(300)} == {TIGHT}
    assert {which_cell(np.array([0, 0.5, 1]), word) for word in dice(1).words(300)} == {1, 2}
    assert {which_cell(np.array([1.0, 1.0]), word) for word in dice(1).words(30)} == {0}


def test_sides_are_balanced_and_independent_of_what_is_asked() -> None:
    n = 2000 if PLAIN else 20_000
    words = dice(4).words(n)
    sides = np.array([1.0 if is_up(word) else -1.0 for word in words])
    apart = np.array([which_cell(UPTO, word) == TIGHT for word in words])
    assert abs(sides.mean()) < 5.3 / math.sqrt(n)
    assert abs(sides[apart].mean()) < 5.3 / math.sqrt(apart.sum())


@pytest.mark.parametrize("d", [2, 3, 5])
def test_every_product_but_the_constant_is_as_likely(d: int) -> None:
    n = 1500 if PLAIN else 20_000
    drawn = [tuple(int(x) for x in which_product(d, word)) for word in dice(3).words(n)]
    products = [*combinations_with_replacement(range(d), 2)][1:]
    assert set(drawn) == set(products)
    seen = np.array([drawn.count(one) for one in products])
    expected = n / len(products)
    assert special.chdtrc(len(products) - 1, float(np.sum((seen - expected) ** 2) / expected)) > FALSE_ALARM


def step(person: int, limit: float = math.inf) -> tuple[Sums, Floats]:
    """Let one person speak of coordinates 2 and 0 at two levels."""
    d = 3
    sums = no_sums(2, d, 1, 3)
    gains = np.arange(2 * 2 * d * d, dtype=float).reshape(2, 2, d, d) / 10
    needs = np.array([[1.0, 2.0, 3.0, 0.5], [4.0, 5.0, 6.0, 0.25]])
    points = np.arange(6.0).reshape(1, 2, 3)
    spoken(sums, gains, needs, limit, person, points, 0)
    return sums, points


def spoken(
    sums: Sums,
    gains: Floats,
    needs: Floats,
    limit: float,
    person: int,
    points: Floats,
    at: int,
) -> None:
    index, values = np.array([2, 0, 0]), np.array([[0.5, -1.0, 99.0], [2.0, 3.0, 99.0]])
    learn(
        gains, needs, limit, sums.counts, sums.vectors, sums.squares, person, 2, index, values, np.ones((2, 3)),
        points, at, np.zeros(3),
    )  # fmt: skip


GRADIENTS = np.array([[-1.0, 0.0, 0.5], [3.0, 0.0, 2.0]])


def test_a_tight_person_moves_the_point_by_the_gain() -> None:
    person = 10
    sums, points = step(person)
    gains = np.arange(36.0).reshape(2, 2, 3, 3) / 10
    for level, need in enumerate(([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])):
        before = np.arange(6.0).reshape(2, 3)[level]
        scale = np.array(need) + person * (0.5, 0.25)[level]
        expected = before - gains[0, level] @ ((gains[1, level] @ GRADIENTS[level]) / scale)
        assert points[0, level] == pytest.approx(expected)
        assert sums.vectors[POINT, level] == pytest.approx(before - 1)
        assert sums.vectors[GRADIENT, level] == pytest.approx(GRADIENTS[level])
        whole = np.outer(GRADIENTS[level], GRADIENTS[level])
        found = sums.squares[PRODUCTS, level]
        # each pair of coordinates is kept once, in the order in which they were spoken of
        assert found + found.T - np.diag(np.diag(found)) == pytest.approx(whole)
    assert sums.counts.tolist() == [1, 0]
    assert not sums.squares[SPREAD].any()
    assert not sums.ways.any()


def test_now_and_then_the_spread_of_the_points_is_looked_at() -> None:
    sums, _ = step(3 * SELDOM)
    assert sums.counts[LOOKED] == 1
    off = np.arange(6.0).reshape(2, 3) - 1
    for level in range(2):
        assert sums.squares[SPREAD, level] == pytest.approx(np.tril(np.outer(off[level], off[level])))


def test_a_person_of_a_batch_is_booked_under_the_point_they_were_asked_about() -> None:
    gains, needs = np.arange(36.0).reshape(2, 2, 3, 3) / 10, np.full((2, 4), 0.5)
    here, there = np.arange(6.0).reshape(2, 3), np.full((2, 3), 7.0)
    found = {}
    for name, asked, points in (
        ("apart", ASKED, np.stack([here, there])),
        ("here", PRESENT, np.stack([here])),
        ("there", PRESENT, np.stack([there])),
    ):
        sums = no_sums(2, 3, 0, 2)
        spoken(sums, gains, needs, math.inf, SELDOM, points, asked)
        found[name] = (sums, points)
    for ours, theirs in zip(found["apart"][0], found["there"][0], strict=True):
        assert np.array_equal(ours, theirs)
    assert np.array_equal(found["apart"][1][PRESENT], found["here"][1][PRESENT])
    assert np.array_equal(found["apart"][1][ASKED], there)
    assert not np.array_equal(found["apart"][1][PRESENT], here)


def test_no_coordinate_goes_beyond_the_limit() -> None:
    _, free = step(0)
    _, held = step(0, limit=0.5)
    assert np.abs(free[0] - 1).max() > 0.5
    assert np.array_equal(held[0], np.clip(free[0], 0.5, 1.5))


def test_a_bit_is_booked_with_its_product_its_pair_or_its_way() -> None:
    sums, word = no_sums(1, 3, 2, 3), np.uint64(77)
    for cell, bit in ((0, 1.0), (0, 0.0), (3, 1.0), (4, 0.0), (5, 1.0), (7, 0.0), (7, 0.25)):
        book_bit(sums.products, sums.pairs, sums.ways, 3, cell, word, bit)
    j, k = which_product(3, word)
    assert (sums.products[0, j, k], sums.products[1, j, k], sums.products.sum()) == (2, 1, 3)
    assert sums.pairs.tolist() == [[0, 0, 1, 1], [0, 0, 1, 0]]
    side = UP if is_up(word) else DOWN
    assert sums.ways[:, side].tolist() == [[1, 0, 2], [1, 0, 0.25]]
    assert not sums.ways[:, 1 - side].any()

"""One person of the dithered regression: where they are asked, and what their gradient does, by hand."""

import math
import os
from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special

from sottovoce.protocol.regression.dithered.step import (
    ASKED,
    GRADIENT,
    LOOKED,
    POINT,
    PRODUCT,
    SELDOM,
    SPREAD,
    Sums,
    learn,
    no_sums,
)
from sottovoce.protocol.regression.questions import FAR, MOMENT, NEAR, SIGNS, TIGHT, aim, public, which_product
from sottovoce.sim.randomness import dice

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
FALSE_ALARM = 1e-6
Floats = npt.NDArray[np.float64]
UPTO = np.array([0.1, 0.3, 0.6])
DIRECTIONS = np.array([[[0.7, 0.1], [0.1, 0.9]], [[0.5, -0.2], [-0.2, 0.4]]])
SIZES = np.array([[0.5, 0.25], [1.0, 0.5]])
POINTS = np.array([[[1.0, 2.0], [3.0, 4.0]], [[9.0, 9.0], [9.0, 9.0]]])


def signs_of(word: np.uint64, d: int) -> Floats:
    bits = int(public(word, SIGNS))
    return np.array([1.0 if bits >> k & 1 else -1.0 for k in range(d)])


def test_people_are_asked_as_often_as_ordered() -> None:
    n = 1000 if PLAIN else 20_000
    kinds = [aim(DIRECTIONS, SIZES, UPTO, word, POINTS.copy()) for word in dice(1).words(n)]
    seen = np.array([kinds.count(kind) for kind in (MOMENT, NEAR, FAR, TIGHT)])
    expected = n * np.array([0.1, 0.2, 0.3, 0.4])
    assert seen.sum() == n
    assert special.chdtrc(3, float(np.sum((seen - expected) ** 2 / expected))) > FALSE_ALARM


def test_nobody_is_asked_beside_the_point_unless_ordered() -> None:
    assert {aim(DIRECTIONS, SIZES, np.zeros(3), word, POINTS.copy()) for word in dice(1).words(300)} == {TIGHT}
    assert MOMENT not in {aim(DIRECTIONS, SIZES, np.array([0, 0.5, 1]), w, POINTS.copy()) for w in dice(1).words(300)}


def test_a_dither_is_its_size_times_its_directions_times_signs() -> None:
    met = set()
    for word in dice(2).words(400):
        points = POINTS.copy()
        kind = aim(DIRECTIONS, SIZES, UPTO, word, points)
        assert np.array_equal(points[0], POINTS[0])
        met.add(kind)
        if kind in (TIGHT, MOMENT):
            assert np.array_equal(points, POINTS)
            continue
        for level in range(2):
            off = SIZES[kind - 1, level] * DIRECTIONS[level] @ signs_of(word, 2)
            assert points[1, level] == pytest.approx(POINTS[0, level] + off)
    assert met == {TIGHT, NEAR, FAR, MOMENT}


def test_signs_are_balanced_and_independent_of_what_is_asked() -> None:
    n = 500 if PLAIN else 5000
    d = 5
    signs = np.array([signs_of(word, d) for word in dice(4).words(n)])
    assert np.abs(signs.mean(axis=0)).max() < 5.5 / math.sqrt(n)
    apart = signs.T @ signs / n - np.eye(d)
    assert np.abs(apart).max() < 5.5 / math.sqrt(n)


@pytest.mark.parametrize("d", [2, 3, 5])
def test_every_product_but_the_constant_is_as_likely(d: int) -> None:
    n = 1500 if PLAIN else 20_000
    drawn = [tuple(int(x) for x in which_product(d, word)) for word in dice(3).words(n)]
    products = [*combinations_with_replacement(range(d), 2)][1:]
    assert set(drawn) == set(products)
    seen = np.array([drawn.count(one) for one in products])
    expected = n / len(products)
    assert special.chdtrc(len(products) - 1, float(np.sum((seen - expected) ** 2) / expected)) > FALSE_ALARM


def step(kind: int, word: int, person: int, limit: float = math.inf, sums: Sums | None = None) -> tuple[Sums, Floats]:
    """Let one person speak of coordinates 2 and 0 at two levels."""
    d = 3
    sums = no_sums(2, d) if sums is None else sums
    gains = np.arange(2 * 2 * d * d, dtype=float).reshape(2, 2, d, d) / 10
    needs = np.array([[1.0, 2.0, 3.0, 0.5], [4.0, 5.0, 6.0, 0.25]])
    points = np.stack([np.arange(6.0).reshape(2, 3)] * 2)
    index, values = np.array([2, 0, 0]), np.array([[0.5, -1.0, 99.0], [2.0, 3.0, 99.0]])
    learn(
        gains, needs, limit, sums.counts, sums.vectors, sums.squares, kind, np.uint64(word), person, 2, index, values,
        np.ones((2, d)), points, 0, np.zeros(d),
    )  # fmt: skip
    return sums, points


GRADIENTS = np.array([[-1.0, 0.0, 0.5], [3.0, 0.0, 2.0]])


def test_a_tight_person_moves_the_point_by_the_gain() -> None:
    person = 10
    sums, points = step(TIGHT, 5, person)
    gains = np.arange(36.0).reshape(2, 2, 3, 3) / 10
    for level, need in enumerate(([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])):
        before = np.arange(6.0).reshape(2, 3)[level]
        scale = np.array(need) + person * (0.5, 0.25)[level]
        expected = before - gains[0, level] @ ((gains[1, level] @ GRADIENTS[level]) / scale)
        assert points[0, level] == pytest.approx(expected)
        assert sums.vectors[TIGHT, POINT, level] == pytest.approx(before - 1)
        assert sums.vectors[TIGHT, GRADIENT, level] == pytest.approx(GRADIENTS[level])
        whole = np.outer(GRADIENTS[level], GRADIENTS[level])
        found = sums.squares[PRODUCT, level]
        # each pair of coordinates is kept once, in the order in which they were spoken of
        assert found + found.T - np.diag(np.diag(found)) == pytest.approx(whole)
    assert sums.counts.tolist() == [1, 0, 0, 0, 0]
    assert not sums.squares[SPREAD].any()


def test_now_and_then_the_spread_of_the_points_is_looked_at() -> None:
    sums, _ = step(TIGHT, 5, 3 * SELDOM)
    assert sums.counts[LOOKED] == 1
    off = np.arange(6.0).reshape(2, 3) - 1
    for level in range(2):
        assert sums.squares[SPREAD, level] == pytest.approx(np.tril(np.outer(off[level], off[level])))


@pytest.mark.parametrize("kind", [NEAR, FAR])
def test_a_dithered_person_does_not_move_the_point(kind: int) -> None:
    sums, points = step(kind, 1234, SELDOM)
    assert np.array_equal(points[0], np.arange(6.0).reshape(2, 3))
    signs = signs_of(np.uint64(1234), 3)
    for level in range(2):
        assert sums.squares[kind - 1, level] == pytest.approx(np.outer(GRADIENTS[level], signs))
        assert sums.vectors[kind, GRADIENT, level] == pytest.approx(GRADIENTS[level])
        assert sums.vectors[kind, POINT, level] == pytest.approx(points[0, level] - 1)
    assert not sums.squares[PRODUCT].any()
    assert not sums.vectors[TIGHT].any()
    assert sums.counts.sum() == sums.counts[kind] == 1


@pytest.mark.parametrize("kind", [TIGHT, NEAR])
def test_a_person_of_a_batch_is_booked_under_the_point_they_were_asked_about(kind: int) -> None:
    gains, needs = np.arange(36.0).reshape(2, 2, 3, 3) / 10, np.full((2, 4), 0.5)
    index, values, word = np.array([2, 0, 0]), np.array([[0.5, -1.0, 99.0], [2.0, 3.0, 99.0]]), np.uint64(9)
    here, there = np.arange(6.0).reshape(2, 3), np.full((2, 3), 7.0)
    found = {}
    for name, asked, points in (
        ("apart", ASKED, np.stack([here, here, there])),
        ("here", 0, np.stack([here, here])),
        ("there", 0, np.stack([there, there])),
    ):
        sums = no_sums(2, 3)
        learn(
            gains, needs, math.inf, sums.counts, sums.vectors, sums.squares, kind, word, SELDOM, 2, index, values,
            np.ones((2, 3)), points, asked, np.zeros(3),
        )  # fmt: skip
        found[name] = (sums, points)
    for ours, theirs in zip(found["apart"][0], found["there"][0], strict=True):
        assert np.array_equal(ours, theirs)
    assert np.array_equal(found["apart"][1][0], found["here"][1][0])
    assert np.array_equal(found["apart"][1][ASKED], there)
    assert np.array_equal(found["apart"][1][0], here) == (kind != TIGHT)


def test_no_coordinate_goes_beyond_the_limit() -> None:
    _, free = step(TIGHT, 5, 0)
    _, held = step(TIGHT, 5, 0, limit=0.5)
    assert np.abs(free[0] - 1).max() > 0.5
    assert np.array_equal(held[0], np.clip(free[0], 0.5, 1.5))


def test_signs_of_many_coefficients_are_not_each_others() -> None:
    d = 66
    points = np.zeros((2, 1, d))
    met = []
    for word in dice(5).words(60):
        aim(np.eye(d)[None], np.ones((2, 1)), np.array([0.0, 0.0, 1.0]), word, points)
        met.append(points[1, 0].copy())
    signs = np.array(met)
    assert not np.array_equal(signs[:, 0], signs[:, 64])
    assert np.abs(signs[:, 64].mean()) < 1

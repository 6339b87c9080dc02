"""The rules for sites of equal size against searches through every pair, and their promises kept exactly."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sottovoce.core.arrays import Floats, Ints
from sottovoce.server.conformal.coverage import equal
from sottovoce.server.conformal.coverage.table import conformal_coverage
from sottovoce.sim.randomness import dice

SOURCE = dice(5).generator()
# (m, n, alpha), small enough that all pairs can be tried
RANDOM = [
    (
        int(SOURCE.integers(1, 40)),
        int(SOURCE.integers(1, 60)),
        float(SOURCE.choice([0.5, 0.2, 0.1, 0.05, SOURCE.random()])),
    )
    for _ in range(40)
]
EVERY = [(m, n, alpha) for m in (1, 2, 3, 5, 9) for n in (1, 2, 8, 19) for alpha in (0.02, 0.1, 0.25, 0.5, 0.9)]


def distributions(m: int, n: int) -> tuple[Ints, Ints, Floats, Floats]:
    orders, ranks = (part.ravel() for part in np.meshgrid(np.arange(1, n + 1), np.arange(1, m + 1)))
    return orders, ranks, *equal.moments(m, n, orders, ranks)


@pytest.mark.parametrize(("m", "n", "alpha"), RANDOM)
def test_the_papers_rule_is_the_minimum_of_the_table(m: int, n: int, alpha: float) -> None:
    table = conformal_coverage(m, n)
    valid = np.where(table >= 1 - alpha - equal.ROUNDING, table, 2.0)
    pair = equal.argmin(m, n, alpha)
    if valid.min() > 1:
        assert pair is None
        return
    assert pair is not None
    assert pair.mean == pytest.approx(float(valid.min()), abs=1e-12)
    assert table[pair.order - 1, pair.rank - 1] == pytest.approx(pair.mean, abs=1e-12)


@pytest.mark.parametrize(
    ("m", "n", "order", "rank"), [(50, 20, 18, 35), (100, 10, 10, 36), (10, 1000, 915, 1), (10_000, 100, 89, 7031)]
)
def test_the_papers_rule_on_known_tables(m: int, n: int, order: int, rank: int) -> None:
    assert equal.argmin(m, n, 0.1)[:2] == (order, rank)  # type: ignore[index]


@pytest.mark.parametrize(("m", "n", "alpha"), RANDOM + EVERY)
def test_closest_is_the_best_of_all_valid_pairs(m: int, n: int, alpha: float) -> None:
    _, _, mean, spread = distributions(m, n)
    square = np.where(mean >= 1 - alpha - equal.ROUNDING, (mean - 1 + alpha) ** 2 + spread**2, math.inf)
    pair = equal.closest(m, n, alpha)
    if math.isinf(square.min()):
        assert pair is None
        return
    assert pair is not None
    assert pair.mean >= 1 - alpha - equal.ROUNDING
    assert (pair.mean - 1 + alpha) ** 2 + pair.sd**2 == pytest.approx(float(square.min()), rel=1e-9)


@pytest.mark.parametrize("delta", [0.5, 0.1, 0.001])
@pytest.mark.parametrize(("m", "n", "alpha"), RANDOM[:12] + EVERY[::5])
def test_conditional_is_the_smallest_of_all_valid_pairs(m: int, n: int, alpha: float, delta: float) -> None:
    orders, ranks, mean, _ = distributions(m, n)
    valid = equal.probability(m, n, orders, ranks, 1 - alpha) >= 1 - delta - equal.ROUNDING
    pair = equal.conditional(m, n, alpha, delta)
    if not valid.any():
        assert pair is None
        return
    assert pair is not None
    assert pair.mean == pytest.approx(float(mean[valid].min()), abs=1e-12)
    assert exact_chance(m, n, pair.order, pair.rank, Fraction(1 - alpha)) >= 1 - delta - equal.ROUNDING


def exact_chance(m: int, n: int, order: int, rank: int, level: Fraction) -> Fraction:
    """Return P(Bin(m, P(Bin(n, level) >= order)) <= rank - 1)."""
    below = sum(math.comb(n, c) * level**c * (1 - level) ** (n - c) for c in range(order, n + 1))
    return Fraction(sum(math.comb(m, j) * below**j * (1 - below) ** (m - j) for j in range(rank)))


def test_probabilities_are_exact() -> None:
    source = dice(6).generator()
    for _ in range(60):
        m, n = int(source.integers(1, 15)), int(source.integers(1, 15))
        order, rank = int(source.integers(1, n + 1)), int(source.integers(1, m + 1))
        level = float(source.random())
        known = float(exact_chance(m, n, order, rank, Fraction(level)))
        assert float(equal.probability(m, n, order, rank, level)) == pytest.approx(known, rel=1e-11, abs=1e-14)


@pytest.mark.parametrize("alpha", [0.5, 0.2, 0.1, 0.05, 0.01, 1 / 3, 0.123])
def test_one_site_is_split_conformal(alpha: float) -> None:
    for n in [*range(1, 41), 99, 199, 999, 10_000]:
        order = (
            math.ceil(Fraction(str(alpha)) * -(n + 1) + n + 1)
            if alpha != 1 / 3
            else math.ceil(Fraction(2, 3) * (n + 1))
        )
        for rule in (equal.closest, equal.argmin):
            pair = rule(1, n, alpha)
            if order > n:
                assert pair is None
            else:
                assert pair is not None
                assert pair[:2] == (order, 1)
                assert pair.mean == pytest.approx(order / (n + 1), abs=1e-12)


def test_sites_of_one_score_are_split_conformal_too() -> None:
    for m in (1, 8, 9, 10, 57, 1000):
        pair = equal.closest(m, 1, 0.1)
        assert (None if pair is None else pair[:2]) == (None if m < 9 else (1, math.ceil(round(0.9 * (m + 1), 9))))


@pytest.mark.parametrize(("m", "n"), [(10, 100), (50, 20), (100, 10), (10, 1000), (100, 100), (5, 200)])
def test_known_figures(m: int, n: int) -> None:
    """The means that the paper's theorem and the exact rule give at delta = 0.1."""
    theorem = {
        (10, 100): 0.9641,
        (50, 20): 0.9903,
        (100, 10): 0.9928,
        (10, 1000): 0.9235,
        (100, 100): 0.9610,
        (5, 200): 0.9499,
    }
    exactly = {
        (10, 100): 0.9166,
        (50, 20): 0.9156,
        (100, 10): 0.9148,
        (10, 1000): 0.9048,
        (100, 100): 0.9052,
        (5, 200): 0.9162,
    }
    for rule, known in ((equal.theorem, theorem), (equal.conditional, exactly)):
        pair = rule(m, n, 0.1, 0.1)
        assert pair is not None
        assert pair.mean == pytest.approx(known[m, n], abs=5.1e-5)


@pytest.mark.parametrize(("m", "n", "alpha", "delta"), [(5, 40, 0.2, 0.1), (20, 30, 0.1, 0.3), (3, 200, 0.1, 0.05)])
def test_the_papers_theorem_is_the_smallest_that_it_allows(m: int, n: int, alpha: float, delta: float) -> None:
    orders, ranks, mean, _ = distributions(m, n)
    allowed = orders * ranks >= (1 - alpha + math.sqrt(math.log(1 / delta) / (2 * m * n))) * m * n * (1 - 1e-12)
    pair = equal.theorem(m, n, alpha, delta)
    assert pair is not None
    assert pair.mean == pytest.approx(float(mean[allowed].min()), abs=1e-12)
    # the theorem holds, with room to spare
    assert equal.probability(m, n, pair.order, pair.rank, 1 - alpha) >= 1 - delta


def test_of_many_orders_that_the_theorem_allows_the_best_is_found() -> None:
    m, n = 1000, 5000
    pair = equal.theorem(m, n, 0.2, 0.1)
    assert pair is not None
    needed = (0.8 + math.sqrt(math.log(10) / (2 * m * n))) * m * n
    orders = np.arange(math.ceil(needed / m), n + 1)
    assert len(orders) > equal.FEW
    best = equal.moments(m, n, orders, np.ceil(needed / orders))[0].min()
    assert pair.mean == pytest.approx(float(best), abs=1e-12)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 10**6), (10**6, 1), (10, 10**6), (10**6, 10), (1000, 1000)])
@pytest.mark.parametrize("alpha", [0.1, 0.999, 1e-5])
def test_any_size_and_level(m: int, n: int, alpha: float) -> None:
    pair = equal.closest(m, n, alpha)
    if (m * n + 1) * alpha < 1:
        assert pair is None
        return
    assert pair is not None
    assert 1 <= pair.order <= n
    assert 1 <= pair.rank <= m
    assert 1 - alpha - 1e-12 <= pair.mean < 1
    # no less spread than an order statistic of all scores in one place that has the same mean
    assert pair.sd >= 0.98 * math.sqrt(pair.mean * (1 - pair.mean) / (m * n + 2))

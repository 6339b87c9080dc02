"""Intervals assisted by other groups: Pratt's in closed form, coverage at every truth, and what help costs and buys."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from scipy import integrate, stats

from sottovoce.inference.common import normal
from sottovoce.inference.quantile.assisted import KEPT, Expected, interval, p_value

NORMAL = NormalDist()
ALPHA = 0.05


def of_normal(point: float, error: float, expected: Expected, level: float = 1 - ALPHA) -> tuple[float, float]:
    """Return the interval around one normal estimate."""

    def own(level: float) -> tuple[float, float]:
        return point - normal.two_sided(level) * error, point + normal.two_sided(level) * error

    def one_sided(value: float, alternative: str) -> float:
        return normal.p_value((point - value) / error, alternative)

    return interval(point, own, one_sided, expected, level)


def part_greater(value: float, expected: Expected) -> float:
    """Return the largest p-value of "it is greater" that refutes a value: found by halving, not by the formula."""
    low, high = 0.0, ALPHA
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if p_value(value, middle, 1 - 1e-16, expected) <= ALPHA else (low, middle)
    return high


@pytest.mark.parametrize("lean", [-30.0, -2.0, -0.1, 0.0, 0.4, 0.7, 3.0])
def test_the_parts_solve_the_equation_of_the_shortest_interval(lean: float) -> None:
    expected = Expected(2.0, 1.5, 0.7)
    value = 2.0 + lean * 1.5**2 / (2 * 0.7)
    part = part_greater(value, expected)
    assert KEPT * ALPHA * (1 - 1e-12) <= part <= (1 - KEPT) * ALPHA * (1 + 1e-12)
    if abs(lean) < 0.8:
        assert NORMAL.inv_cdf(ALPHA - part) - NORMAL.inv_cdf(part) == pytest.approx(lean, abs=1e-9)
    else:
        assert part == pytest.approx(ALPHA * (KEPT if lean > 0 else 1 - KEPT))


def test_the_parts_of_both_tests_are_the_whole_error() -> None:
    expected = Expected(0.0, 1.0, 1.0)
    for value in (-3.0, -0.5, 0.5, 3.0):
        here, mirrored = part_greater(value, expected), part_greater(-value, expected)
        assert here + mirrored == pytest.approx(ALPHA, rel=1e-12)


def test_no_other_division_that_keeps_a_tenth_on_each_side_is_shorter_on_average() -> None:
    # the mean length is the integral over values of the chance that a value is kept, under the groups' distribution
    expected, marginal = Expected(0.0, 0.8, 1.0), stats.norm(0.0, math.hypot(0.8, 1.0))

    def kept(value: float, part: float) -> float:
        low, high = value - stats.norm.isf(ALPHA - part), value + stats.norm.isf(part)
        return float(marginal.cdf(high) - marginal.cdf(low))

    def length(shift: float) -> float:
        def chance(value: float) -> float:
            best = part_greater(value, expected)
            return kept(value, min(max(best * (1 + shift), KEPT * ALPHA), (1 - KEPT) * ALPHA))

        return float(integrate.quad(chance, -12, 12, limit=200)[0])

    usual = float(integrate.quad(lambda value: kept(value, ALPHA / 2), -12, 12, limit=200)[0])
    best = length(0.0)
    assert best < min(length(0.1), length(-0.1))
    assert best < 0.93 * usual
    assert usual == pytest.approx(2 * 1.959964, rel=1e-4)


def test_of_groups_all_alike_it_is_a_seventh_shorter() -> None:
    low, high = of_normal(3.0, 1.0, Expected(3.0, 1e-3, 1.0))
    assert high - low == pytest.approx(2 * NORMAL.inv_cdf(1 - (1 - KEPT) * ALPHA), rel=1e-2)
    assert (high - low) / (2 * 1.959964) == pytest.approx(0.865, abs=0.005)


def test_without_help_it_is_the_usual_interval() -> None:
    assert of_normal(1.0, 2.0, Expected(0.0, 1e6, 2.0)) == pytest.approx((1 - 3.919928, 1 + 3.919928), abs=1e-3)


def test_a_wrong_expectation_lengthens_one_side_by_no_more_than_a_third() -> None:
    low, high = of_normal(6.0, 1.0, Expected(0.0, 0.5, 1.0))
    assert low == pytest.approx(6 + NORMAL.inv_cdf(KEPT * ALPHA), abs=1e-3)
    assert high == pytest.approx(6 - NORMAL.inv_cdf((1 - KEPT) * ALPHA), abs=1e-3)
    assert high - low < 1.09 * 2 * 1.959964


@pytest.mark.parametrize("truth", [0.0, 0.7, 2.0, 5.0])
@pytest.mark.parametrize("spread", [0.0, 0.3, 1.0])
def test_every_truth_is_refuted_exactly_as_often_as_stated(truth: float, spread: float) -> None:
    # the points at which a truth is refuted, integrated under their distribution, without simulation
    expected = Expected(0.0, spread, 1.0)

    def refuted(point: float) -> bool:
        z = point - truth
        return p_value(truth, normal.p_value(z, "greater"), normal.p_value(z, "less"), expected) <= ALPHA

    points = truth + np.linspace(-9, 9, 40_001)
    chance = stats.norm.pdf(points, truth) @ np.array([refuted(float(at)) for at in points]) * (points[1] - points[0])
    assert chance == pytest.approx(ALPHA, abs=2e-5)


@pytest.mark.parametrize("spread", [0.0, 0.3, 1.0])
def test_the_interval_holds_what_is_not_refuted_at_any_level(spread: float) -> None:
    expected = Expected(0.4, spread, 1.0)
    for level in (0.5, 0.9, 0.99):
        low, high = of_normal(1.0, 1.0, expected, level)
        for value in np.linspace(-5, 7, 97):
            z = 1.0 - value
            p = p_value(float(value), normal.p_value(z, "greater"), normal.p_value(z, "less"), expected)
            if min(abs(value - low), abs(value - high)) > 1e-6:
                assert (low < value < high) == (p > 1 - level)


def test_an_endless_interval_stays_endless() -> None:
    def own(level: float) -> tuple[float, float]:
        return -math.inf, 2.0

    low, high = interval(0.0, own, lambda value, side: normal.p_value(-value, side), Expected(0.0, 1.0, 1.0), 0.95)
    assert low == -math.inf
    assert math.isfinite(high)


@pytest.mark.parametrize(("location", "scale"), [(1e8, 1.0), (0.0, 1e-8), (5.0, 1e8)])
def test_it_follows_location_and_scale(location: float, scale: float) -> None:
    here = of_normal(1.0, 1.0, Expected(0.0, 0.8, 1.0))
    there = of_normal(location + scale, scale, Expected(location, 0.8 * scale, scale))
    assert there == pytest.approx([location + scale * end for end in here], rel=1e-9, abs=1e-4 * scale)

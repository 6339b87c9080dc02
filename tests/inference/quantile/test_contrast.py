"""Weighted sums of independent quantiles: as normal ones add up, exact ones by their worst ends."""

import math

import pytest

from sottovoce.inference.quantile.contrast import combined, own_level


def test_of_normal_intervals_variances_add_up() -> None:
    points, errors, weights = [3.0, 1.0, 2.0], [0.5, 1.0, 0.2], [1.0, -0.25, -0.75]
    ends = [(point - 2 * error, point + 2 * error) for point, error in zip(points, errors, strict=True)]
    low, high = combined(weights, points, ends)
    half = 2 * math.hypot(0.5, 0.25, 0.15)
    assert (low, high) == pytest.approx((1.25 - half, 1.25 + half))


def test_a_negative_weight_turns_the_sides() -> None:
    low, high = combined([1, -1], [0.0, 0.0], [(0.0, 0.0), (-1.0, 5.0)])
    assert (low, high) == (-5.0, 1.0)


def test_exact_ends_are_the_worst_of_all() -> None:
    assert combined([1, -0.5], [2.0, 4.0], [(1.0, 3.0), (2.0, 8.0)], slack=0.1, exact=True) == pytest.approx(
        (-3.1, 2.1)
    )


def test_endless_parts_make_endless_sums() -> None:
    assert combined([1, -1], [0.0, 0.0], [(-math.inf, 1.0), (0.0, 1.0)]) == (-math.inf, 1.0)
    assert combined([1, -1], [0.0, 0.0], [(-1.0, 1.0), (-math.inf, 1.0)], exact=True) == (-2.0, math.inf)


def test_parts_of_exact_sums_are_taken_further_out() -> None:
    assert own_level(0.95, 3, exact=False) == 0.95
    assert own_level(0.95, 3, exact=True) ** 3 == pytest.approx(0.95)
    assert own_level(1 - 1e-16, 50, exact=True) < 1

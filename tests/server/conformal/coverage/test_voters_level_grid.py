"""Integrals over levels against distributions with known moments, smooth or with corners."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import betainc, betaincc, expit, logit

from sottovoce.server.conformal.coverage.voters import EXPONENTIAL, FINE, SPACING, Corner, LevelGrid, level_grid


def beta(a: float, b: float) -> tuple[float, float]:
    mean = a / (a + b)
    return mean, math.sqrt(mean * (1 - mean) / (a + b + 1))


@pytest.mark.parametrize(
    ("a", "b"), [(1, 1), (1, 3), (90, 11), (9_000, 1_001), (900_001, 100_000), (5e7, 5e7), (1e-1, 9), (99_990, 11)]
)
@pytest.mark.parametrize("corners", [(), (Corner(0.3, 0.1),)])
def test_moments_of_beta_laws(a: float, b: float, corners: tuple[Corner, ...]) -> None:
    mean, spread = beta(a, b)
    grid = level_grid(mean, spread / (mean * (1 - mean)), corners=corners)
    survival = betaincc(a, b, grid.levels)
    assert float(grid.mean(survival)) == pytest.approx(mean, abs=2e-12)
    assert float(grid.sd(survival)) == pytest.approx(spread, rel=1e-6)


def test_both_ways_to_count_what_lies_left_agree() -> None:
    # spacings just above and just below FINE: a sum of many nodes, and its integral with corrections
    sums = [level_grid(0.7, deviation) for deviation in (FINE / 0.6 * 1.000001, FINE / 0.6 * 0.999999)]
    assert sums[0].mean_below == pytest.approx(sums[1].mean_below, abs=1e-7)
    for grid in sums:
        everything = np.ones((len(grid.levels), 1))
        # trapezoid to the last node and a half: right of it nothing is counted
        step = float(np.diff(logit(grid.levels[-2:]))[0])
        end = float(logit(grid.levels[-1])) + step / 2
        assert float(grid.mean(everything)[0]) == pytest.approx(float(expit(end)), abs=1e-7)
        square = grid.square_below + float(np.sum(2 * grid.levels * grid.weights))
        assert square == pytest.approx(float(expit(end)) ** 2, abs=1e-7)


def test_what_is_left_out_is_left_out_on_the_safe_side() -> None:
    grid = level_grid(0.9, 0.01)  # for a distribution that is wider by far
    mean, _ = beta(9, 1)
    assert float(grid.mean(betaincc(9, 1, grid.levels))) < mean


def test_a_corner_needs_panels_around_it() -> None:
    """A distribution that falls off exponentially from a corner, rounded off by almost nothing."""
    width, scale = 1e-4, 0.1
    corner = 0.2137

    def survival(levels: LevelGrid) -> Any:
        x = (logit(levels.levels) - corner) / scale
        return np.where(x < 0, 1 - 0.2 * np.exp(np.minimum(5 * x, 0)), 0.8 * np.exp(-np.maximum(x, 0)))

    fine = np.linspace(corner - 10, corner + 10, 2_000_001)
    x = (fine - corner) / scale
    chance = np.where(x < 0, 1 - 0.2 * np.exp(np.minimum(5 * x, 0)), 0.8 * np.exp(-np.maximum(x, 0)))
    known = float(expit(corner - 10) + np.sum(chance * expit(fine) * expit(-fine)) * (fine[1] - fine[0]))
    without = level_grid(0.55, scale, EXPONENTIAL)
    around = level_grid(0.55, scale, EXPONENTIAL, [Corner(corner, width)])
    assert abs(float(without.mean(survival(without))) - known) > 1e-5
    assert float(around.mean(survival(around))) == pytest.approx(known, abs=1e-7)
    assert len(around.levels) < 600


def test_many_corners_do_not_need_many_levels() -> None:
    few = level_grid(0.9, 0.05, EXPONENTIAL, [Corner(2.2, 0.01)])
    many = level_grid(0.9, 0.05, EXPONENTIAL, [Corner(2.2 + i * 1e-4, 0.01 + i * 1e-4) for i in range(100)])
    assert len(many.levels) < 2 * len(few.levels)
    assert (np.diff(many.levels) > 0).all()


@pytest.mark.parametrize(
    ("level", "deviation"), [(1e-9, 3.0), (1 - 1e-9, 3.0), (0.5, 1e-9), (0.999, 40.0), (0.5, 0.0001)]
)
def test_extreme_levels(level: float, deviation: float) -> None:
    for corners in ((), (Corner(float(logit(level)), min(deviation / 10, SPACING)),)):
        grid = level_grid(level, deviation, EXPONENTIAL, corners)
        assert len(grid.levels) < 5000
        assert np.isfinite(grid.weights).all()
        assert 0 <= grid.mean_below <= 1
        chance = betainc(1, 1, 1 - grid.levels)
        assert 0 <= float(grid.mean(chance)) <= 0.5 + 1e-9

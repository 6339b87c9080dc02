"""The three methods seen alike: point in interval, p-values that agree with it, a trajectory that ends there."""

import math
import os

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.facade.federated import METHODS
from sottovoce.facade.result import QuantileResult
from sottovoce.facade.solutions import Solution
from sottovoce.sim.randomness import dice

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="whole studies take minutes when not compiled"
)


VALUES = dice(21).generator().normal(3.0, 2.0, (3, 15_000))
RESULTS: dict[str, QuantileResult] = {}


@pytest.fixture(params=METHODS)
def solution(request: pytest.FixtureRequest) -> Solution:
    name = request.param
    if name not in RESULTS:
        RESULTS[name] = sv.federated_quantile(list(VALUES), 0.6, 2.0, method=name, randomness=dice(22))
    return RESULTS[name].solution


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_the_edges_have_the_p_value_of_their_level(solution: Solution, level: float) -> None:
    low, high = solution.interval(level)
    assert low < solution.point < high
    for edge, alternative in ((low, "greater"), (high, "less")):
        assert solution.p_value(edge, "two-sided") == pytest.approx(1 - level, rel=1e-3)
        assert solution.p_value(edge, alternative) == pytest.approx((1 - level) / 2, rel=1e-3)
        other = "less" if alternative == "greater" else "greater"
        assert solution.p_value(edge, other) == pytest.approx((1 + level) / 2, rel=1e-3)


def test_p_values_fall_on_both_sides(solution: Solution) -> None:
    assert solution.p_value(solution.point, "two-sided") == pytest.approx(1.0, abs=1e-3)
    half = solution.interval(0.95).high - solution.point
    for side in (-1, 1):
        values = [solution.p_value(solution.point + side * far * half, "two-sided") for far in (0.2, 0.7, 1.5)]
        assert values == sorted(values, reverse=True)
        assert values[0] > values[-1]


def test_the_trajectory_ends_at_the_answer(solution: Solution) -> None:
    rows = solution.trajectory(0.95)
    rounds, reports = [row.round for row in rows], [row.reports for row in rows]
    assert rounds == sorted(set(rounds))
    assert reports == sorted(set(reports))
    low, high = solution.interval(0.95)
    assert (rows[-1].average, rows[-1].low, rows[-1].high) == pytest.approx((solution.point, low, high), rel=1e-6)
    lengths = [row.high - row.low for row in rows]
    assert lengths[-1] < np.median([length for length in lengths if math.isfinite(length)])

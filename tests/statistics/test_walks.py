"""The figures of the paper's recursion through the public call; minutes, so `slow`.

Coverage is compared by a two-sided margin of five standard errors (a false alarm in two million), error and length with
the figure itself.
"""

import math

import pytest
from benchmarks.walks import figures

REPLICATIONS = 1500


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "schedule", "low", "high", "error", "length"),
    [
        ("regression", "every:1", 0.93, 0.97, 1.10, 1.20),
        ("regression", "every:5", 0.93, 0.97, 1.10, 1.20),
        ("regression", "log", 0.93, 0.97, 1.10, 1.20),
        ("self-normalised", "every:1", 0.94, 0.97, 1.15, 1.40),
    ],
)
def test_the_recursion_reaches_its_figures(
    method: str, schedule: str, low: float, high: float, error: float, length: float
) -> None:
    seen = figures(method, schedule, REPLICATIONS, 700_000, jobs=2)
    margin = 5 * math.sqrt(0.95 * 0.05 / REPLICATIONS)
    assert low - margin < seen.coverage < high + margin
    assert seen.error <= error
    assert seen.length <= length

import math

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.inference.regression.higrad import Tree
from sottovoce.inference.regression.undercoverage import (
    average_step,
    expected_bias_ratio,
    group_coverage,
    self_normalised_coverage,
)
from sottovoce.inference.self_normalised.critical_values import critical_value
from sottovoce.sim import dice

TAU, P, N = 0.75, 8, 3 * 10**8


def paper_cell(epsilon: float, q: int, s: int) -> tuple[float, float, float]:
    """Return trace and intercept of Omega and the step's numerator for a CQ channel on uniform covariates."""
    d, v, reach = P + 1, TAU * (1 - TAU), max(TAU, 1 - TAU)
    if math.isinf(epsilon):
        return v * (1 + P / 3), v, 10 / (2 * reach * math.sqrt(d))
    odds, h, grid, tilt = math.expm1(epsilon), 2 / (q - 1), (q + 1) / (3 * (q - 1)), (1 - 2 * TAU) / 2
    with_face, without = (odds / (odds + letters) for letters in (2 * q ** (s - 1), q**s))
    intercept = (with_face * (v + tilt**2) + (1 - with_face) / 4) / with_face**2 - tilt**2
    faces = (1 - with_face) * (TAU**2 + (1 - TAU) ** 2) * grid / 2
    inside = (with_face * v * (1 / 3 + h**2 / 6) + faces) / with_face**2
    z = (np.arange(20_000) + 0.5) / 10_000 - 1
    rounding = 0.0
    for size, chance in ((1 - TAU, TAU), (TAU, 1 - TAU)):
        cell = (size * z + reach) / (reach * h) % 1.0
        rounding += chance * (reach * h) ** 2 * float(np.mean(cell * (1 - cell)))
    outside = (without * (v / 3 + rounding) + (1 - without) * reach**2 * grid) / without**2
    slope = (s - 1) / P * inside + (1 - (s - 1) / P) * outside
    reference = with_face if s == d else min(with_face, without)
    step = 10 * reference * math.sqrt(s / d) / (2 * reach * math.sqrt(d))
    return (intercept + P * slope) * d / s, intercept * d / s, step


@pytest.mark.parametrize(
    ("epsilon", "q", "s", "sn", "dc", "tree", "restarted"),
    [
        (0.5, 2, 1, 0.898, 0.052, 0.734, 0.002),
        (1, 2, 1, 0.896, 0.046, 0.727, 0.001),
        (2, 3, 1, 0.938, 0.593, 0.902, 0.347),
        (4, 8, 1, 0.947, 0.863, 0.938, 0.785),
        (8, 3, 5, 0.945, 0.817, 0.933, 0.701),
        (16, 4, 9, 0.947, 0.892, 0.942, 0.840),
        (math.inf, 0, 0, 0.948, 0.908, 0.944, 0.871),
    ],
)
def test_coverage_of_the_intercept_at_the_papers_hard_cells(
    epsilon: float, q: int, s: int, sn: float, dc: float, tree: float, restarted: float
) -> None:
    trace, intercept, scale = paper_cell(epsilon, q, s)

    def ratio(mean_step: float) -> float:
        return expected_bias_ratio(TAU, trace, intercept, mean_step, N)

    assert self_normalised_coverage(ratio(average_step(scale, 0, N)), 0.95) == pytest.approx(sn, abs=2e-3)
    assert group_coverage(ratio(average_step(scale, 0, N / 13)), 13, 0.95) == pytest.approx(dc, abs=2e-3)
    leaves = Tree((4, 4), N)  # step time continues along a path, and levels weigh by their people
    steps = [average_step(scale, start, stop) for start, stop in leaves.spans]
    assert group_coverage(ratio(float(np.dot(leaves.weights, steps))), 16, 0.95) == pytest.approx(tree, abs=2e-3)
    assert group_coverage(ratio(average_step(scale, 0, N / 21)), 16, 0.95) == pytest.approx(restarted, abs=2e-3)


def test_mean_step_is_that_of_the_sum() -> None:
    steps = 2.0 / (np.arange(1.0, 100_001.0) ** 0.65 + 300.0)
    assert average_step(2.0, 0, 100_000) == pytest.approx(steps.mean(), rel=1e-5)
    assert average_step(2.0, 1000, 5000) == pytest.approx(steps[1000:5000].mean(), rel=1e-5)
    assert average_step(2.0, 0, 20, power=0.8, offset=0.5) == pytest.approx(
        np.mean(2.0 / (np.arange(1.0, 21.0) ** 0.8 + 0.5)), rel=0.02
    )


def test_bias_of_a_simulated_recursion() -> None:
    # Intercept alone, tau = .8, logistic noise of scale 1, constant step: the bias is bend step tau (1 - tau) / (2 f).
    tau, step, runs, n = 0.8, 0.25, 4000, 400
    generator = dice(41).generator()
    point, total = np.zeros(runs), np.zeros(runs)
    for i in range(2 * n):
        noise = generator.logistic(size=runs) - math.log(tau / (1 - tau))
        point -= step * ((noise <= point) - tau)
        if i >= n:
            total += point
    sd = math.sqrt(tau * (1 - tau) / n) / (tau * (1 - tau))
    ratio = expected_bias_ratio(tau, tau * (1 - tau), tau * (1 - tau), step, n, curvature=(2 * tau - 1) / 2)
    # First order in the step: within a tenth, which is 15 standard errors of this simulation.
    assert total.mean() / n / sd == pytest.approx(ratio, rel=0.1)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_without_bias_the_coverage_is_the_level(level: float) -> None:
    assert self_normalised_coverage(0.0, level) == pytest.approx(level, abs=1e-8)
    assert group_coverage(0.0, 7, level) == pytest.approx(level, abs=1e-8)


@pytest.mark.parametrize("bias", [0.5, 2.0, 6.0])
def test_coverage_falls_with_the_size_of_the_bias(bias: float) -> None:
    for coverage in (self_normalised_coverage, lambda ratio, level: group_coverage(ratio, 9, level)):
        assert coverage(bias, 0.95) == pytest.approx(coverage(-bias, 0.95), abs=1e-12)
        assert 0.0 <= coverage(bias + 0.5, 0.95) < coverage(bias, 0.95) < 0.95


def test_self_normalised_coverage_against_bridges() -> None:
    # 200,000 bridges of 40 terms and their mean tail: 4.9 standard errors are a false alarm in 1e6.
    variances = 1.0 / (math.pi * np.arange(1, 41)) ** 2
    squares = dice(43).generator().standard_normal((200_000, 40)) ** 2 @ variances + 1 / 6 - variances.sum()
    reach = critical_value(0.95) * np.sqrt(squares)
    from scipy.special import ndtr

    held = ndtr(reach - 1.5) - ndtr(-reach - 1.5)
    assert abs(held.mean() - self_normalised_coverage(1.5, 0.95)) < 4.9 * held.std() / math.sqrt(200_000)


def test_bad_input_is_refused() -> None:
    with pytest.raises(BadInput, match="tau"):
        expected_bias_ratio(1.0, 1.0, 0.5, 0.1, 100)
    with pytest.raises(BadInput, match="positive"):
        expected_bias_ratio(0.5, 1.0, 1.5, 0.1, 100)
    with pytest.raises(BadInput, match="no segment"):
        average_step(1.0, 5, 5)
    with pytest.raises(BadInput, match="strictly between"):
        self_normalised_coverage(1.0, 95.0)

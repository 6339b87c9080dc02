import math

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.core.errors import BadInput
from sottovoce.inference.common.groups import (
    covariance,
    ellipsoid,
    hotelling_value,
    interval,
    mean,
    p_value,
    student_p_value,
    student_value,
)
from sottovoce.sim import dice

Array = NDArray[np.float64]
CENTRES = np.array([[1.0, 0.2, 3.0], [1.5, 0.1, 2.0], [0.7, 0.4, 2.5], [1.1, 0.1, 3.5], [0.9, 0.6, 2.2]])
ROOT = np.array([[1.0, 0.0], [0.9, 0.2]])


def test_mean_and_covariance_are_those_of_a_sample() -> None:
    for shift in (0.0, 1e8):
        assert mean(CENTRES + shift) - shift == pytest.approx(CENTRES.mean(0), abs=1e-7 if shift else 1e-14)
        assert covariance(CENTRES + shift) == pytest.approx(np.cov(CENTRES.T), rel=1e-12 if not shift else 1e-6)


def test_interval_is_students() -> None:
    a = np.array([1.0, -1.0, 0.5])
    values = CENTRES @ a
    low, high = interval(CENTRES, a, 0.95)
    # t with 4 degrees of freedom: 2.776445.
    assert high - low == pytest.approx(2 * 2.7764451052 * values.std(ddof=1) / math.sqrt(5), rel=1e-9)
    assert (low + high) / 2 == pytest.approx(values.mean())
    assert p_value(CENTRES, a, high) == pytest.approx(0.05)
    assert student_p_value(0.0, 4) == 1.0
    assert student_value(0.9, 1) == pytest.approx(math.tan(0.45 * math.pi))


def test_one_contrast_at_a_time_is_the_interval() -> None:
    assert hotelling_value(1, 5, 0.95) == pytest.approx(student_value(0.95, 4) ** 2)
    assert ellipsoid(CENTRES, 0.95, [0.0, 1.0, 0.0]).interval([1.0]) == pytest.approx(
        interval(CENTRES, [0.0, 1.0, 0.0], 0.95)
    )


def test_ellipsoid_is_hotellings() -> None:
    rows = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    region = ellipsoid(CENTRES, 0.9, rows)
    gap = np.array([0.3, -0.2])
    statistic = 5 * gap @ np.linalg.solve(rows @ np.cov(CENTRES.T) @ rows.T, gap)
    assert region.statistic(rows @ CENTRES.mean(0) + gap) == pytest.approx(statistic)
    # F with 2 and 3 degrees of freedom: 5.462383 at 90 %.
    assert region.radius2 == pytest.approx(2 * 4 / 3 * 5.4623832, rel=1e-6)


def test_coverage_of_normal_groups() -> None:
    # 4000 runs of seven groups: 4.9 standard errors are a false alarm in 1e6.
    runs, generator = 4000, dice(21).generator()
    truth = np.array([1e6, -3.0])
    held = [0, 0]
    for _ in range(runs):
        centres = truth + generator.standard_normal((7, 2)) @ ROOT.T
        low, high = interval(centres, [0.0, 1.0], 0.9)
        held[0] += low <= truth[1] <= high
        held[1] += ellipsoid(centres, 0.9).contains(truth)
    for count in held:
        assert abs(count / runs - 0.9) < 4.9 * math.sqrt(0.9 * 0.1 / runs)


def test_too_few_groups_are_refused() -> None:
    with pytest.raises(BadInput, match="more than 3 groups, but there are 3"):
        ellipsoid(CENTRES[:3], 0.95)
    with pytest.raises(BadInput, match="at least two groups"):
        interval(CENTRES[:1], [1.0, 0.0, 0.0], 0.95)
    assert ellipsoid(CENTRES[:4], 0.95).radius2 == pytest.approx(9 * 215.7073, rel=1e-5)


def test_what_does_not_vary_is_refused() -> None:
    twins = CENTRES[:, [0, 0, 1]]
    with pytest.raises(BadInput, match="rank 2 of 3"):
        ellipsoid(twins, 0.95)
    with pytest.raises(BadInput, match="no variance"):
        interval(twins, [1.0, -1.0, 0.0], 0.95)
    with pytest.raises(BadInput, match="no variance"):
        interval(CENTRES, [0.0, 0.0, 0.0], 0.95)
    with pytest.raises(BadInput, match="rank 0 of 3"):
        ellipsoid(np.ones((5, 3)), 0.95)


def test_bad_centres_are_refused() -> None:
    for centres in ([1.0, 2.0], [[math.nan], [1.0]], np.empty((3, 0))):
        with pytest.raises(BadInput, match="centres"):
            mean(centres)
    with pytest.raises(BadInput, match="strictly between"):
        interval(CENTRES, [1.0, 0.0, 0.0], 0.0)
    with pytest.raises(BadInput, match="strictly between"):
        ellipsoid(CENTRES, 1.5)

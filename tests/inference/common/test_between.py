"""Mean and variance between groups: against the equation they solve, the closed form, and where nothing differs."""

import numpy as np
import pytest

from sottovoce.inference.common.between import between
from sottovoce.sim.randomness import dice


def test_of_equal_errors_it_is_the_closed_form() -> None:
    values = dice(1).generator().normal(5.0, 2.0, 40)
    found = between(values, [0.5] * 40)
    assert found.mean == pytest.approx(values.mean(), rel=1e-12)
    assert found.variance == pytest.approx(values.var(ddof=1) - 0.25, rel=1e-9)
    assert found.error == pytest.approx(np.sqrt(values.var(ddof=1) / 40), rel=1e-9)


def test_the_weighted_squares_are_as_many_as_their_degrees_of_freedom() -> None:
    source = dice(2).generator()
    errors = source.uniform(0.1, 3.0, 30)
    values = source.normal(0.0, 2.0, 30) + errors * source.normal(size=30)
    found = between(values, errors)
    assert found.variance > 0
    weights = 1 / (errors**2 + found.variance)
    assert float(weights @ (values - found.mean) ** 2) == pytest.approx(29.0, rel=1e-9)


def test_groups_that_differ_by_less_than_their_errors_do_not_differ() -> None:
    found = between([1.0, 1.1, 0.9], [1.0, 1.0, 1.0])
    assert found.variance == 0.0
    assert found.error == pytest.approx(1 / np.sqrt(3))


def test_one_group_is_its_own_mean() -> None:
    assert between([7.0], [2.0]) == (7.0, 2.0, 0.0)


@pytest.mark.parametrize(("location", "scale"), [(1e8, 1.0), (-3.0, 1e-8), (0.0, 1e8)])
def test_it_follows_location_and_scale(location: float, scale: float) -> None:
    values, errors = np.array([0.0, 1.0, 4.0, 2.0, -3.0]), np.array([0.5, 1.0, 0.2, 0.4, 0.9])
    here, there = between(values, errors), between(location + scale * values, scale * errors)
    assert there.mean == pytest.approx(location + scale * here.mean, rel=1e-9)
    assert there.variance == pytest.approx(scale**2 * here.variance, rel=1e-5)


def test_the_variance_is_found_on_average() -> None:
    # 400 studies of 50 groups: the mean of the estimates within five of its errors, false alarm 6e-7, once
    source, told = dice(3).generator(), []
    for _ in range(400):
        errors = source.uniform(0.5, 1.5, 50)
        told.append(between(source.normal(0.0, 1.5, 50) + errors * source.normal(size=50), errors).variance)
    assert abs(np.mean(told) - 2.25) < 5 * np.std(told) / 20 + 0.02

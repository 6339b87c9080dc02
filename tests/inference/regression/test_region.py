import math

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.inference.regression.region import Ellipsoid, normal_ellipsoid
from sottovoce.sim import dice

SHAPE = np.array([[4.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]])
REGION = Ellipsoid(np.array([1.0, -2.0, 3.0]), SHAPE, 2.5)


def test_axes_end_on_the_edge_and_multiply_to_the_volume() -> None:
    lengths, directions = REGION.axes()
    assert np.all(np.diff(lengths) < 0)
    for length, direction in zip(lengths, directions.T, strict=True):
        assert REGION.statistic(REGION.centre - length * direction) == pytest.approx(REGION.radius2)
    assert REGION.volume == pytest.approx(4 / 3 * math.pi * np.prod(lengths))


def test_the_shadow_touches_the_edge() -> None:
    a = np.array([0.3, -1.0, 2.0])
    low, high = REGION.interval(a)
    touching = REGION.centre + SHAPE @ a * math.sqrt(REGION.radius2 / (a @ SHAPE @ a))
    assert a @ touching == pytest.approx(high)
    assert REGION.statistic(touching) == pytest.approx(REGION.radius2)
    assert (low + high) / 2 == pytest.approx(a @ REGION.centre)


def test_volume_of_one_and_of_many_dimensions() -> None:
    assert Ellipsoid(np.zeros(1), np.array([[4.0]]), 9.0).volume == pytest.approx(12.0)
    assert Ellipsoid(np.zeros(20), 1e-20 * np.eye(20), 1.0).volume == pytest.approx(1e-200 * math.pi**10 / 3628800)


def test_contains_inside_edge_and_outside() -> None:
    disc = Ellipsoid(np.zeros(2), np.diag([1e-16, 1e16]), 1.0)
    assert disc.contains([0.9e-8, 0.0])
    assert disc.contains([0.0, 0.99e8])
    assert not disc.contains([0.8e-8, 0.8e8])
    assert not disc.contains([1.1e-8, 0.0])


def test_normal_ellipsoid_covers_a_normal_estimate() -> None:
    # 20,000 draws at level .8: 4.9 standard errors are a false alarm in 1e6.
    draws = dice(3).generator().standard_normal((20_000, 3)) @ np.linalg.cholesky(SHAPE).T
    region = normal_ellipsoid(np.zeros(3), SHAPE, 0.8)
    inside = np.einsum("ij,ij->i", draws, np.linalg.solve(SHAPE, draws.T).T) <= region.radius2
    assert abs(inside.mean() - 0.8) < 4.9 * math.sqrt(0.8 * 0.2 / 20_000)
    assert region.contains(draws[0]) == bool(inside[0])


def test_bad_input_is_refused() -> None:
    with pytest.raises(BadInput, match="rank 1 of 2"):
        normal_ellipsoid([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]], 0.9)
    with pytest.raises(BadInput, match="rank 1 of 2"):
        normal_ellipsoid([0.0, 0.0], [[1.0, 0.0], [0.0, 0.0]], 0.9)
    with pytest.raises(BadInput, match="shape"):
        normal_ellipsoid([0.0, 0.0], [[1.0]], 0.9)
    with pytest.raises(BadInput, match="strictly between"):
        normal_ellipsoid([0.0], [[1.0]], 1.0)
    with pytest.raises(BadInput, match="point must hold 3"):
        REGION.contains([1.0])
    with pytest.raises(BadInput, match="contrast must hold 3"):
        REGION.interval(["a", 1.0, 2.0])  # type: ignore[list-item]

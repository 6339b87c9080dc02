import math
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.core.errors import BadInput
from sottovoce.inference.regression.vector_normalised import (
    VectorMemory,
    add_all,
    covariance,
    ellipsoid,
    ellipsoid_value,
    init,
    interval,
    look,
    mean,
    p_value,
)
from sottovoce.inference.self_normalised import memory as self_normalised
from sottovoce.inference.self_normalised.critical_values import critical_value
from sottovoce.sim import dice

Array = NDArray[np.float64]


def wave(n: int, d: int = 3) -> Array:
    """Rough, deterministic points around one, with a transient."""
    i = np.arange(1.0, n + 1.0)[:, None]
    k = np.arange(1.0, d + 1.0)
    points: Array = 1.0 + np.sin(0.7 * k * i) + np.sin(0.013 * i**2 / k) + 3.0 * np.exp(-i / 20.0)
    return points


def remember(points: Array) -> VectorMemory:
    memory = init(points.shape[1])
    return VectorMemory(add_all(points, 0, *memory[1:]), *memory[1:])


def arrays(memory: VectorMemory) -> tuple[Array, ...]:
    return memory.reference, memory.total, memory.first, memory.outer


def definition(points: Array) -> Array:
    """Equation (16), word by word, on distances from the last point."""
    apart = points - points[-1]
    number = np.arange(1.0, len(points) + 1.0)[:, None]
    averages = np.cumsum(apart, axis=0) / number
    steps = number * (averages - averages[-1])
    normaliser: Array = steps.T @ steps / len(points) ** 2
    return normaliser


@pytest.mark.parametrize("n", [2, 3, 4, 63, 64, 65, 300])
def test_memory_is_equation_16(n: int) -> None:
    points = wave(n)
    memory = remember(points)
    assert memory.n == n
    assert mean(memory) == pytest.approx(points.mean(0), rel=1e-13)
    assert covariance(memory) == pytest.approx(definition(points), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("location", [0.0, 1e8, -1e8])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_location_and_unit_cost_no_digits(location: float, scale: float) -> None:
    # A double keeps eight digits of a point of size one at 1e8, and the location is in units of the points.
    points = scale * (wave(300) + location)
    assert covariance(remember(points)) == pytest.approx(definition(points), rel=1e-9, abs=1e-12 * scale**2)


def test_units_may_differ_between_coefficients() -> None:
    units = np.array([1e-8, 1.0, 1e8])
    shape = ellipsoid(remember(wave(300) * units), 0.95).shape
    assert shape / np.outer(units, units) == pytest.approx(ellipsoid(remember(wave(300)), 0.95).shape, rel=1e-9)


def test_a_start_far_away_costs_no_digits() -> None:
    # Only the first looks see the far start: a reference that stayed there would keep half of the digits that follow.
    points = np.concatenate([np.zeros((1, 3)), 1e7 + wave(5000)])
    assert covariance(remember(points)) == pytest.approx(definition(points), rel=1e-8)
    settled = remember(1e7 + wave(5000))
    assert np.abs(settled.reference - mean(settled)).max() < 1.0


def test_one_coefficient_is_the_scalar_method() -> None:
    points = wave(200, 1)
    scalar = self_normalised.init()
    for point in points[:, 0].tolist():
        scalar = self_normalised.look(scalar, point, 1.0)
    assert interval(remember(points), [1.0], 0.95) == pytest.approx(self_normalised.interval(scalar, 0.95), rel=1e-10)


def test_pieces_and_single_looks_leave_the_same_memory_bit_for_bit() -> None:
    points = wave(100)
    whole, pieces, single = remember(points), init(3), init(3)
    for start, stop in pairwise([0, 1, 7, 8, 31, 33, 64, 100]):
        pieces = VectorMemory(add_all(points[start:stop], pieces.n, *pieces[1:]), *pieces[1:])
    for point in points:
        single = look(single, point)
    for other in (pieces, single):
        assert other.n == whole.n
        assert all(np.array_equal(ours, theirs) for ours, theirs in zip(arrays(whole), arrays(other), strict=True))


def test_looking_leaves_the_past_alone() -> None:
    before = remember(wave(10))
    copy = [part.copy() for part in arrays(before)]
    assert look(before, [1.0, 2.0, 3.0]).n == 11
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(arrays(before), copy, strict=True))


def test_interval_and_ellipsoid_are_equations_18_and_19() -> None:
    points = wave(300)
    memory, v, a = remember(points), definition(points), np.array([1.0, -2.0, 0.5])
    low, high = interval(memory, a, 0.9)
    assert (low + high) / 2 == pytest.approx(a @ points.mean(0))
    assert high - low == pytest.approx(2 * critical_value(0.9) * math.sqrt(a @ v @ a / 300))
    region = ellipsoid(memory, 0.9)
    edge = points.mean(0) + a * math.sqrt(ellipsoid_value(0.9, 3) / 300 / (a @ np.linalg.solve(v, a)))
    assert region.statistic(edge) == pytest.approx(region.radius2)
    assert p_value(memory, a, low) == pytest.approx(0.1)


def test_contrasts_have_their_own_ellipsoid() -> None:
    memory = remember(wave(300))
    rows = [[1.0, 0.0, 0.0], [0.0, 1.0, -1.0]]
    region = ellipsoid(memory, 0.95, rows)
    assert region.radius2 == ellipsoid_value(0.95, 2)
    assert region.centre == pytest.approx(np.array(rows) @ mean(memory))
    # One contrast is the interval; the shadow of more is longer.
    assert ellipsoid(memory, 0.95, [rows[1]]).interval([1.0]) == pytest.approx(interval(memory, rows[1], 0.95))
    low, high = interval(memory, rows[1], 0.95)
    assert region.interval([0.0, 1.0])[0] < low < high < region.interval([0.0, 1.0])[1]


def test_coverage_on_random_walks() -> None:
    # Correlated noise around a truth at 1e6; the limits of a binomial at false-alarm rate 1e-6 are 4.9 standard errors.
    runs, n = 800, 400
    generator = dice(11).generator()
    root = np.array([[1.0, 0.0, 0.0], [0.9, 0.3, 0.0], [-0.4, 2.0, 5.0]])
    truth = np.array([1e6, -1e6, 0.0])
    held = {"interval": 0, "ellipsoid": 0}
    for _ in range(runs):
        memory = remember(truth + generator.standard_normal((n, 3)) @ root.T)
        low, high = interval(memory, [1.0, 1.0, 0.2], 0.9)
        held["interval"] += low <= 0.0 <= high
        held["ellipsoid"] += ellipsoid(memory, 0.9).contains(truth)
    for count in held.values():
        assert abs(count / runs - 0.9) < 4.9 * math.sqrt(0.9 * 0.1 / runs)


def test_what_does_not_move_is_refused() -> None:
    memory = remember(wave(300))
    with pytest.raises(BadInput, match="no variance"):
        interval(memory, [0.0, 0.0, 0.0], 0.95)
    twins = remember(wave(300)[:, [0, 0, 1]] + 1e6)
    with pytest.raises(BadInput, match="no variance"):
        interval(twins, [1.0, -1.0, 0.0], 0.95)
    with pytest.raises(BadInput, match="rank 2 of 3"):
        ellipsoid(twins, 0.95)
    with pytest.raises(BadInput, match="rank 2 of 3"):
        ellipsoid(remember(wave(3)), 0.95)
    still = remember(np.column_stack([wave(300), np.full(300, 7.0)]))
    with pytest.raises(BadInput, match="rank 3 of 4"):
        ellipsoid(still, 0.95)
    assert ellipsoid(twins, 0.95, [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]).radius2 == ellipsoid_value(0.95, 2)
    with pytest.raises(BadInput, match="rank 0 of 3"):
        ellipsoid(init(3), 0.95)


def test_bad_shapes_are_refused() -> None:
    with pytest.raises(BadInput, match="at least one coefficient"):
        init(0)
    with pytest.raises(BadInput, match="contrast must hold 3"):
        interval(remember(wave(9)), [1.0], 0.95)
    with pytest.raises(BadInput, match="point must hold 3"):
        look(init(3), [1.0, math.nan, 0.0])
    with pytest.raises(BadInput, match="rows of 3"):
        ellipsoid(remember(wave(9)), 0.95, [[1.0, 0.0]])
    with pytest.raises(BadInput, match="strictly between"):
        interval(remember(wave(9)), [1.0, 0.0, 0.0], 95)

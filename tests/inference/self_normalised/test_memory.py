import math

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.core.errors import BadInput
from sottovoce.core.kernels import njit
from sottovoce.inference.self_normalised.critical_values import critical_value
from sottovoce.inference.self_normalised.memory import (
    CHECKPOINTS,
    Memory,
    Path,
    average,
    init,
    init_path,
    interval,
    look,
    look_path,
    normaliser,
    path_average,
    path_interval,
    variance,
)

Array = NDArray[np.float64]

ROUNDS = 300
ELAPSED = np.where(np.arange(ROUNDS) < 100, 1.0, 4.0)


def wave(n: int) -> Array:
    """Rough, deterministic points around one, with a transient."""
    i = np.arange(1.0, n + 1.0)
    points: Array = 1.0 + np.sin(0.7 * i) + np.sin(0.013 * i**2) + 3.0 * np.exp(-i / 20.0)
    return points


def remember(points: Array, elapsed: Array) -> Memory:
    memory = init()
    for point, steps in zip(points.tolist(), elapsed.tolist(), strict=True):
        memory = look(memory, point, steps)
    return memory


@njit(cache=True)
def carry(memory: Memory, points: Array, elapsed: Array) -> Memory:
    for i in range(points.size):
        memory = look(memory, points[i], elapsed[i])
    return memory


def walk(points: Array, elapsed: Array) -> Path:
    path = init_path()
    for point, steps in zip(points.tolist(), elapsed.tolist(), strict=True):
        path = look_path(path, point, steps)
    return path


def distances(points: Array) -> Array:
    """|i (Q_i - Q_m)| / m, straight from the definition."""
    i = np.arange(1.0, points.size + 1.0)
    averages = np.cumsum(points) / i
    apart: Array = np.abs(i * (averages - averages[-1])) / points.size
    return apart


def test_memory_is_algorithm_2() -> None:
    points = wave(ROUNDS)
    memory = remember(points, ELAPSED)
    weights = 1.0 / ELAPSED
    assert average(memory) == pytest.approx(points.mean(), rel=1e-13)
    assert variance(memory) == pytest.approx(np.sum(weights * distances(points) ** 2) / weights.sum(), rel=1e-11)
    assert memory.time == ELAPSED.sum()
    assert memory.noise == pytest.approx(weights.sum())


def test_kernels_can_carry_the_memory() -> None:
    points = wave(ROUNDS)
    assert carry(init(), points, ELAPSED) == pytest.approx(remember(points, ELAPSED), rel=1e-12)


@pytest.mark.parametrize("shift", [0.0, 1e8, -1e8])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_shift_and_scale_change_nothing_else(shift: float, scale: float) -> None:
    # A double keeps eight digits of a point of size one at 1e8, and the shift is in units of the points.
    points = wave(ROUNDS)
    low, high = interval(remember(points, ELAPSED), 0.95)
    moved_low, moved_high = interval(remember(scale * (points + shift), ELAPSED), 0.95)
    assert moved_high - moved_low == pytest.approx(scale * (high - low), rel=1e-6)
    assert (moved_low + moved_high) / (2.0 * scale) - shift == pytest.approx((low + high) / 2.0, abs=1e-6)
    for norm in ("sup", "l1"):
        assert normaliser(walk(scale * (points + shift), ELAPSED), norm) == pytest.approx(
            scale * normaliser(walk(points, ELAPSED), norm), rel=1e-6
        )


def test_a_start_far_away_costs_no_digits() -> None:
    # Centred at the first point alone, the sum of squares would keep half of the digits here.
    points = np.append(0.0, 1e7 + wave(ROUNDS - 1))
    reference = np.sum(distances(points) ** 2 / ELAPSED) / np.sum(1.0 / ELAPSED)
    assert variance(remember(points, ELAPSED)) == pytest.approx(reference, rel=1e-10)


def test_unit_of_time_is_free() -> None:
    points = wave(ROUNDS)
    seconds, hours = remember(points, ELAPSED), remember(points, ELAPSED / 3600.0)
    assert variance(hours) == pytest.approx(variance(seconds), rel=1e-12)
    assert critical_value(0.9, (ELAPSED / 3600.0).tolist()) == pytest.approx(
        critical_value(0.9, ELAPSED.tolist()), rel=1e-9
    )


def test_interval_does_not_depend_on_how_often_one_looks() -> None:
    # One look for eight rounds of equal length counts as eight: nothing but the path between the looks is lost.
    n = 4000
    i = np.arange(n) / n
    points = np.sin(9.0 * i) + 2.0 * np.exp(-5.0 * i)
    elapsed = np.where(i < 0.4, 1.0, 5.0)
    every = remember(points, elapsed)
    seldom, path = init(), init_path()
    # Seldom in the first part only: weighing by calls would tilt the average and the clock.
    for start, stop in [(k, k + 8) for k in range(0, 1600, 8)] + [(k, k + 1) for k in range(1600, n)]:
        mean = float(points[start:stop].mean())
        seldom = look(seldom, mean, float(elapsed[start]), float(stop - start))
        path = look_path(path, mean, float(elapsed[start]), float(stop - start))
    assert average(seldom) == pytest.approx(average(every), rel=1e-12)
    assert variance(seldom) == pytest.approx(variance(every), rel=1e-2)
    assert (seldom.rounds, seldom.time) == (every.rounds, every.time)
    assert seldom.noise == pytest.approx(every.noise)
    for norm in ("sup", "l1"):
        assert normaliser(path, norm) == pytest.approx(normaliser(walk(points, elapsed), norm), rel=1e-2)
    by_calls = remember(np.append(points[7:1600:8], points[1600:]), np.append(elapsed[:200], elapsed[1600:]))
    assert abs(variance(by_calls) / variance(every) - 1.0) > 0.2


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_interval_is_the_average_plus_and_minus_the_schedules_value(level: float) -> None:
    memory = remember(wave(ROUNDS), ELAPSED)
    low, high = interval(memory, level, ELAPSED)
    assert low < average(memory) < high
    assert high - low == pytest.approx(2.0 * critical_value(level, ELAPSED) * math.sqrt(variance(memory)))
    wide_low, wide_high = interval(memory, level)
    assert wide_low < low < high < wide_high


def test_one_look_or_none_says_nothing() -> None:
    assert variance(init()) == 0.0
    assert normaliser(init_path(), "sup") == 0.0
    assert interval(init(), 0.9) == (-math.inf, math.inf)
    assert interval(look(init(), 5.0, 1.0), 0.9) == (-math.inf, math.inf)
    assert path_interval(look_path(init_path(), 5.0, 1.0), 0.9, "l1") == (-math.inf, math.inf)


def test_path_is_exact_while_it_fits() -> None:
    points = wave(ROUNDS)
    path = walk(points, ELAPSED)
    weights = 1.0 / ELAPSED
    assert path_average(path) == pytest.approx(points.mean(), rel=1e-13)
    assert normaliser(path, "sup") == pytest.approx(distances(points).max(), rel=1e-11)
    assert normaliser(path, "l1") == pytest.approx(np.sum(weights * distances(points)) / weights.sum(), rel=1e-11)
    low, high = path_interval(path, 0.95, "sup", ELAPSED)
    assert high - low == pytest.approx(2.0 * critical_value(0.95, ELAPSED, "sup") * normaliser(path, "sup"))
    assert low < path_average(path) < high


@pytest.mark.parametrize("late", [1.0, 5.0])
def test_long_paths_are_thinned_by_noise_elapsed(late: float) -> None:
    n = 15_000
    points, elapsed = wave(n), np.where(np.arange(n) < 3000, 1.0, late)
    path = walk(points, elapsed)
    weights = 1.0 / elapsed
    assert path.marks.shape == (CHECKPOINTS, 3)
    assert CHECKPOINTS // 4 < path.kept <= CHECKPOINTS
    gaps = np.diff(path.marks[: path.kept, 2])
    assert gaps.max() < 2.5 * gaps.min()
    assert normaliser(path, "sup") == pytest.approx(distances(points).max(), rel=0.05)
    assert normaliser(path, "l1") == pytest.approx(np.sum(weights * distances(points)) / weights.sum(), rel=0.02)


def test_looking_leaves_the_past_alone() -> None:
    path = walk(wave(CHECKPOINTS), np.ones(CHECKPOINTS))
    before = path.marks.copy()
    after = look_path(path, 1.0, 1.0)
    assert np.array_equal(path.marks, before)
    assert after.kept == CHECKPOINTS // 2 + 1


def test_a_path_has_no_l2_norm() -> None:
    with pytest.raises(BadInput, match="norm"):
        normaliser(init_path(), "l2")

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.core.errors import BadInput
from sottovoce.inference.common.roots import root
from sottovoce.inference.self_normalised import clock as clocks
from sottovoce.inference.self_normalised import scheduled_tails
from sottovoce.inference.self_normalised.clock import STEADY, clock, detour, smoothed_detour
from sottovoce.inference.self_normalised.critical_values import critical_value, p_value
from sottovoce.inference.self_normalised.pivots import (
    airy_zeros,
    area_moments,
    area_tail,
    area_transform,
    square_tail,
    sup_tail,
)
from sottovoce.inference.self_normalised.scheduled_tails import curvature, scheduled_square_tail

NORMS = ["l2", "sup", "l1"]
C5 = [1] * 500 + [5] * 1900


def log_schedule(records: int) -> list[int]:
    steps = [1] * (records // 20)
    done, m = len(steps), 0
    while done < records:
        m += 1
        steps.append(min(math.ceil(math.log2(m + 1)), records - done))
        done += steps[-1]
    return steps


def test_square_law_is_that_of_the_inverted_characteristic_function() -> None:
    v = 6.747302109172834

    def imhof(t: mpmath.mpf) -> mpmath.mpf:
        a = v * mpmath.sqrt(2j * t)
        # Written so that the root stays on one branch.
        bridge = mpmath.sqrt(2 * a / (1 - mpmath.exp(-2 * a))) * mpmath.exp(-a / 2)
        return mpmath.im(bridge / mpmath.sqrt(1 - 2j * t)) / t

    reference = 0.5 + mpmath.quad(imhof, [0, 0.1, 1, 4, 20, 80, 300]) / mpmath.pi
    assert square_tail(v) == pytest.approx(float(reference), rel=1e-9)
    assert critical_value(0.95) == pytest.approx(6.747, abs=5e-4)
    assert critical_value(0.90) == pytest.approx(5.323, abs=5e-4)


@pytest.mark.parametrize("v", [0.3, 0.7999, 0.8001, 2.64, 6.0])
def test_sup_law_is_kolmogorovs_averaged_over_a_normal(v: float) -> None:
    def integrand(z: mpmath.mpf) -> mpmath.mpf:
        decay = mpmath.pi**2 * v**2 / (8 * z**2)
        series = sum(mpmath.exp(-((2 * k - 1) ** 2) * decay) for k in range(1, 60))
        return 2 * mpmath.npdf(z) * mpmath.sqrt(2 * mpmath.pi) * v / z * min(series, z / v / mpmath.sqrt(2 * mpmath.pi))

    reference = mpmath.quad(integrand, [0.02 * v, 0.5 * v, v, 3 * v, 10 + 10 * v], maxdegree=5)
    # The 60 terms kept are enough up to z = 12 v; beyond, the distribution is one and the series is capped at it.
    assert sup_tail(v) == pytest.approx(float(reference), rel=1e-8)


def test_area_law_matches_known_constants() -> None:
    assert airy_zeros()[0] == pytest.approx(-float(mpmath.airyaizero(1, derivative=1)), rel=1e-13)
    assert area_moments()[1] == pytest.approx(math.sqrt(math.pi / 32), rel=1e-13)
    assert area_moments()[2] == pytest.approx(7 / 60, rel=1e-13)
    # The Airy series (outside 0.8) and the Taylor series (inside) are two formulas for one function.
    inside, outside = area_transform(np.array([0.8 - 1e-9 + 0j, 0.8 + 1e-9 + 0j]))
    assert abs(inside - outside) < 1e-8
    assert area_tail(1.0 - 1e-9) == pytest.approx(area_tail(1.0 + 1e-9), rel=1e-8)


def test_walked_density_has_the_area_law() -> None:
    s = np.array([5.0 + 0j, 5.0 + 2j, 5.0 + 4j])
    walked = scheduled_tails.damped(np.zeros(1), s, np.zeros(scheduled_tails.STEPS + 1))[0]
    assert np.abs(walked / area_transform(s) - 1.0).max() < 5e-3


def test_bend_is_the_resolvent_of_the_bridge() -> None:
    dial, n = clock([1, 1, 1, 2, 7]), 300
    r = (np.arange(n) + 0.5) / n
    h = r - np.interp(r, dial.noise, dial.rounds)
    covariance = (np.minimum.outer(r, r) - np.outer(r, r)) / n
    for a in (0.3, 3.0, 12.0):
        reference = a**2 * h @ np.linalg.solve(np.eye(n) + a**2 * covariance, h) / n
        assert curvature(np.array([a]), dial)[0] == pytest.approx(reference, rel=5e-4)


@pytest.mark.parametrize(
    ("schedule", "printed"), [(C5, 5.57), (log_schedule(10_000), 4.60), (log_schedule(50_000), 4.48)]
)
def test_schedules_own_values_are_those_of_a_grid_of_300_times(schedule: list[int], printed: float) -> None:
    # Grid values are 0.2 to 0.4 % above the limit.
    assert 0.995 * printed < critical_value(0.95, schedule) < printed


@pytest.mark.parametrize("norm", NORMS)
def test_equal_rounds_have_the_plain_value(norm: str) -> None:
    assert critical_value(0.95, [7] * 1000, norm) == critical_value(0.95, None, norm)
    # A schedule that is hardly curved goes through the scheduled tail, and must end next to the plain one.
    bent = np.append(np.full(500, 1.0), np.full(500, 1.0 + 1e-9))
    assert clock(bent) != STEADY
    assert critical_value(0.95, bent, norm) == pytest.approx(critical_value(0.95, None, norm), rel=2e-6)


@pytest.mark.parametrize("v", [0.05, 0.5, 1.5, 2.64, 4.5])
def test_walls_agree_with_kolmogorov(v: float) -> None:
    assert scheduled_tails.scheduled_sup_tail(v, STEADY) == pytest.approx(sup_tail(v), rel=5e-6)


@pytest.mark.parametrize("v", [0.05, 1.0, 8.35, 20.0])
def test_area_table_agrees_with_johnson_and_killeen(v: float) -> None:
    table = scheduled_tails.area_table(STEADY, v)
    for near in (0.85 * v, v, 1.15 * v):
        assert scheduled_tails.scheduled_area_tail(near, table) == pytest.approx(area_tail(near), rel=1e-6)


@pytest.mark.parametrize("norm", NORMS)
def test_time_may_run_backwards(norm: str) -> None:
    # The bridge reversed is a bridge, so a schedule and its reverse agree; the code treats them differently.
    schedule = [1] * 30 + [3] * 50 + [11] * 40
    forwards, backwards = critical_value(0.9, schedule, norm), critical_value(0.9, schedule[::-1], norm)
    assert forwards == pytest.approx(backwards, rel=2e-5)
    assert forwards < 0.9 * critical_value(0.9, None, norm)


@pytest.mark.parametrize("norm", NORMS)
def test_paths_on_a_lattice_exceed_the_value_as_often_as_it_says(norm: str) -> None:
    # An independent route: 2^13 lattice points in a Karhunen-Loeve basis, whose error is below 3 % of a tail of 0.2.
    schedule = [1] * 500 + [5] * 1900
    tail = lattice_tail(critical_value(0.8, schedule, norm), schedule, norm)
    # A basis cut short has too small a sup, by as much for one schedule as for the other.
    plain = lattice_tail(critical_value(0.8, None, norm), [1], norm) if norm == "sup" else 0.2
    assert tail == pytest.approx(plain, rel=0.03)


def lattice_tail(v: float, schedule: list[int], norm: str) -> float:
    from scipy.special import ndtri

    count, terms, n = 2**13, 100, 200
    primes = [p for p in range(2, 600) if all(p % d for d in range(2, int(p**0.5) + 1))][: terms + 1]
    lattice = (np.outer(np.arange(count) + 0.5, np.sqrt(primes)) + 0.3) % 1.0
    normals = ndtri(lattice)
    r = (np.arange(n) + 0.5) / n
    modes = np.arange(1, terms + 1)
    bridge = normals[:, 1:] @ (math.sqrt(2.0) * np.sin(math.pi * np.outer(modes, r)) / (math.pi * modes[:, None]))
    dial = clock(schedule)
    path = np.abs(bridge + normals[:, :1] * (r - np.interp(r, dial.noise, dial.rounds)))
    size: dict[str, Callable[[], NDArray[np.float64]]] = {
        "l2": lambda: np.sqrt((path**2).mean(1)),
        "l1": lambda: path.mean(1),
        "sup": lambda: path.max(1),
    }
    return float(np.mean(np.abs(normals[:, 0]) > v * size[norm]()))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("level", [1e-8, 0.3, 0.99, 1 - 1e-9])
def test_p_value_undoes_the_critical_value(norm: str, level: float) -> None:
    for schedule in (None, [1] * 5 + [4] * 5):
        v = critical_value(level, schedule, norm)
        assert p_value(-v, schedule, norm) == pytest.approx(1.0 - level, rel=1e-5)


def test_halved_steps_move_the_values_by_no_more_than_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    dial = clock(C5)
    sup = scheduled_tails.scheduled_sup_tail(2.2326, dial)
    area = scheduled_tails.scheduled_area_tail(6.87, scheduled_tails.area_table(dial, 6.87))
    monkeypatch.setattr(scheduled_tails, "STEPS", 64)
    scheduled_tails.area_table.cache_clear()
    # d log(tail) / d log(v) is about -2.5, and errors fall at least as fast as the step.
    assert scheduled_tails.scheduled_sup_tail(2.2326, dial) == pytest.approx(sup, rel=8e-4)
    assert scheduled_tails.scheduled_area_tail(6.87, scheduled_tails.area_table(dial, 6.87)) == pytest.approx(
        area, rel=4e-4
    )
    scheduled_tails.area_table.cache_clear()


def test_long_schedules_are_compressed_without_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = np.sqrt(np.arange(1.0, 4001.0))
    short = clock(schedule)
    assert len(short.noise) <= clocks.PIECES + 1
    monkeypatch.setattr(clocks, "PIECES", 10_000)
    full = clock(schedule)
    assert len(full.noise) == 4001
    assert scheduled_square_tail(5.8, short) == pytest.approx(scheduled_square_tail(5.8, full), rel=2e-6)


def test_detours_start_and_end_at_zero_and_keep_their_integral() -> None:
    dial, n = clock([1] * 10 + [30] * 7), 64
    plain, smooth = detour(dial, n), smoothed_detour(dial, n)
    assert plain[0] == plain[-1] == 0.0
    noise, excess = np.array(dial.noise), np.array(dial.noise) - np.array(dial.rounds)
    area = float(np.sum(np.diff(noise) * (excess[1:] + excess[:-1]) / 2.0))
    assert (smooth.sum() - (smooth[0] + smooth[-1]) / 2.0) / n == pytest.approx(area, rel=1e-12)


@pytest.mark.parametrize(("norm", "value", "error"), [("l2", 4.1315, 1e-4), ("sup", 1.744, 6e-3), ("l1", 5.131, 1e-3)])
def test_a_near_jump_is_followed(norm: str, value: float, error: float) -> None:
    # Values extrapolated from twice as many steps; 1.6 million simulated paths exceed the l2 and l1 values at 0.0501.
    assert critical_value(0.95, [1] * 1000 + [1000] * 1000, norm) == pytest.approx(value, rel=error)


def test_root_meets_a_curve() -> None:
    assert root(lambda x: math.exp(x) - 3.0, (0.0, 5.0), 1e-10) == pytest.approx(math.log(3.0), abs=1e-12)
    assert root(lambda x: x - 1.0, (0.0, 4.0), 1e-10, (-1.0, 3.0)) == 1.0


def test_extreme_statistics() -> None:
    for norm in NORMS:
        assert p_value(0.0, None, norm) == 1.0
        assert p_value(math.inf, C5, norm) == 0.0
        assert 0.0 <= p_value(400.0, [1, 2], norm) < 1e-20


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 95.0, math.nan])
def test_bad_levels_are_refused(level: float) -> None:
    with pytest.raises(BadInput, match="strictly between 0 and 1"):
        critical_value(level)


@pytest.mark.parametrize("elapsed", [[], [1.0, 0.0], [1.0, math.nan], [1.0, math.inf], [[1.0]], ["a"]])
def test_bad_schedules_are_refused(elapsed: list[float]) -> None:
    with pytest.raises(BadInput, match="elapsed"):
        critical_value(0.95, elapsed)


def test_unknown_norms_and_missing_statistics_are_refused() -> None:
    with pytest.raises(BadInput, match="norm"):
        critical_value(0.95, norm="l3")
    with pytest.raises(BadInput, match="statistic"):
        p_value(math.nan)

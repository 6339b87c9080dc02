"""Is the distribution function bent? Zero on a line, exact on its own curve, honest about noise."""

import numpy as np
import pytest

from sottovoce.core.arrays import Floats
from sottovoce.server.quantile.asking import Decoded
from sottovoce.server.quantile.curvature import log_slope, steeper_pilot, steeper_shoulders

WIDE, NARROW = np.array([-1.0, 0.0, 1.0]), np.array([-0.3, 0.0, 0.3])


def heard_of(points: Floats, below: Floats, variance: float = 1e-8) -> Decoded:
    counts = np.ones((1, len(points)), dtype=np.int64)
    return Decoded(points, below, np.full(len(points), variance), counts, counts)


def valley(x: Floats, bend: float) -> Floats:
    return 0.5 + 0.2 * x + bend * x**3


def test_a_line_is_not_bent() -> None:
    pilot, stage = heard_of(WIDE, valley(WIDE, 0.0)), heard_of(NARROW, valley(NARROW, 0.0))
    assert steeper_pilot(pilot, WIDE, stage, 0.3)[0] == pytest.approx(0.0, abs=1e-12)
    five = 0.2 * np.arange(-2.0, 3.0)
    assert steeper_shoulders(heard_of(five, valley(five, 0.0)))[0] == pytest.approx(0.0, abs=1e-12)


def test_a_parabola_is_not_bent_either() -> None:
    pilot = heard_of(WIDE, 0.5 + 0.2 * WIDE + 0.05 * WIDE**2)
    stage = heard_of(NARROW, 0.5 + 0.2 * NARROW + 0.05 * NARROW**2)
    assert steeper_pilot(pilot, WIDE, stage, 0.3)[0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("bend", [-0.05, 0.05, 0.2])
def test_a_cubic_is_measured_at_the_width_of_the_stage(bend: float) -> None:
    pilot, stage = heard_of(WIDE, valley(WIDE, bend)), heard_of(NARROW, valley(NARROW, bend))
    slope = 0.2 + bend * 0.3**2  # the stage's own secant; the true slope in the middle is .2
    assert steeper_pilot(pilot, WIDE, stage, 0.3)[0] == pytest.approx(bend * 0.3**2 / slope, rel=1e-9)
    five = 0.3 * np.arange(-2.0, 3.0)
    assert steeper_shoulders(heard_of(five, valley(five, bend)))[0] == pytest.approx(
        3 * bend * 0.3**2 / slope, rel=1e-9
    )


def test_the_doubt_is_the_error_of_the_ratio() -> None:
    # by differences: each answer moved by its own standard error, summed in squares
    pilot, stage = valley(WIDE, 0.05), valley(NARROW, 0.05)
    error = 1e-4

    def seen(first: Floats, second: Floats) -> tuple[float, float]:
        return steeper_pilot(heard_of(WIDE, first, error**2), WIDE, heard_of(NARROW, second, error**2), 0.3)

    best, doubt = seen(pilot, stage)
    moves = [seen(pilot + error * row, stage)[0] - best for row in np.eye(3)]
    moves += [seen(pilot, stage + error * row)[0] - best for row in np.eye(3)]
    assert doubt == pytest.approx(float(np.sqrt(np.sum(np.square(moves)))), rel=0.01)


def test_slopes_lost_in_noise_say_nothing() -> None:
    falling = heard_of(NARROW, 0.5 - NARROW)
    assert steeper_pilot(heard_of(WIDE, valley(WIDE, 0.0)), WIDE, falling, 0.3) == (0.0, 0.0)
    five = heard_of(np.arange(-2.0, 3.0), np.full(5, 0.5), 0.01)
    assert steeper_shoulders(five) == (1.0, 0.0)
    assert log_slope(np.array([0.5, 0.49, 0.51]), np.full(3, 0.01), WIDE) == (0.0, np.inf)


@pytest.mark.parametrize("rate", [-1.3, -0.2, 0.4, 2.0])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_an_exponential_density_shows_its_rate(rate: float, unit: float) -> None:
    below = np.expm1(rate * NARROW) / rate
    found, variance = log_slope(below, np.full(3, 1e-12), NARROW * unit)
    assert found == pytest.approx(rate / unit, rel=1e-9)
    assert 0 < variance < (0.01 / unit) ** 2


def test_the_variance_of_the_rate_is_that_of_small_errors() -> None:
    below, places, error = np.array([0.4, 0.5, 0.63]), np.array([-0.3, 0.0, 0.4]), 1e-6
    best, variance = log_slope(below, np.full(3, error**2), places)
    moves = [log_slope(below + error * row, np.full(3, error**2), places)[0] - best for row in np.eye(3)]
    assert variance == pytest.approx(float(np.sum(np.square(moves))), rel=1e-3)

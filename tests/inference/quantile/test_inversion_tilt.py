"""The lens: monotone, continuous, there and back, and straight where the density is exponential."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sottovoce.inference.quantile.inversion import STRAIGHT, back, through

BENDS = [-2.0, -1e-3, 1e-12, 0.0, 0.7, 40.0]


@settings(deadline=None)
@given(st.floats(-50, 50), st.floats(-10, 10), st.floats(-5, 5))
def test_there_and_back(at: float, origin: float, bend: float) -> None:
    assert back(through(at, origin, bend), origin, bend) == pytest.approx(at, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("bend", BENDS)
def test_the_coordinate_ascends(bend: float) -> None:
    places = [through(float(x), 1.0, bend) for x in np.linspace(-30.0, 30.0, 2001)]
    assert np.all(np.diff(places) > 0)
    assert through(1.0, 1.0, bend) == 0.0


@pytest.mark.parametrize("bend", [-2.0, 0.7])
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_the_joints_are_smooth(bend: float, side: float) -> None:
    joint, small = side * STRAIGHT / bend, 1e-6
    left, middle, right = (through(joint + shift, 0.0, bend) for shift in (-small, 0.0, small))
    slope = math.exp(side * STRAIGHT)
    assert (middle - left) / small == pytest.approx(slope, rel=1e-4)
    assert (right - middle) / small == pytest.approx(slope, rel=1e-4)
    place = through(joint, 0.0, bend)
    assert back(place * (1 + 1e-12), 0.0, bend) == pytest.approx(back(place * (1 - 1e-12), 0.0, bend), abs=1e-8)


def test_beyond_the_joints_it_goes_on_straight() -> None:
    places = [through(x, 0.0, 1.0) for x in (4.0, 5.0, 6.0, 700.0)]
    assert places[1] - places[0] == pytest.approx(places[2] - places[1]) == pytest.approx(math.exp(STRAIGHT))
    assert math.isfinite(places[3])


def test_without_a_bend_only_the_origin_moves() -> None:
    assert through(5.5, 2.0, 0.0) == 3.5
    assert back(3.5, 2.0, 0.0) == 5.5


def test_a_tiny_bend_is_no_jump() -> None:
    assert through(3.0, 0.0, 1e-7) == pytest.approx(through(3.0, 0.0, 1e-9), rel=1e-6)


@pytest.mark.parametrize("rate", [-1.5, 0.4])
def test_an_exponential_density_becomes_straight(rate: float) -> None:
    points = np.linspace(-1.5, 1.5, 7)
    below = 0.3 + np.expm1(rate * points) / (10 * rate)
    places = np.array([through(float(point), 0.0, rate) for point in points])
    assert np.diff(below) / np.diff(places) == pytest.approx(np.full(6, 0.1))

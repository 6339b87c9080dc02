"""The information gain is the Kalman gain at pace one."""

import numpy as np
import pytest

from sottovoce.protocol.regression.dithered.state import (
    PACE,
    STEADY,
    SURE,
    gain,
    pace,
)
from sottovoce.sim.randomness import dice

SLOPE = 0.4 * np.array([[1.0, 0.2, 0.0], [0.2, 0.4, 0.1], [0.0, 0.1, 0.3]])
OMEGA = np.array([[0.3, 0.05, 0.0], [0.05, 0.9, 0.1], [0.0, 0.1, 1.5]])
SIZE = 2.0


def test_the_ways_diagonalise_information_and_guess_at_once() -> None:
    left, right, need = gain(SLOPE, OMEGA, SIZE)
    information = SLOPE @ np.linalg.inv(OMEGA) @ SLOPE
    assert left.T @ information @ left == pytest.approx(np.eye(3), abs=1e-10)
    assert left.T @ left * 3 / SIZE**2 == pytest.approx(np.diag(need), abs=1e-9)
    assert right == pytest.approx(left.T @ SLOPE @ np.linalg.inv(OMEGA))
    assert (need > 0).all()


def test_the_gain_is_the_kalman_gain() -> None:
    left, right, need = gain(SLOPE, OMEGA, SIZE)
    prior = np.eye(3) * 3 / SIZE**2  # each coefficient's share of a vector of that size
    information = SLOPE @ np.linalg.inv(OMEGA) @ SLOPE
    for people in (0, 1, 10, 10_000):
        expected = np.linalg.inv(prior + people * information) @ SLOPE @ np.linalg.inv(OMEGA)
        assert left @ np.diag(1 / (need + people)) @ right == pytest.approx(expected, rel=1e-9, abs=1e-14)


def test_a_linear_recursion_at_pace_one_is_ridge_regression() -> None:
    # D_i = H (point - truth) + noise: the rule must give the posterior mean of the truth, whatever the noise is
    left, right, need = gain(SLOPE, OMEGA, SIZE)
    noise = dice(1).generator().standard_normal((200, 3))
    truth, point = np.array([1.0, -0.5, 0.3]), np.zeros(3)
    sums = np.zeros(3)
    for i, one in enumerate(noise, start=1):
        sums += SLOPE @ truth - one
        point = point - left @ np.diag(1 / (need + i)) @ right @ (SLOPE @ (point - truth) + one)
    middle = SLOPE @ np.linalg.inv(OMEGA)
    posterior = np.linalg.solve(np.eye(3) * 3 / SIZE**2 + 200 * middle @ SLOPE, middle @ sums)
    assert point == pytest.approx(posterior, rel=1e-9)


@pytest.mark.parametrize("unit", [1e-6, 1e8])
def test_people_needed_do_not_depend_on_the_unit(unit: float) -> None:
    _, _, plain = gain(SLOPE, OMEGA, SIZE)
    _, _, moved = gain(SLOPE / unit, OMEGA, SIZE * unit)
    assert moved == pytest.approx(plain, rel=1e-9)


def test_pace() -> None:
    assert pace(0, 100.0, 1.0) == PACE
    assert pace(3200, 100.0, 1.0) > 1.9 * PACE
    assert pace(10**9, 100.0, 0.99 * SURE) < PACE
    assert pace(10**9, 100.0, 0.0) == STEADY

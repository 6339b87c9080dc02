"""The folded quantile solves its equation at every level and bias, and agrees with noncentral chi-square."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import chndtrix

from sottovoce.inference.common.normal import two_sided
from sottovoce.inference.integration.known_bound import folded_value


@given(st.floats(0, 40), st.floats(0.01, 0.999999))
def test_solves_its_equation(bias: float, level: float) -> None:
    c = float(folded_value(bias, level))
    tails = 0.5 * (math.erfc((c - bias) / math.sqrt(2)) + math.erfc((c + bias) / math.sqrt(2)))
    assert tails == pytest.approx(1 - level, rel=1e-9)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_agrees_with_noncentral_chi_square(level: float) -> None:
    biases = np.array([0.01, 0.3, 1.0, 2.5, 5.0])
    assert folded_value(biases, level) == pytest.approx(np.sqrt(chndtrix(level, 1, biases**2)), rel=1e-6)


def test_against_many_digits() -> None:
    with mpmath.workdps(40):
        exact = mpmath.findroot(lambda c: mpmath.ncdf(c - 1) - mpmath.ncdf(-c - 1) - mpmath.mpf("0.95"), 2.6)
    assert float(folded_value(1.0, 0.95)) == pytest.approx(float(exact), rel=1e-14)


def test_ends() -> None:
    assert float(folded_value(0.0, 0.95)) == pytest.approx(two_sided(0.95), rel=1e-14)
    assert float(folded_value(1e6, 0.95)) == pytest.approx(1e6 + two_sided(0.9), rel=1e-14)
    assert folded_value(np.zeros((2, 0)), 0.95).shape == (2, 0)


def test_rises_and_is_convex() -> None:
    values = folded_value(np.linspace(0, 8, 400), 0.95)
    assert (np.diff(values) > 0).all()
    assert (np.diff(values, 2) > -1e-12).all()

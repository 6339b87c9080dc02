"""Exact arithmetic: a ratio just inside exp(epsilon) passes, one just outside does not."""

import math
from fractions import Fraction

import pytest

from sottovoce.protocol.exact import exponential, logarithm, within


def test_tight_on_both_sides() -> None:
    assert within(Fraction(9), math.log(9) + 1e-15)
    assert not within(Fraction(9), 8.999 * math.log(9) / 9)
    assert not within(Fraction(9), math.nextafter(math.log(9), 0.0) - 1e-15)


def test_differences_below_the_last_digit_of_a_float_count() -> None:
    edge = exponential(1.0)
    hair = Fraction(1, 10**40)
    assert within(edge - hair, 1.0)
    assert not within(edge + hair, 1.0)
    assert float(edge - hair) == float(edge + hair)


def test_without_privacy_everything_is_within() -> None:
    assert within(None, math.inf)
    assert not within(None, 700.0)


def test_zero_allows_equal_laws_only() -> None:
    assert within(Fraction(1), 0.0)
    assert not within(Fraction((1 << 62) + 1, 1 << 62), 0.0)


@pytest.mark.parametrize("epsilon", [1e-9, 0.5, 1.0, 24.0])
def test_logarithm_undoes_exponential(epsilon: float) -> None:
    assert logarithm(exponential(epsilon)) == epsilon
    assert logarithm(Fraction(1)) == 0.0

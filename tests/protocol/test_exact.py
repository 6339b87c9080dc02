"""Exact arithmetic: a ratio just inside exp(epsilon) passes, one just outside does not."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from sottovoce.core.errors import BadInput
from sottovoce.protocol.exact import check_within, exponential, logarithm, within


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


def test_both_are_rounded_to_the_side_of_privacy() -> None:
    with localcontext() as context:
        context.prec = 200
        for epsilon in (1e-9, 0.3, 1.0, 24.0, 700.0):
            assert exponential(epsilon) < Fraction(Decimal(epsilon).exp())
        for ratio in (Fraction(5), Fraction(7, 3), Fraction((1 << 62) + 1, 1 << 62)):
            stated, true = logarithm(ratio), (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
            assert Decimal(math.nextafter(stated, 0.0)) < true < Decimal(stated)
            assert within(ratio, stated)
            assert not within(ratio, math.nextafter(stated, 0.0))


def test_odd_budgets_are_compared_and_do_not_crash() -> None:
    assert within(Fraction(1), 5e-324)
    assert within(Fraction(1 << 64), 1e308)
    assert not within(Fraction(1), math.nan)
    assert not within(Fraction(1), -1.0)
    assert not within(Fraction(1), -math.inf)


def test_what_costs_more_is_refused_in_a_sentence() -> None:
    check_within(Fraction(2), 0.7, "it")
    with pytest.raises(
        BadInput, match=r"^it would cost 0\.69\d+, more than its epsilon 0\.69; give a larger budget\.$"
    ):
        check_within(Fraction(2), 0.69, "it")
    with pytest.raises(BadInput, match=r"^it would cost inf, more than its epsilon 24\.0"):
        check_within(None, 24.0, "it")


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

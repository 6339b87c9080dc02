"""One integer holds the noise; two of them keep a budget, and their difference has an exact distribution."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.protocol.exact import within
from sottovoce.protocol.selection.geometric import WORD, cost, difference_cdf, numerators, ratio

BUDGETS = (5e-6, 1e-3, 0.1, 1.0, math.pi, 10.0, 20.0)


@pytest.mark.parametrize(("epsilon", "share"), list(product(BUDGETS, (0.5, 0.3, 0.77))))
def test_the_two_cost_all_of_a_budget_and_never_more(epsilon: float, share: float) -> None:
    first, second = numerators(epsilon, share)
    assert 0 < first < WORD
    assert 0 < second < WORD
    assert within(ratio(first, second), epsilon)
    assert cost(first, second) == pytest.approx(epsilon, abs=1e-8)
    assert cost(first) == pytest.approx(share * epsilon, abs=1e-8)
    # one numerator less would cost too much
    assert not within(ratio(first, second - 1), epsilon)
    assert not within(ratio(first - 1), share * epsilon * (1 - 1e-15))


def test_a_budget_beyond_words_is_spent_as_far_as_they_go() -> None:
    assert numerators(100.0, 0.5) == (1, 1)
    assert cost(1, 1) == pytest.approx(128 * math.log(2))
    assert within(ratio(*numerators(80.0, 0.9)), 80.0)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan, 1e-6])
def test_a_budget_that_makes_no_noise_is_refused(epsilon: float) -> None:
    with pytest.raises(BadInput, match="makes no selection"):
        numerators(epsilon, 0.5)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, math.nan])
def test_a_share_is_a_part(share: float) -> None:
    with pytest.raises(BadInput, match="between 0 and 1"):
        numerators(1.0, share)


@pytest.mark.parametrize(("up", "down"), [(0.5, 0.5), (0.9, 0.3), (0.2, 0.97), (0.95, 0.95)])
def test_the_law_of_a_difference(up: float, down: float) -> None:
    rise, fall = round(up * WORD), round(down * WORD)
    a, b = np.arange(1000)[:, None], np.arange(1000)
    share = (1 - up) * up**a * ((1 - down) * down**b)
    for distance in (-60, -7, -2, -1, 0, 1, 3, 40):
        direct = float(share[a - b <= distance].sum())
        assert difference_cdf(distance, rise, fall) == pytest.approx(direct, rel=1e-11)


def test_a_difference_of_equal_laws_is_symmetric_and_its_far_tail_is_not_lost() -> None:
    p = numerators(2.0, 0.5)[0]
    places = np.arange(-300, 300)
    found = difference_cdf(places, p, p)
    np.testing.assert_allclose(found[:300], 1 - found[300:][::-1], atol=1e-15)
    assert (np.diff(found) >= 0).all()
    assert np.log(difference_cdf(-600, p, p)) == pytest.approx(-600 - math.log1p(math.exp(-1)), rel=1e-12)
    exact = Fraction(p, WORD) / (1 + Fraction(p, WORD))
    assert difference_cdf(-1, p, p) == pytest.approx(float(exact), rel=1e-14)

"""Randomised response: the budget and the papers' response rate, both ways, and what is refused."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sottovoce.core.errors import BadInput
from sottovoce.protocol.channel import OUTCOMES
from sottovoce.protocol.exact import within
from sottovoce.protocol.randomised_response import LARGEST, binary, epsilon_of_rate, rate_of, response_rate


@pytest.mark.parametrize(("rate", "epsilon"), [(0.25, math.log(5 / 3)), (0.5, math.log(3)), (0.9, math.log(19))])
def test_the_rates_of_the_papers(rate: float, epsilon: float) -> None:
    assert epsilon_of_rate(rate) == pytest.approx(epsilon, rel=1e-14)
    assert response_rate(epsilon) == pytest.approx(rate, rel=1e-14)
    assert rate_of(binary(epsilon)) == pytest.approx(rate, rel=1e-12)


@settings(deadline=None)
@given(st.floats(1e-9, 24.0))
def test_both_ways_for_any_budget(epsilon: float) -> None:
    rate = response_rate(epsilon)
    if rate < 1:
        assert epsilon_of_rate(rate) == pytest.approx(epsilon, rel=1e-15 + 1e-15 / (1 - rate))
    assert rate_of(binary(epsilon)) == pytest.approx(rate, rel=1e-9)


@settings(deadline=None)
@given(st.floats(1e-9, 24.0))
def test_never_above_any_budget(epsilon: float) -> None:
    channel = binary(epsilon)
    assert within(channel.ratio, epsilon)
    assert channel.epsilon <= epsilon
    assert epsilon - channel.epsilon < 1e-8


def test_no_privacy_sends_the_truth() -> None:
    channel = binary(math.inf)
    assert channel.weights == ((OUTCOMES, 0), (0, OUTCOMES))
    assert channel.table.tolist() == [[0.0], [1.0]]
    assert rate_of(channel) == 1.0
    assert epsilon_of_rate(1.0) == math.inf
    assert response_rate(math.inf) == 1.0


def test_decoding_is_unbiased_in_fractions() -> None:
    (keep, flip), _ = binary(1.0).weights
    rate = Fraction(keep - flip, OUTCOMES)
    low, high = -Fraction(flip, OUTCOMES) / rate, Fraction(keep, OUTCOMES) / rate
    assert low * keep + high * flip == 0
    assert low * flip + high * keep == OUTCOMES
    assert binary(1.0).table[:, 0].tolist() == [float(low), float(high)]


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [
        (0.0, "epsilon must be positive, not 0.0"),
        (-1.0, "epsilon must be positive, not -1.0"),
        (math.nan, "epsilon must be positive, not nan"),
        (math.nextafter(LARGEST, 25.0), "is above 24, the most this channel can express"),
        (1e3, "epsilon 1000.0 is above 24"),
        (1e-19, "epsilon 1e-19 is too small for a die of 2^62 outcomes"),
    ],
)
def test_budgets_that_are_none_are_refused_in_a_sentence(epsilon: float, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        binary(epsilon)
    assert words in str(caught.value)
    assert "; give" in str(caught.value)


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.0000001, math.nan])
def test_rates_that_are_none_are_refused_in_a_sentence(rate: float) -> None:
    with pytest.raises(BadInput, match=r"a response rate lies in \(0, 1\], not .*; give epsilon"):
        epsilon_of_rate(rate)


def test_a_larger_budget_never_flips_more() -> None:
    flips = [binary(float(epsilon)).weights[0][1] for epsilon in np.linspace(0.01, 24.0, 300)]
    assert flips == sorted(flips, reverse=True)

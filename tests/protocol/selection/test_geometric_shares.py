"""Shares of noise: computed epsilon, and a sum over the sites that is geometric exactly."""

import math
from fractions import Fraction

import pytest

from sottovoce.core.errors import BadInput
from sottovoce.protocol.exact import within
from sottovoce.protocol.selection.geometric import LARGEST_SHARED, Polya, polya


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.5, 1.0, 5.0, 10.0, LARGEST_SHARED])
@pytest.mark.parametrize("sites", [1, 5, 1000])
def test_the_budget_is_kept_and_used(epsilon: float, sites: int) -> None:
    noise = polya(epsilon, sites)
    assert within(1 / noise.ratio**2, epsilon)
    assert epsilon - 1e-8 < noise.epsilon <= epsilon
    assert not within((Fraction(1 << 64, noise.numerator - 1)) ** 2, epsilon)


def test_without_a_budget_there_is_no_noise() -> None:
    noise = polya(math.inf, 3)
    assert (float(noise.ratio), noise.epsilon, noise.variance) == (0.0, math.inf, 0.0)
    assert [noise.weight(count) for count in range(3)] == [1, 0, 0]


@pytest.mark.parametrize("sites", [1, 2, 3, 5])
def test_shares_add_to_geometric_noise_exactly(sites: int) -> None:
    noise = polya(0.7, sites)
    share = [noise.weight(count) for count in range(9)]
    total = [Fraction(1)] + [Fraction(0)] * 8
    for _ in range(sites):
        total = [sum((total[i] * share[k - i] for i in range(k + 1)), Fraction(0)) for k in range(9)]
    assert total == [noise.ratio**count for count in range(9)]


def test_odds_are_those_of_neighbouring_weights() -> None:
    noise = Polya(1 << 63, 4)
    for count in range(6):
        assert noise.weight(count + 1) == noise.weight(count) * noise.ratio * Fraction(*noise.odds(count))


def test_the_variance_is_the_sums() -> None:
    noise = polya(1.0, 7)
    p = float(noise.ratio)
    distribution = [(1 - p) / (1 + p) * p ** abs(k) for k in range(-400, 401)]
    assert noise.variance == pytest.approx(
        sum(k * k * mass for k, mass in zip(range(-400, 401), distribution, strict=True))
    )


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 1e-7, math.nan, LARGEST_SHARED * 1.01])
def test_budgets_out_of_reach_are_refused(epsilon: float) -> None:
    with pytest.raises(BadInput, match="epsilon"):
        polya(epsilon, 3)


def test_nobody_to_share_with_is_refused() -> None:
    with pytest.raises(BadInput, match="at least one site"):
        polya(1.0, 0)

"""What shuffling would add, against the theorem written out and its conditions."""

import math

import pytest

from sottovoce.core.errors import BadInput
from sottovoce_papers.simulation.conformal.shuffling import DELTA, messages_needed, shuffled_epsilon


def theorem(epsilon: float, sites: int, delta: float) -> float:
    w = math.exp(epsilon)
    return math.log(1 + (w - 1) / (w + 1) * (8 * math.sqrt(w * math.log(4 / delta)) / math.sqrt(sites) + 8 * w / sites))


@pytest.mark.parametrize(("epsilon", "sites"), [(0.1, 5000), (1.0, 1000), (1.0, 10_000), (2.0, 1_000_000)])
def test_the_theorem(epsilon: float, sites: int) -> None:
    assert shuffled_epsilon(epsilon, sites) == pytest.approx(min(epsilon, theorem(epsilon, sites, DELTA)), rel=1e-12)


@pytest.mark.parametrize("epsilon", [1e-9, 0.01, 0.5, 1.0, 10.0])
def test_few_sites_gain_nothing(epsilon: float) -> None:
    for sites in (1, 5, 10, 100, 231, 232):
        assert shuffled_epsilon(epsilon, sites) == epsilon
    assert messages_needed() == 232


def test_the_condition_on_epsilon() -> None:
    sites = 10_000
    most = math.log(sites / (16 * math.log(2 / DELTA)))
    assert shuffled_epsilon(most * 1.0001, sites) == most * 1.0001
    assert shuffled_epsilon(most * 0.9999, sites) < most
    assert shuffled_epsilon(math.inf, sites) == math.inf
    assert shuffled_epsilon(800.0, sites) == 800.0


def test_more_sites_and_a_larger_delta_never_cost_more() -> None:
    costs = [shuffled_epsilon(1.0, sites) for sites in (1, 232, 233, 700, 1000, 10_000, 10**8)]
    assert costs == sorted(costs, reverse=True)
    assert shuffled_epsilon(1.0, 1000, 1e-3) <= shuffled_epsilon(1.0, 1000, 1e-9)
    assert messages_needed(0.01) < messages_needed(1e-12)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan, 2.0])
def test_delta_is_a_chance(delta: float) -> None:
    with pytest.raises(BadInput, match="delta must lie strictly between 0 and 1"):
        shuffled_epsilon(1.0, 1000, delta)

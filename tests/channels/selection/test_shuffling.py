"""Shuffling amplifies nothing for few sites, and the closed form where it does is that of the theorem."""

import math

import mpmath
import pytest

from sottovoce.channels.selection.shuffling import shuffled_epsilon, sites_needed
from sottovoce.errors import BadInput


@pytest.mark.parametrize("sites", [1, 5, 10, 100, 232])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 10.0])
def test_up_to_232_sites_nothing_is_amplified(sites: int, epsilon: float) -> None:
    assert shuffled_epsilon(epsilon, sites) == epsilon


def test_233_sites_amplify_a_small_epsilon_or_leave_it_but_never_raise_it() -> None:
    assert sites_needed() == 232
    for sites in (233, 1000, 10**6):
        for epsilon in (1e-4, 0.01, 0.5, 2.0, 8.0):
            assert shuffled_epsilon(epsilon, sites) <= epsilon


@pytest.mark.parametrize(("sites", "epsilon", "printed"), [(1000, 1.0, 0.566), (10_000, 1.0, 0.214)])
def test_the_theorem(sites: int, epsilon: float, printed: float) -> None:
    w, delta = mpmath.exp(epsilon), mpmath.mpf("1e-6")
    bracket = 8 * mpmath.sqrt(w * mpmath.log(4 / delta)) / mpmath.sqrt(sites) + 8 * w / sites
    exact = mpmath.log(1 + (w - 1) / (w + 1) * bracket)
    assert shuffled_epsilon(epsilon, sites) == pytest.approx(float(exact), rel=1e-12)
    assert round(float(exact), 3) == printed


def test_a_budget_too_large_for_so_many_sites_is_not_amplified() -> None:
    edge = math.log(10_000 / (16 * math.log(2e6)))
    assert shuffled_epsilon(edge + 1e-9, 10_000) == edge + 1e-9
    assert shuffled_epsilon(edge - 1e-9, 10_000) < edge - 1e-9


def test_a_delta_that_is_no_chance_is_refused() -> None:
    with pytest.raises(BadInput, match="delta must lie"):
        shuffled_epsilon(1.0, 1000, 0.0)

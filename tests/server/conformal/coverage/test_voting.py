"""The distribution of weighted votes against convolutions written out in exact rationals."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import betainc

from sottovoce.server.conformal.coverage.voting import Voters, mean_and_variance, vote_distribution
from sottovoce.sim.randomness import dice


def at_most(count: Any, n: int, chance: float) -> Any:
    """Return P(Bin(n, chance) <= count)."""
    return np.where(count >= n, 1.0, betainc(np.maximum(n - count, 1), count + 1.0, 1 - chance))


def convolved(below: list[list[Fraction]], votes: list[int], number: list[int]) -> dict[int, Fraction]:
    """Add one site after the other."""
    distribution = {0: Fraction(1)}
    for chances, each, count in zip(below, votes, number, strict=True):
        for _ in range(count):
            longer: dict[int, Fraction] = {}
            for total, mass in distribution.items():
                for values, chance in enumerate(chances):
                    longer[total + values * each] = longer.get(total + values * each, Fraction(0)) + mass * chance
            distribution = longer
    return distribution


@pytest.mark.parametrize("seed", range(25))
def test_random_voters(seed: int) -> None:
    source = dice(seed).generator()
    kinds, values, levels = (int(source.integers(1, most)) for most in (5, 4, 4))
    votes = source.integers(1, 9, size=kinds)
    number = source.integers(1, 6, size=kinds)
    whole = source.integers(0, 50, size=(kinds, levels, values + 1))
    whole[:, :, 0] += 1
    exact = [[[Fraction(int(w), int(row.sum())) for w in row] for row in kind] for kind in whole]
    below = np.array([[[float(p) for p in row] for row in kind] for kind in exact])
    voters = Voters(below, votes, number)
    assert voters.total == int(np.sum(votes * number)) * values
    distribution = vote_distribution(voters)
    asked = np.arange(-1, voters.total + 2)
    found = distribution.at_most(asked)
    mean, variance = mean_and_variance(voters)
    for level in range(levels):
        known = convolved([kind[level] for kind in exact], votes.tolist(), number.tolist())
        for i, most in enumerate(asked.tolist()):
            true = float(sum((mass for total, mass in known.items() if total <= most), Fraction(0)))
            assert found[level, i] == pytest.approx(true, abs=1e-14)
        first = sum(total * mass for total, mass in known.items())
        assert mean[level] == pytest.approx(float(first), rel=1e-13, abs=1e-13)
        second = sum((total - first) ** 2 * mass for total, mass in known.items())
        assert variance[level] == pytest.approx(float(second), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("sites", [1, 5, 1000, 1_000_000])
def test_a_window_is_enough_for_many_sites(sites: int) -> None:
    chances = np.array([1e-9, 0.03, 0.5, 0.97, 1.0])
    voters = Voters(np.stack([1 - chances, chances], axis=1)[None], np.array([1]), np.array([sites]))
    distribution = vote_distribution(voters)
    assert distribution.mass.shape[1] <= min(sites + 1, 20_000)
    for row, chance in enumerate(chances.tolist()):
        spread = math.sqrt(sites * chance * (1 - chance))
        asked = np.unique(np.clip(np.rint(sites * chance + spread * np.linspace(-7, 7, 15)), 0, sites).astype(np.int64))
        np.testing.assert_allclose(distribution.at_most(asked)[row], at_most(asked, sites, chance), rtol=0, atol=2e-10)


def test_very_different_voters() -> None:
    """One voter with more votes than a thousand others have together."""
    below = np.array([[[0.5, 0.5]], [[0.25, 0.75]]])
    distribution = vote_distribution(Voters(below, np.array([1, 1500]), np.array([1000, 1])))
    asked = np.array([450, 500, 550, 1000, 1499, 1950, 2000, 2050])
    small = at_most(np.clip(asked, 0, 1000), 1000, 0.5)
    large = np.where(asked >= 1500, at_most(np.clip(asked - 1500, 0, 1000), 1000, 0.5), 0.0)
    np.testing.assert_allclose(distribution.at_most(asked)[0], 0.25 * small + 0.75 * large, rtol=0, atol=1e-13)


def test_certain_voters_make_a_step() -> None:
    distribution = vote_distribution(Voters(np.array([[[0.0, 0.0, 1.0]]]), np.array([3]), np.array([4])))
    np.testing.assert_allclose(distribution.at_most(np.array([-1, 0, 23, 24, 25]))[0], [0, 0, 0, 1, 1], atol=1e-14)

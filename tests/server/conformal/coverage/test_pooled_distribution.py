"""The distribution of pooled counts against sums written out."""

import math

import numpy as np
import pytest
from scipy import special

from sottovoce.core.arrays import Floats
from sottovoce.server.conformal.coverage.pooled_distribution import PooledCount, RecordGroup, failures, noise_reach


def binomial(n: int, chance: float) -> Floats:
    x = np.arange(n + 1)
    return np.asarray(special.binom(n, x) * chance**x * (1 - chance) ** (n - x))


def spaced(mass: Floats, votes: int) -> Floats:
    wide = np.zeros(votes * (len(mass) - 1) + 1)
    wide[::votes] = mass
    return wide


def two_sided(ratio: float, reach: int) -> Floats:
    return np.asarray((1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-reach, reach + 1.0)))


@pytest.mark.parametrize("threshold", [-1, 0, 7, 20, 61, 62, 80])
def test_one_crowd_is_binomial(threshold: int) -> None:
    tails = np.linspace(0, 1, 41)
    found = failures(PooledCount((RecordGroup(62, 1, 0.27, 0.46),), 0.0, (0,)), (threshold,), tails)[0]
    wanted = [binomial(62, 0.27 + 0.46 * tail)[: max(threshold + 1, 0)].sum() for tail in tails]
    np.testing.assert_allclose(found, wanted, atol=1e-14)


def test_a_million_records_cost_no_digits() -> None:
    tails = np.linspace(0.0985, 0.1015, 50)
    found = failures(PooledCount((RecordGroup(1_000_000, 1, 0.0, 1.0),), 0.0, (0,)), (100_000,), tails)[0]
    np.testing.assert_allclose(found, special.bdtr(100_000, 1_000_000, tails), atol=1e-12)
    assert found[0] > 0.99999
    assert found[-1] < 1e-5


def test_crowds_with_votes_are_convolved() -> None:
    tails = np.linspace(0, 1, 7)
    crowds = (RecordGroup(30, 3, 0.1, 0.8), RecordGroup(50, 1, 0.3, 0.4), RecordGroup(8, 7, 0.0, 1.0))
    found = failures(PooledCount(crowds, 0.0, (0, 0)), (60, 101), tails)
    for column, tail in enumerate(tails):
        mass = np.ones(1)
        for crowd in crowds:
            mass = np.convolve(mass, spaced(binomial(crowd.number, crowd.low + crowd.rate * tail), crowd.votes))
        np.testing.assert_allclose(found[:, column], [mass[:61].sum(), mass[:102].sum()], atol=1e-13)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 9.0])
def test_noise_is_convolved_term_by_term(epsilon: float) -> None:
    ratio, reach, tails = math.exp(-epsilon / 2), 600, np.linspace(0, 0.6, 7)
    found = failures(PooledCount((RecordGroup(60, 1, 0.0, 1.0),), ratio, (9, 3, 1)), (-4, 5, 8), tails)
    for row, (terms, threshold) in enumerate(((9, -4), (3, 5), (1, 8))):
        noise = two_sided(ratio, reach)
        for _ in range(terms - 1):
            noise = np.convolve(noise, two_sided(ratio, reach))[reach:-reach]
        below = np.cumsum(noise)[threshold - np.arange(61) + reach]
        np.testing.assert_allclose(found[row], [binomial(60, tail) @ below for tail in tails], atol=1e-13)


def test_reach_of_the_noise_holds_all_but_what_it_says() -> None:
    ratio = math.exp(-0.5)
    reach = noise_reach(ratio, 1, outside=20.0)
    assert 2 * ratio ** (reach + 1) / (1 + ratio) < 2 * math.exp(-20)
    assert 2 * ratio ** (0.6 * reach) / (1 + ratio) > math.exp(-20)
    assert noise_reach(ratio, 4) > noise_reach(ratio, 1) > noise_reach(0.0, 4) == noise_reach(ratio, 0) == 0


def test_moments() -> None:
    count = PooledCount((RecordGroup(10, 2, 0.1, 0.5), RecordGroup(4, 1, 0.0, 1.0)), 0.0, (0,))
    assert float(count.mean(0.2)) == pytest.approx(20 * 0.2 + 4 * 0.2)
    assert float(count.variance(0.2)) == pytest.approx(40 * 0.16 + 4 * 0.16)
    assert count.most == 24

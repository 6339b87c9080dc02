"""Shares of a secure sum: the exact law of a draw, whole numbers modulo 2^32, one message a site."""

import math

import numpy as np
import pytest
from scipy import special

from sottovoce.client.conformal.shares import SharingSite, _throw, draw_polya, noisy_counts
from sottovoce.client.record import Records
from sottovoce.core.arrays import Words
from sottovoce.core.errors import BadInput
from sottovoce.protocol.selection.geometric import Polya, polya
from sottovoce.sim.randomness import dice

FALSE_ALARM = 1e-6


@pytest.mark.parametrize(("epsilon", "sites"), [(0.5, 1), (0.5, 3), (2.0, 5), (1.0, 50)])
def test_draws_have_the_law(epsilon: float, sites: int) -> None:
    noise, draws = polya(epsilon, sites), 6_000
    steps = [float(noise.ratio) * above / below for above, below in map(noise.odds, range(400))]
    weights = np.cumprod([1.0, *steps])
    distribution = weights / weights.sum()
    cut = max(1, int(np.searchsorted(-distribution * draws, -10.0)))  # the tail is one class
    drawn = np.minimum(draw_polya(noise, draws, dice(11)), cut)
    observed = np.bincount(drawn, minlength=cut + 1)
    expected = draws * np.append(distribution[:cut], distribution[cut:].sum())
    chi_square = float(np.sum((observed - expected) ** 2 / expected))
    assert special.chdtrc(cut, chi_square) > FALSE_ALARM


def test_a_sum_over_sites_has_the_stated_variance() -> None:
    # the fourth moment of the sum is below 7 squares of its variance: five errors are 5 sqrt(6 / 4000)
    noise = polya(1.0, 4)
    total = sum(noisy_counts(np.zeros(4_001, dtype=np.int64), noise, dice(seed)).view(np.int32) for seed in range(4))
    assert abs(float(np.mean(np.square(total))) / noise.variance - 1) < 5 * math.sqrt(6 / 4_000)
    assert abs(float(np.mean(total))) < 5 * math.sqrt(noise.variance / 4_000)


def test_without_noise_counts_are_sent_as_they_are() -> None:
    site = SharingSite(Records(np.array([0.5, 1.0, 1.5, 2.0, 9.0])), Polya(0, 2), math.inf, dice(1))
    message = site.answer([1.0, 2.0])
    assert message.dtype == np.uint32
    assert message.tolist() == [2, 1]
    assert not site.private


def test_negative_counts_wrap_around() -> None:
    sent = noisy_counts(np.zeros(2_000, dtype=np.int64), polya(0.5, 2), dice(2))
    assert (sent > 1 << 31).any()
    assert np.abs(sent.view(np.int32)).max() < 1_000


def test_one_message_a_site() -> None:
    site = SharingSite(Records(np.arange(50.0)), polya(1.0, 3), 1.0, dice(7))
    assert (site.size, site.spent) == (50, 0)
    first = site.answer([10.0, 20.0, 30.0])
    assert site.spent == 50
    np.testing.assert_array_equal(site.answer([10.0, 20.0, 30.0]), first)
    with pytest.raises(BadInput, match="already answered"):
        site.answer([10.0, 20.0, 31.0])
    assert repr(site) == "SharingSite(50 records, 50 answered)"


@pytest.mark.parametrize("edges", [[], [1.0, 1.0], [2.0, 1.0], [1.0, math.inf], [math.nan]])
def test_a_bad_grid_costs_nothing(edges: list[float]) -> None:
    site = SharingSite(Records(np.arange(50.0)), polya(1.0, 3), 1.0, dice(7))
    with pytest.raises(BadInput, match="a grid is"):
        site.answer(edges)
    assert site.spent == 0


def test_only_the_systems_dice_are_private() -> None:
    assert SharingSite(Records(np.arange(3.0)), polya(1.0, 3), 1.0).private
    assert not SharingSite(Records(np.arange(3.0)), polya(1.0, 3), 1.0, dice(1)).private


def test_a_throw_near_the_end_of_the_words_is_thrown_again() -> None:
    class Worded:
        private = False

        def __init__(self) -> None:
            self.given = [2**64 - 1, 2**64 - 2, 5]

        def words(self, n: int) -> Words:
            return np.array([self.given.pop(0) for _ in range(n)], dtype=np.uint64)

        def split(self, n: int) -> "list[Worded]":
            raise NotImplementedError

    # 2^64 leaves 1 on division by 3: the last word belongs to no remainder, the one before it to 2, and 5 to 2
    source = Worded()
    assert _throw(2, 3, 1, source).tolist() == [False]
    assert source.given == [5]
    assert _throw(3, 4, 1, source).tolist() == [True]

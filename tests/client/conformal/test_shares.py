"""Shares of a secure sum: the exact law of a draw, whole numbers modulo 2^32, one message a site."""

import math

import numpy as np
import pytest
from scipy import special

from sottovoce.client.conformal.shares import SharingSite, _throw, agreed_sites, draw_polya, noisy_counts
from sottovoce.client.record import Records
from sottovoce.core.arrays import Words
from sottovoce.core.errors import BadInput
from sottovoce.protocol.card import Card
from sottovoce.protocol.messages import OrderQuery, SumQuery
from sottovoce.protocol.selection.geometric import WORD, polya
from sottovoce.sim.randomness import dice

FALSE_ALARM = 1e-6
NOISE = polya(1.0, 3).numerator


def sharing(seed: int | None = 7, budget: float = 1.0, sites: int = 3) -> SharingSite:
    return SharingSite(Records(np.arange(50.0)), sites, budget, None if seed is None else dice(seed))


def asking(*edges: float) -> SumQuery:
    return SumQuery(edges, NOISE, 3)


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
    site = SharingSite(Records(np.array([0.5, 1.0, 1.5, 2.0, 9.0])), 2, math.inf, dice(1))
    assert site.answer(SumQuery((1.0, 2.0), 0, 2)).counts == (2, 1)
    assert not site.private


def test_negative_counts_wrap_around() -> None:
    sent = noisy_counts(np.zeros(2_000, dtype=np.int64), polya(0.5, 2), dice(2))
    assert (sent > 1 << 31).any()
    assert np.abs(sent.view(np.int32)).max() < 1_000


def test_one_message_a_site() -> None:
    site = sharing(seed=None)  # the system's dice: a second draw would differ
    assert (site.size, site.spent) == (50, 0)
    first = site.answer(asking(10.0, 20.0, 30.0))
    assert site.spent == 50
    assert all(site.answer(asking(10.0, 20.0, 30.0)) == first for _ in range(20))
    for other in (asking(10.0, 20.0, 31.0), SumQuery((10.0, 20.0, 30.0), NOISE + 1, 3)):
        with pytest.raises(BadInput, match="has sent its one message"):
            site.answer(other)
    assert repr(site) == "SharingSite(50 scores, values hidden)"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (SumQuery((10.0,), NOISE, 1_000_000), "another number of sites than the study card"),
        (SumQuery((10.0,), NOISE, 2), "another number of sites than the study card"),
        (SumQuery((10.0,), NOISE, 0), "another number of sites than the study card"),
        (SumQuery((10.0,), 0, 3), "more than this site's budget of 1; ask for more noise"),
        (SumQuery((10.0,), NOISE - 1, 3), "more than this site's budget"),
        (SumQuery((10.0,), -1, 3), "out of range"),
        (SumQuery((10.0,), WORD - 1, 3), "out of range"),
        (SumQuery((10.0,), WORD, 3), "out of range"),
        (SumQuery(tuple(np.arange(20_000.0).tolist()), polya(1e-5, 3).numerator, 3), "takes too long"),
    ],
)
def test_a_site_believes_its_card_and_its_budget_and_not_the_query(query: SumQuery, said: str) -> None:
    site = sharing()
    with pytest.raises(BadInput, match=said):
        site.reply(1, query)
    assert site.spent == 0


def test_a_site_that_claims_a_million_others_would_get_nothing_hidden() -> None:
    # why the number is checked: noise shared by a million sites leaves the counts of one as they are
    sent = noisy_counts(np.array([0, 7, 3, 5]), polya(1.0, 1_000_000), dice(1))
    assert sent.tolist() == [7, 3, 5]


def test_only_its_own_question_is_answered() -> None:
    with pytest.raises(BadInput, match="asked for its share of a sum"):
        sharing().reply(1, OrderQuery((3,)))


def test_the_number_of_sites_is_the_cards() -> None:
    assert agreed_sites(Card("conformal", {"sites": ["a", "b", "c"]}), "b") == 3
    cards: list[dict[str, object]] = [{}, {"sites": 3}, {"sites": ["a", "a", "b"]}, {"sites": ["a", "c"]}]
    for terms in cards:
        with pytest.raises(BadInput, match="does not list every site once"):
            agreed_sites(Card("conformal", terms), "b")
    with pytest.raises(BadInput, match="lists more than 2 sites"):
        agreed_sites(Card("conformal", {"sites": ["a", "b", "c"]}), "b", most=2)


@pytest.mark.parametrize("edges", [[], [1.0, 1.0], [2.0, 1.0], [1.0, math.inf], [math.nan]])
def test_a_bad_grid_costs_nothing(edges: list[float]) -> None:
    site = sharing()
    with pytest.raises(BadInput, match="a grid is"):
        site.answer(asking(*edges))
    assert site.spent == 0


def test_only_the_systems_dice_are_private() -> None:
    assert sharing(seed=None).private
    assert not sharing(seed=1).private


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

"""Asking all sites: no record twice, the same fraction everywhere, and answers decoded without bias."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sottovoce.core.arrays import Floats, Ints
from sottovoce.server.quantile.asking import Ask, QueryAllocator, SiteProfile, allot, counted, decode

SIZES = st.lists(st.integers(1, 10_000), min_size=1, max_size=6)
PARTS = st.lists(st.lists(st.floats(1e-4, 1.0), min_size=1, max_size=16), min_size=1, max_size=8)


def crowd_of(sizes: list[int], rates: list[float] | None = None, shares: list[float] | None = None) -> SiteProfile:
    n = len(sizes)
    weights = np.array(shares) if shares else np.full(n, 1 / n)
    return SiteProfile(weights, np.array(rates) if rates else np.full(n, 0.5), np.array(sizes, dtype=np.int64))


def ask_all(talker: QueryAllocator, rounds: list[Floats]) -> list[Ints]:
    counts = []
    for parts in rounds:
        talk = talker.ask(np.arange(float(len(parts))), parts)
        counts.append(next(talk).counts)
        with pytest.raises(StopIteration):
            talk.send(np.zeros_like(counts[-1]))
    return counts


def test_unit_variance_is_that_of_one_point_asked_by_everybody() -> None:
    crowd = crowd_of([100, 400], [0.5, 0.25], [0.3, 0.7])
    assert crowd.unit_variance == pytest.approx(0.09 / (4 * 0.25 * 100) + 0.49 / (4 * 0.0625 * 400))


@settings(max_examples=60, deadline=None)
@given(SIZES, PARTS)
def test_fractions_that_sum_to_one_use_every_record_once(sizes: list[int], parts: list[list[float]]) -> None:
    total = sum(map(sum, parts))
    rounds = [np.array(part) / total for part in parts]
    counts = ask_all(QueryAllocator(crowd_of(sizes)), rounds)
    assert all((asked >= 0).all() for asked in counts)
    assert np.sum([asked.sum(axis=1) for asked in counts], axis=0).tolist() == sizes


@settings(max_examples=60, deadline=None)
@given(SIZES, PARTS)
def test_each_site_answers_its_fraction_within_one_record(sizes: list[int], parts: list[list[float]]) -> None:
    total = sum(map(sum, parts)) * 1.25
    rounds = [np.array(part) / total for part in parts]
    counts = np.concatenate(ask_all(QueryAllocator(crowd_of(sizes)), rounds), axis=1)
    wanted = np.outer(sizes, np.concatenate(rounds))
    assert np.all(np.abs(counts - wanted) <= 1 + 1e-6)
    assert np.all(np.abs(np.cumsum(counts - wanted, axis=1)) <= 1 + 1e-6)


def test_nobody_is_asked_beyond_the_last_record() -> None:
    crowd = crowd_of([7, 1, 1000])
    talker = QueryAllocator(crowd)
    counts = ask_all(talker, [np.array([0.9, 0.9]), np.array([0.5])])
    assert np.sum([asked.sum(axis=1) for asked in counts], axis=0).tolist() == [7, 1, 1000]
    assert counts[1].sum() == 0
    assert (talker.spent, talker.left, talker.reports) == (1.0, 0.0, 1008)


def test_dust_in_the_fractions_leaves_nobody_out() -> None:
    crowd = crowd_of([10**14])
    assert int(allot(crowd, 0.5, np.array([0.5 - 4e-13])).sum()) == 10**14 // 2


def test_sites_of_one_record_do_not_all_speak_first() -> None:
    counts = allot(crowd_of([1] * 10), 0.0, np.full(10, 0.1))
    assert counts.sum(axis=0).max() <= 2
    assert counts.sum(axis=1).tolist() == [1] * 10


def test_the_few_sites_that_answer_a_small_query_are_not_neighbours() -> None:
    # sites listed from small to large values: the mean rank of those who answer must be that of all
    counts = allot(crowd_of([1] * 1000), 0.0, np.full(50, 0.02))
    ranks = np.arange(1000)
    for asked in counts.T:
        speakers = ranks[asked > 0]
        assert 15 <= len(speakers) <= 25
        assert abs(speakers.mean() - 499.5) < 100  # a block of twenty neighbours would be off by up to 490


def test_decoding_is_unbiased_exactly() -> None:
    crowd = crowd_of([3, 2], [0.5, 0.8], [0.4, 0.6])
    counts = np.array([[3], [2]])
    below = np.array([0.2, 0.7])  # the probability below the point, at each site
    letter = (1 - crowd.rates) / 2 + crowd.rates * (1 - below)
    mean = second = 0.0
    for first, other in product(range(4), range(3)):
        chance = _binomial(3, first, letter[0]) * _binomial(2, other, letter[1])
        seen = float(decode(crowd, np.array([0.0]), counts, np.array([[first], [other]])).below[0])
        mean += chance * seen
        second += chance * seen**2
    assert mean == pytest.approx(0.4 * 0.2 + 0.6 * 0.7, abs=1e-14)
    exact = float(np.sum(crowd.shares**2 * letter * (1 - letter) / (crowd.rates**2 * counts[:, 0])))
    assert second - mean**2 == pytest.approx(exact, abs=1e-14)
    bound = float(decode(crowd, np.array([0.0]), counts, counts).variances[0])
    assert bound == pytest.approx(0.16 / (4 * 0.25 * 3) + 0.36 / (4 * 0.64 * 2))
    assert bound >= exact


def _binomial(n: int, k: int, chance: float) -> float:
    ways = {(3, 1): 3, (3, 2): 3, (2, 1): 2}.get((n, k), 1)
    return ways * chance**k * (1 - chance) ** (n - k)


def test_an_absent_site_leaves_its_share_to_the_others() -> None:
    crowd = crowd_of([10, 10, 10], [0.5, 0.5, 0.25], [0.2, 0.3, 0.5])
    counts = np.array([[4, 4], [4, 0], [0, 0]])
    ones = np.array([[3, 1], [2, 0], [0, 0]])
    heard = decode(crowd, np.array([0.0, 1.0]), counts, ones)
    alone = [1 - (share - 0.25) / 0.5 for share in (3 / 4, 2 / 4, 1 / 4)]
    assert heard.below == pytest.approx([0.4 * alone[0] + 0.6 * alone[1], alone[2]])
    assert heard.variances == pytest.approx([(0.16 + 0.36) / (4 * 0.25 * 4), 1 / (4 * 0.25 * 4)])


def test_small_sites_that_answer_stand_for_those_that_do_not() -> None:
    """Fifty sites of four records lie below, half of the whole; a site of a thousand above: no point may lean."""
    crowd = SiteProfile(np.array([0.5, *[0.01] * 50]), np.ones(51), np.array([1_000, *[4] * 50]))
    counts = allot(crowd, 0.0, np.full(20, 0.05))
    ones = np.where(np.arange(51)[:, None] == 0, counts, 0)
    heard = decode(crowd, np.zeros(20), counts, ones)
    assert heard.below == pytest.approx(np.full(20, 0.5), abs=0.05)
    weights, noise, few = counted(crowd, counts)
    assert weights.sum(axis=0) == pytest.approx(1.0)
    assert few.all(axis=1).tolist() == [False, *[True] * 50]
    assert noise[1] == pytest.approx(0.01**2 / (4 * 0.05))  # as if the answer that is due had come


def test_equal_sites_of_which_some_answer_count_as_their_records() -> None:
    crowd = crowd_of([2] * 100, [0.5] * 100)
    counts = allot(crowd, 0.0, np.array([0.1]))
    ones = np.where(np.arange(100)[:, None] % 3 == 0, counts, 0)
    heard, answers = decode(crowd, np.zeros(1), counts, ones), counts.sum()
    assert heard.below[0] == pytest.approx(1 - (ones.sum() / answers - 0.25) / 0.5)
    assert heard.variances[0] == pytest.approx(1 / (4 * 0.25 * answers))


def test_a_truthful_channel_gives_the_share_below() -> None:
    crowd = crowd_of([8], [1.0])
    assert decode(crowd, np.array([0.0]), np.array([[8]]), np.array([[2]])).below[0] == 0.75


def test_a_talker_remembers_what_it_heard() -> None:
    talker = QueryAllocator(crowd_of([100, 50], [1.0, 1.0]))
    talk = talker.ask([1.0, 2.0], [0.1, 0.2])
    ask = next(talk)
    assert isinstance(ask, Ask)
    assert ask.points.tolist() == [1.0, 2.0]
    with pytest.raises(StopIteration) as stop:
        talk.send(ask.counts)
    assert stop.value.value is talker.heard[0]
    assert talker.heard[0].below == pytest.approx([0.0, 0.0], abs=1e-12)  # every letter says above
    assert talker.spent == pytest.approx(0.3)
    assert talker.left == pytest.approx(0.7)
    assert talker.reports == int(ask.counts.sum()) == 45
    assert "ones" not in repr(talker.heard[0])

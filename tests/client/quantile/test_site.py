"""A site: one door, each record once, retries with the same bytes, refusals that cost nothing."""

import inspect
import math
from typing import Any

import numpy as np
import pytest

from sottovoce.client.quantile import site as module
from sottovoce.client.quantile.site import Site, look_rounded
from sottovoce.client.record import SAMPLE, Records
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import SystemEntropy
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.messages import Query, Study
from sottovoce.protocol.randomised_response import binary
from sottovoce.sim.randomness import dice


def site_of(n: int = 100, epsilon: float = 1.0, seed: int = 7, resolution: float = 0.0) -> Site:
    return Site(Records(np.arange(float(n))), Study(0.5, epsilon, resolution), dice(seed))


def test_a_tally_is_the_sum_of_the_reports() -> None:
    query = Query(1, (20.0, 50.0, 80.0), (30, 40, 30))
    letters = np.frombuffer(site_of().answer(query).letters, dtype=np.uint8)
    assert site_of().tally(query).ones == tuple(int(part.sum()) for part in np.split(letters, [30, 70]))


@pytest.mark.parametrize("resolution", [0.0, 3.0])
def test_pieces_do_not_show(monkeypatch: pytest.MonkeyPatch, resolution: float) -> None:
    query = Query(1, (20.0, 50.0), (61, 39), 0.5)
    whole = site_of(resolution=resolution).answer(query)
    monkeypatch.setattr(module, "CHUNK", 7)
    assert site_of(resolution=resolution).answer(query) == whole


def test_a_sorted_site_answers_like_a_mixed_one() -> None:
    # with epsilon infinite, the part above the median in the first tenth is hypergeometric: five errors either way
    site = site_of(20_000, math.inf)
    ones = site.tally(Query(1, (9_999.5,), (2_000,))).ones[0]
    assert abs(ones - 1000) < 5 * math.sqrt(2000 * 0.25)


def test_a_retry_gets_the_same_and_costs_nothing() -> None:
    site, query = site_of(), Query(1, (50.0,), (40,))
    assert site.answer(query) == site.answer(Query(1, (50.0,), (40,)))
    assert site.spent == 40
    assert site.tally(Query(2, (50.0,), (40,))) == site.tally(Query(2, (50.0,), (40,)))
    assert site.spent == 80


def test_reports_are_not_given_as_a_tally_as_well() -> None:
    site, query = site_of(), Query(1, (50.0,), (40,))
    site.answer(query)
    with pytest.raises(BadInput, match="round 1 was already answered"):
        site.tally(query)
    assert site.spent == 40


BAD = [
    Query(1, (1.0, 2.0), (3,)),
    Query(1, (1.0,), (-1,)),
    Query(1, (math.nan,), (3,)),
    Query(1, (math.inf,), (3,)),
    Query(1, (1.0,), (3,), math.inf),
    Query(1, (1.0,), (101,)),
]


@pytest.mark.parametrize("query", BAD)
@pytest.mark.parametrize("verb", ["answer", "tally"])
def test_a_query_that_cannot_be_answered_costs_nothing(query: Query, verb: str) -> None:
    site: Any = site_of()
    with pytest.raises(BadInput, match=r"round 1 .*; (correct|ask)"):
        getattr(site, verb)(query)
    assert site.spent == 0
    # the dice have not been thrown either: what comes next is what would have come first
    assert site.answer(Query(1, (50.0,), (100,))) == site_of().answer(Query(1, (50.0,), (100,)))


def test_what_is_left_can_be_handed_over_once() -> None:
    site = site_of()
    site.tally(Query(1, (50.0,), (30,)))
    rest = site.hand_over(2)
    assert (rest.taken, site.spent) == (30, 100)
    assert site.hand_over(3).taken == 100
    with pytest.raises(BadInput):
        site.tally(Query(4, (50.0,), (1,)))


def test_private_needs_the_systems_dice_and_a_finite_budget() -> None:
    records = Records(np.arange(5.0))
    assert Site(records, Study(0.5, 1.0)).private
    assert Site(records, Study(0.5, 1.0), SystemEntropy()).private
    assert not Site(records, Study(0.5, 1.0), dice(1)).private
    assert not Site(records, Study(0.5, math.inf)).private


def test_the_channel_follows_the_study_unless_given() -> None:
    records = Records(np.arange(5.0))
    assert Site(records, Study(0.5, 2.0)).channel.weights == binary(2.0).weights
    assert Site(records, Study(0.5, 2.0), None, binary(0.5)).channel.weights == binary(0.5).weights


def test_there_is_no_seed_to_give() -> None:
    assert list(inspect.signature(Site).parameters) == [
        "records",
        "study",
        "dice",
        "channel",
        "storage",
        "key",
        "limits",
    ]


def test_it_shows_counts_only() -> None:
    site = site_of()
    site.tally(Query(1, (50.0,), (30,)))
    assert repr(site) == "Site(100 records, 30 answered)"
    assert (site.size, site.spent) == (100, 30)


def test_a_channel_that_the_sampler_would_not_sample_is_refused() -> None:
    other = Channel("other", np.array([[0.0], [1.0]]), ((3, 1), (1, 3)), np.array([[-0.5], [1.5]]))
    with pytest.raises(BadInput, match="channel 'other' is not a binary one"):
        Site(Records(np.arange(5.0)), Study(0.5, 2.0), channel=other)


def normal(n: int, seed: int = 1) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return dice(seed).generator().standard_normal(n)


@pytest.mark.parametrize("n", [200, SAMPLE, 50_000])
def test_continuous_records_do_not_look_rounded(n: int) -> None:
    assert not look_rounded(Records(normal(n)))
    assert not look_rounded(Records(normal(n, 2)))


@pytest.mark.parametrize("n", [200, SAMPLE, 50_000])
def test_records_to_one_digit_do(n: int) -> None:
    assert look_rounded(Records(np.round(normal(n), 1)))


def test_a_sorted_file_looks_the_same() -> None:
    assert look_rounded(Records(np.sort(np.round(normal(50_000), 1))))
    assert not look_rounded(Records(np.sort(normal(50_000))))


def test_records_that_are_partly_rounded_are_noticed_when_these_weigh() -> None:
    assert look_rounded(Records(np.concatenate([np.round(normal(5000), 1), normal(5000, 2)])))
    assert not look_rounded(Records(np.concatenate([np.round(normal(50), 1), normal(5000, 2)])))


def test_a_handful_of_records_says_nothing() -> None:
    assert not look_rounded(Records(np.zeros(99)))
    assert look_rounded(Records(np.zeros(100)))

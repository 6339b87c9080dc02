"""Questions about edges: each record once, equally many a question, a random order, retries with the same numbers."""

import math

import numpy as np
import pytest

from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource
from sottovoce.protocol.messages import Query, Study, Tally
from sottovoce.protocol.randomised_response import binary
from sottovoce.sim.randomness import dice


def questioned_site(scores: Records, epsilon: float, dice: RandomSource | None = None) -> Site:
    return Site(scores, Study(0.5, epsilon), dice)


def answer_above(site: Site, edges: list[float]) -> Tally:
    """Ask as the server does: every edge at equally many records."""
    reply = site.reply(1, Query(1, tuple(edges), (site.size // max(len(edges), 1),) * len(edges)))
    assert isinstance(reply, Tally)
    return reply


def site_of(n: int = 1_003, epsilon: float = 1.0, seed: int = 3) -> Site:
    return questioned_site(Records(np.arange(float(n))), epsilon, dice(seed))


def test_every_question_gets_as_many_records() -> None:
    site = site_of(1_003, math.inf)
    # no score is above the last edge, all are above the first
    assert answer_above(site, [-1.0, 500.5, 2_000.0]).ones[::2] == (334, 0)
    assert site.spent == 1_002


def test_a_score_on_an_edge_is_not_above_it() -> None:
    site = questioned_site(Records(np.full(8, 2.0)), math.inf, dice(1))
    assert answer_above(site, [1.9, 2.0]).ones == (4, 0)


def test_sorted_scores_are_asked_in_random_order() -> None:
    # a quarter of the records is asked at the middle: without a random order all or none would lie above it
    ones = answer_above(site_of(8_000, math.inf), [-1.0, 3_999.5, 3_999.75, 9_000.0]).ones
    assert ones[0] == 2_000
    for middle in ones[1:3]:
        assert abs(middle - 1_000) < 5 * math.sqrt(2_000 / 4)


def test_a_retry_gets_the_same_and_another_question_none() -> None:
    site = site_of()
    first = answer_above(site, [100.0, 900.0])
    assert answer_above(site, [100.0, 900.0]) == first
    assert site.spent == 1_002
    with pytest.raises(BadInput, match="already answered"):
        answer_above(site, [100.0, 901.0])


def test_too_few_records_answer_nothing() -> None:
    site = site_of(3)
    assert answer_above(site, [1.0, 2.0, 3.0, 4.0]).ones == (0, 0, 0, 0)
    assert site.spent == 0


def test_the_budget_is_the_binary_channels() -> None:
    assert site_of(epsilon=1.5).channel.weights == binary(1.5).weights
    assert not site_of().private
    assert questioned_site(Records(np.arange(9.0)), 1.0).private


def test_answers_have_the_law_of_the_channel() -> None:
    # 5 standard deviations: a false alarm of 6e-7
    flip = binary(1.0).distribution[0, 1]
    ones = answer_above(site_of(8_000), [-1.0, 50_000.0]).ones
    for found, chance in zip(ones, (1 - flip, flip), strict=True):
        assert abs(found - 4_000 * chance) < 5 * math.sqrt(4_000 * flip * (1 - flip))


def test_no_edge() -> None:
    with pytest.raises(BadInput, match="1 to 10,000 points"):
        answer_above(site_of(), [])

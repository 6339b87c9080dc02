"""Phase questions: which half of its period a record lies in, through the same channel, at the same price."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sottovoce.client.door import Door
from sottovoce.client.quantile import site as module
from sottovoce.client.quantile.encode import score
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce.protocol.channel import OUTCOMES, Channel
from sottovoce.protocol.messages import Query, Study, Tally, WalkQuery
from sottovoce.protocol.randomised_response import binary
from sottovoce.protocol.wire import seal, unseal
from sottovoce.sim.randomness import dice

FALSE_ALARM = 1e-6
STUDY = b"0123456789abcdef"
ENDS = np.array([[0.0], [1.0]])
SILENT = Channel("silent", ENDS, ((OUTCOMES // 2, OUTCOMES // 2),) * 2, ENDS)
LARGEST = 1.7e308


def site_of(values: Floats, epsilon: float = 1.0, seed: int = 7, resolution: float = 0.0) -> Site:
    return Site(Records(values), Study(0.5, epsilon, resolution), dice(seed))


@pytest.mark.parametrize(
    ("value", "point", "period", "letter"),
    [
        (3.0, 3.0, 1.0, 0),  # at the point begins the lower half
        (3.25, 3.0, 1.0, 0),
        (3.5, 3.0, 1.0, 1),  # at half the period the upper one
        (3.75, 3.0, 1.0, 1),
        (4.0, 3.0, 1.0, 0),
        (2.75, 3.0, 1.0, 1),  # below the point phases go on
        (2.5, 3.0, 1.0, 1),
        (2.25, 3.0, 1.0, 0),
        (-9.0, 3.0, 1.0, 0),
        (19.99, -0.0025, 0.01, 0),  # cents: whatever the price, one quarter beyond the point
        (1234.56, -0.0025, 0.01, 0),
        (19.99, 0.0025, 0.01, 1),
        (1234.56, 0.0025, 0.01, 1),
        (45_000.0, 1_250.0, 5_000.0, 1),
        (47_500.0, 1_250.0, 5_000.0, 0),
        (0.5, 0.0, 0.0, 1),  # no period: a threshold
        (0.0, 0.0, 0.0, 0),
        (0.5, 0.0, -0.0, 1),
        (LARGEST, -LARGEST, 1.0, 0),  # beyond what floats hold, everybody says the same
        (-LARGEST, LARGEST, 1.0, 0),
        (1.0, 0.0, 5e-324, 0),
        (1.0, 0.0, LARGEST, 0),
        (-1.0, 0.0, LARGEST, 1),
    ],
)
def test_letters_by_hand(value: float, point: float, period: float, letter: int) -> None:
    plain = getattr(score, "py_func", score)
    assert score(value, point, period) == letter
    assert plain(np.float64(value), point, period) == letter
    query = Query(1, (point,), (1,), 0.0, (period,))
    assert site_of(np.array([value]), math.inf).answer(query).letters == bytes([letter])


def test_without_noise_letters_are_exact_over_a_grid() -> None:
    values = np.arange(-64, 64) / 8  # points and periods in eighths: nothing is rounded
    for point, period in product((-1.125, 0.0, 0.25, 7.5), (0.25, 0.5, 1.0, 3.0, 100.0)):
        site = site_of(values, math.inf)
        ones = site.tally(Query(1, (point, point), (100, 28), 0.0, (period, period))).ones
        assert sum(ones) == int(np.sum(np.mod(values - point, period) >= period / 2))
        assert site.spent == 128


def test_points_with_and_without_a_period_share_a_query() -> None:
    values = np.arange(100.0)
    mixed = site_of(values).tally(Query(1, (20.0, 0.25, 80.0), (30, 40, 30), 0.0, (0.0, 2.0, 0.0))).ones
    thresholds = site_of(values).tally(Query(1, (20.0, 0.25, 80.0), (30, 40, 30))).ones
    assert (mixed[0], mixed[2]) == (thresholds[0], thresholds[2])
    assert mixed[1] != thresholds[1]
    zeros = site_of(values).tally(Query(1, (20.0, 0.25, 80.0), (30, 40, 30), 0.0, (0.0,) * 3)).ones
    assert zeros == thresholds


def test_two_phases_see_a_lattice_of_any_offset_and_nothing_in_smooth_records() -> None:
    source = dice(3).generator()
    smooth, period, n = source.normal(50.0, 9.0, 4_000), 0.01, 2_000
    for offset in (0.0, 0.0013, 0.0025, 0.0061, 0.0099):
        lattice = np.round(smooth / period) * period + offset
        ones = site_of(lattice, math.inf).tally(Query(1, (0.0013, 0.0038), (n, n), 0.0, (period, period))).ones
        assert max(abs(2 * one - n) for one in ones) == n
    # at most five standard errors from one half: beyond with probability 6e-7 a question
    ones = site_of(smooth, math.inf).tally(Query(1, (0.0013, 0.0038), (n, n), 0.0, (period, period))).ones
    assert max(abs(2 * one - n) for one in ones) < 5 * math.sqrt(n)


@pytest.mark.parametrize("truth", [0, 1])
@pytest.mark.parametrize("resolution", [0.0, 0.25])
def test_letters_have_the_law_of_the_channel(truth: int, resolution: float) -> None:
    n, channel = 40_000, binary(1.0)
    values = np.arange(float(n)) + (0.75 if truth else 0.25)  # within a quarter of the middle of their half
    site = site_of(values, 1.0, 11, resolution)
    ones = site.tally(Query(1, (0.0,), (n,), 0.0, (1.0,))).ones[0]
    assert stats.binomtest(ones, n, float(channel.distribution[truth, 1])).pvalue > FALSE_ALARM
    assert site.channel.epsilon == channel.epsilon <= 1.0
    assert site.spent == n


def test_the_dithered_value_is_asked_for_its_phase() -> None:
    # on the border of the halves, a record dithered by its resolution lies in either with equal probability
    ones = site_of(np.full(10_000, 4.0), math.inf, 5, 0.5).tally(Query(1, (3.0,), (10_000,), 0.0, (2.0,))).ones[0]
    assert stats.binomtest(ones, 10_000, 0.5).pvalue > FALSE_ALARM


@pytest.mark.parametrize("resolution", [0.0, 0.5])
def test_phases_say_nothing_at_epsilon_zero(resolution: float) -> None:
    query = Query(1, (0.1, 0.0, 1e6), (40, 30, 30), 0.0, (0.5, 0.0, 1e-7))

    def told(values: Floats, channel: Channel) -> bytes:
        return Site(Records(values), Study(0.5, channel.epsilon, resolution), dice(5), channel).answer(query).letters

    populations = (np.arange(100.0), np.full(100, 1e300), np.exp(np.linspace(-9.0, 9.0, 100)))
    assert len({told(values, SILENT) for values in populations}) == 1
    assert len({told(values, binary(1.0)) for values in populations}) == 3


BAD = [
    Query(1, (1.0, 2.0), (3, 3), 0.0, (1.0,)),
    Query(1, (1.0,), (3,), 0.0, (1.0, 0.0)),
    Query(1, (1.0,), (3,), 0.0, (math.nan,)),
    Query(1, (1.0,), (3,), 0.0, (math.inf,)),
    Query(1, (1.0,), (3,), 0.0, (-1.0,)),
    Query(1, (1.0,), (3,), 0.5, (1.0,)),
    Query(1, (1.0,), (3,), -0.5, (0.0,)),
    Query(1, (1.0,), (101,), 0.0, (1.0,)),
    WalkQuery(1, (1.0,), (3,), 0.5, (1.0,)),
    WalkQuery(1, (1.0,), (3,), 0.0, (1.0,)),
]


@pytest.mark.parametrize("query", BAD)
@pytest.mark.parametrize("verb", ["answer", "tally", "bytes"])
def test_a_phase_that_cannot_be_told_costs_nothing(query: Query, verb: str) -> None:
    site: Any = site_of(np.arange(100.0))
    ask = (lambda asked: Door(site, STUDY).answer(seal(STUDY, 1, asked))) if verb == "bytes" else getattr(site, verb)
    with pytest.raises(BadInput, match=r"^round 1 .*; (correct|ask)[^.]*\.$"):
        ask(query)
    assert site.spent == 0
    # the dice have not been thrown either
    whole = Query(1, (50.0,), (100,))
    assert site.answer(whole) == site_of(np.arange(100.0)).answer(whole)


def test_periods_alone_are_no_query() -> None:
    site = site_of(np.arange(100.0))
    with pytest.raises(BadInput, match="this site answers 1 to"):
        site.tally(Query(1, (), (), 0.0, (1.0,)))
    assert site.spent == 0


def test_through_bytes_is_direct_and_a_retry_the_same() -> None:
    direct, door = site_of(np.arange(100.0)), Door(site_of(np.arange(100.0)), STUDY)
    for round, periods in ((1, (2.0, 0.0)), (2, (0.0, 0.3)), (3, ())):
        query = Query(round, (0.25, 40.0), (20, 10), 0.0, periods)
        reply = door.answer(seal(STUDY, round, query))
        assert unseal(reply, STUDY, [Tally]).message == direct.tally(query)
        assert door.answer(seal(STUDY, round, query)) == reply
    with pytest.raises(BadInput, match="round 3 was already answered"):
        direct.tally(Query(3, (0.25, 40.0), (20, 10), 0.0, (1.0, 1.0)))
    assert direct.spent == 90


def test_a_large_site_tells_phases_in_its_random_order(monkeypatch: pytest.MonkeyPatch) -> None:
    query = Query(1, (0.25, 400.0), (500, 300), 0.0, (3.0, 0.0))
    small = site_of(np.arange(1_000.0)).tally(query)
    monkeypatch.setattr(module, "LARGE", 100)
    assert site_of(np.arange(1_000.0)).tally(query) == small

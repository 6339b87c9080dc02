"""Phase questions on their way: asked beside thresholds, kept apart from them, and the same by every door."""

from collections.abc import Generator

import numpy as np
import pytest

from sottovoce.client.door import Door
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.core import codec
from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.errors import BadInput
from sottovoce.core.roster import Roster
from sottovoce.core.unit import Unit
from sottovoce.local.quantile.crowd import SiteCrowd
from sottovoce.local.runner import through_bytes
from sottovoce.protocol.messages import Query
from sottovoce.server.method import converse, restore
from sottovoce.server.quantile.asking import Ask, QueryAllocator, SiteProfile
from sottovoce.server.quantile.conversation import Conversation, Log
from sottovoce.server.quantile.levels import together
from sottovoce.server.quantile.plan import plan_quantile
from sottovoce.sim.randomness import dice

SIZES = (1_500, 1_000)
PLAN = plan_quantile(Roster(("north", "south"), SIZES, Unit("number")), 0.5, 2.0)
STUDY = b"0123456789abcdef"
Talk = Conversation[QueryAllocator]


def talk_of(period: float = 1.0) -> Generator[Ask, Ints, QueryAllocator]:
    """Ask thresholds, then phases beside a threshold, then phases alone."""
    talker = QueryAllocator(PLAN.crowd)
    yield from talker.ask([20.0, 60.0], [0.1, 0.1])
    yield from talker.ask([0.25, 40.0, 0.5], [0.1, 0.2, 0.1], [period, 0.0, period])
    yield from talker.ask([0.25], [0.1], [10 * period])
    return talker


def records() -> list[Floats]:
    source = dice(2).generator()
    return [np.round(source.normal(40.0, 20.0, n)) for n in SIZES]


def sites() -> list[Site]:
    triples = enumerate(zip(records(), dice(5).split(2), strict=True))
    return [Site(Records(own), PLAN.study_of(k), die, PLAN.channels[k]) for k, (own, die) in triples]


def by_bytes(talk: Talk) -> Log:
    return converse(talk, through_bytes(talk, [Door(site, STUDY) for site in sites()], STUDY))


def test_phases_are_spent_and_counted_and_not_heard() -> None:
    talker = QueryAllocator(SiteProfile(np.full(2, 0.5), np.ones(2), np.array([100, 50])))
    talk = talker.ask([1.0, 2.0, 3.0], [0.1, 0.2, 0.1], [0.5, 0.0, 4.0])
    ask = next(talk)
    assert ask.periods is not None
    assert ask.periods.tolist() == [0.5, 0.0, 4.0]
    ones = ask.counts * np.array([1, 0, 1])
    with pytest.raises(StopIteration) as stop:
        talk.send(ones)
    whole = stop.value.value
    assert whole.points.tolist() == [1.0, 2.0, 3.0]
    assert whole.below == pytest.approx([0.0, 1.0, 0.0], abs=1e-12)
    (heard,), (phases,) = talker.heard, talker.phases
    assert (heard.points.tolist(), heard.below.tolist()) == ([2.0], [1.0])
    assert heard.counts.tolist() == ask.counts[:, 1:2].tolist()
    assert (phases.points.tolist(), phases.ones.tolist()) == ([1.0, 3.0], ones[:, ::2].tolist())
    assert phases.variances.tolist() == whole.variances[::2].tolist()
    assert talker.asked.tolist() == ask.counts.sum(axis=1).tolist() == [40, 20]
    assert (talker.reports, talker.rounds) == (60, 1)
    assert talker.spent == pytest.approx(0.4)


def test_a_round_of_phases_alone_leaves_nothing_heard() -> None:
    talker = QueryAllocator(SiteProfile(np.full(2, 0.5), np.ones(2), np.array([100, 50])))
    assert (talker.asked.tolist(), talker.reports) == ([0, 0], 0)
    talk = talker.ask([1.0, 1.25], [0.1, 0.1], [1.0, 1.0])
    ask = next(talk)
    with pytest.raises(StopIteration) as stop:
        talk.send(ask.counts)
    assert talker.heard == []
    assert talker.phases[0].points.tolist() == stop.value.value.points.tolist() == [1.0, 1.25]
    assert (talker.reports, talker.rounds) == (30, 1)


def test_queries_carry_the_periods_and_a_log_survives() -> None:
    log, talk = by_bytes(Talk(talk_of)), Talk(talk_of)
    asked = [None if ask.periods is None else ask.periods.tolist() for ask in log.asked]
    assert asked == [None, [1.0, 0.0, 1.0], [10.0]]
    stored = restore(talk, codec.to_bytes(log))
    assert [None if ask.periods is None else ask.periods.tolist() for ask in stored.asked] == asked
    assert Talk(talk_of).outcome(stored).reports == log.reports == 1_750
    part = Log(log.asked[:1], log.answered[:1])
    queries = Talk(talk_of).query(restore(talk, codec.to_bytes(part)))
    assert queries is not None
    assert queries.messages[0] == Query(
        2, (0.25, 40.0, 0.5), tuple(log.asked[1].counts[0].tolist()), 0.0, (1.0, 0.0, 1.0)
    )
    first = Talk(talk_of).query(Log())
    assert first is not None
    assert isinstance(first.messages[0], Query)
    assert first.messages[0].periods == ()


def test_a_log_of_other_periods_is_refused() -> None:
    log = by_bytes(Talk(talk_of))
    with pytest.raises(BadInput, match="questions that this study does not ask"):
        Talk(lambda: talk_of(0.5)).outcome(log)
    plain = log._replace(asked=(log.asked[0], log.asked[1]._replace(periods=None), log.asked[2]))
    with pytest.raises(BadInput, match="questions that this study does not ask"):
        Talk(talk_of).outcome(plain)


def test_bytes_direct_and_crowd_agree() -> None:
    talk = Talk(talk_of)
    crowd = SiteCrowd([Records(own) for own in records()], PLAN, dice(5).split(2))
    logs = [by_bytes(Talk(talk_of)), converse(talk, crowd.gather())]
    plain, direct = Log(), sites()
    while (queries := talk.query(plain)) is not None:
        pairs = zip(direct, queries.messages, strict=True)
        plain = talk.step(plain, [site.reply(queries.round, message) for site, message in pairs if message is not None])
    for log in logs:
        assert [ones.tolist() for ones in log.answered] == [ones.tolist() for ones in plain.answered]
    assert crowd.spent.tolist() == [site.spent for site in direct] == plain.spent.tolist()


def test_records_on_a_lattice_are_seen() -> None:
    # whole numbers lie in the upper half: 250 reports at epsilon 2 are 12 standard errors away from one half
    found = Talk(talk_of).outcome(by_bytes(Talk(talk_of)))
    lattice = found.phases[0]
    assert lattice.points.tolist() == [0.25, 0.5]
    errors = np.sqrt(lattice.variances)
    assert np.all(np.abs(lattice.below) < 5 * errors)  # beyond with probability 6e-7 a point
    assert np.all(np.abs(lattice.below - 0.5) > 5 * errors)


def test_joined_conversations_keep_their_own_periods() -> None:
    def plain() -> Generator[Ask, Ints, Ints]:
        return (yield Ask(np.array([7.0]), np.full((2, 1), 3)))

    def phased() -> Generator[Ask, Ints, Ints]:
        return (yield Ask(np.array([1.0, 2.0]), np.full((2, 2), 5), np.array([0.5, 0.0])))

    for talks, periods in (
        ([plain(), phased()], [0.0, 0.5, 0.0]),
        ([phased(), plain()], [0.5, 0.0, 0.0]),
        ([plain(), plain()], None),
    ):
        joined = together(talks)
        ask = next(joined)
        assert (None if ask.periods is None else ask.periods.tolist()) == periods
        ones = np.arange(2 * len(ask.points)).reshape(2, -1)
        with pytest.raises(StopIteration) as stop:
            joined.send(ones)
        assert np.concatenate(stop.value.value, axis=1).tolist() == ones.tolist()

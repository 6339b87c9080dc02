"""A conversation over a plain state: a log replays to the same questions and end, and only of its own study."""

from collections.abc import Generator
from itertools import pairwise

import numpy as np
import pytest

from sottovoce.core import codec
from sottovoce.core.arrays import Ints
from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import Query, Reports, Tally
from sottovoce.server.method import Queries, Replies, restore
from sottovoce.server.quantile.asking import Ask, SiteProfile
from sottovoce.server.quantile.certified.protocol import Certificate
from sottovoce.server.quantile.conversation import Conversation, Log
from sottovoce.server.quantile.scarce import Fitted
from sottovoce.server.quantile.staged import Local, StagedStudy, staged_protocol
from sottovoce.sim.randomness import SeededSource, dice
from sottovoce_papers.simulation.populations import population

CROWD = SiteProfile(np.array([0.25, 0.75]), np.array([0.5, 0.9]), np.array([5_000, 15_000]))
Talk = Conversation[Local | Fitted | Certificate]


def start() -> Generator[Ask, Ints, Local | Fitted | Certificate]:
    return staged_protocol(StagedStudy(0.5, CROWD))


def tallies(queries: Queries, source: SeededSource) -> Replies:
    """Answer as normal records would."""
    found: list[Tally | None] = []
    for rate, message in zip(CROWD.rates, queries.messages, strict=True):
        if isinstance(message, Query):
            above = 1 - population("normal").cdf(np.array(message.points))
            ones = source.generator().binomial(message.counts, rate * above + (1 - rate) / 2)
            found.append(Tally(queries.round, tuple(ones.tolist())))
        else:
            found.append(None)
    return found


def whole() -> list[Log]:
    source, talk = dice(3), Talk(start)
    logs = [talk.init()]
    while (queries := talk.query(logs[-1])) is not None:
        logs.append(talk.step(logs[-1], tallies(queries, source)))
    return logs


def test_a_log_replays_to_the_same_queries_and_the_same_end() -> None:
    logs, talk = whole(), Talk(start)
    for before, after in pairwise(logs):
        stored = restore(talk, codec.to_bytes(before))  # a fresh value, so that it is replayed
        again, ask = Talk(start).query(stored), after.asked[-1]
        assert again is not None
        assert again.messages == [
            Query(again.round, tuple(ask.points.tolist()), tuple(counts)) if any(counts) else None
            for counts in ask.counts.tolist()
        ]
        with pytest.raises(BadInput, match="goes on"):
            talk.outcome(before)
    first, second = Talk(start).outcome(logs[-1]), Talk(start).outcome(restore(talk, codec.to_bytes(logs[-1])))
    assert isinstance(first, Local)
    assert isinstance(second, Local)
    assert first.centre == second.centre
    assert first.milestones == second.milestones
    assert logs[-1].reports == CROWD.sizes.sum()
    assert logs[-1].spent.tolist() == CROWD.sizes.tolist()


def test_a_log_of_another_study_is_refused() -> None:
    other = Talk(lambda: staged_protocol(StagedStudy(0.5, CROWD, scale=77.0)))
    with pytest.raises(BadInput, match="questions that this study does not ask"):
        other.query(whole()[-1])


def test_who_did_not_answer_is_asked_again_and_nobody_else() -> None:
    talk = Talk(start)
    queries = talk.query(talk.init())
    assert queries is not None
    full = tallies(queries, dice(5))
    waiting = talk.step(talk.init(), [full[0], None])
    assert waiting.rounds == 0
    again = talk.query(waiting)
    assert again is not None
    assert again.messages == [None, queries.messages[1]]
    assert again.round == queries.round
    still = talk.step(waiting, [None, None])
    assert talk.query(still) == again
    late, at_once = talk.step(still, [None, full[1]]), Talk(start).step(Log(), full)
    assert late.rounds == at_once.rounds == 1
    np.testing.assert_array_equal(late.answered[0], at_once.answered[0])
    # a retry may say the same again, and nothing else
    assert talk.step(waiting, [full[0], full[1]]).rounds == 1
    assert isinstance(full[0], Tally)
    with pytest.raises(BadInput, match="otherwise"):
        talk.step(waiting, [Tally(1, tuple(n - 1 if n else 1 for n in full[0].ones)), full[1]])


def test_a_reply_that_does_not_fit_is_refused_and_the_log_stays() -> None:
    talk = Talk(start)
    log = talk.init()
    queries = talk.query(log)
    assert queries is not None
    good, asked = list(tallies(queries, dice(4))), queries.messages[0]
    assert isinstance(asked, Query)
    counts = asked.counts
    bad = [
        Tally(1, tuple(n + 1 for n in counts)),
        Tally(1, counts[:-1]),
        Tally(1, (*counts, 0)),
        Tally(1, (-1,) * len(counts)),
        Tally(2, counts),
        Reports(1, b""),
    ]
    for reply in bad:
        with pytest.raises(BadInput):
            talk.step(log, [reply, good[1]])
    for replies in ([good[0]], [*good, good[0]], []):
        with pytest.raises(BadInput, match="round 1 asked 2 sites"):
            talk.step(log, replies)
    assert log == Log()
    assert talk.query(log) == queries


def test_nothing_can_be_added_to_a_finished_conversation() -> None:
    with pytest.raises(BadInput, match="is over"):
        Talk(start).step(whole()[-1], [None, None])

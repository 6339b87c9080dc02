"""A whole regression as a method: through bytes as directly, from any stored state, and deaf to what does not fit."""

import copy
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.server.regression.plans import GUESSES, WAYS, plan_of, rows_of

from sottovoce.client.door import Door
from sottovoce.core import codec
from sottovoce.core.errors import BadInput, SearchFailed
from sottovoce.local.regression.doors import open_doors
from sottovoce.local.regression.pilot import Pilot
from sottovoce.local.runner import run, through_bytes
from sottovoce.protocol.messages import Message, PeopleQuery, PeopleReport, PersonReport, PilotQuery, Tally
from sottovoce.server.method import Queries, Replies, converse, restore
from sottovoce.server.regression.dithered.method import BY_SHARE, ONE_BY_ONE, BatchRule
from sottovoce.server.regression.method import RegressionMethod, RegressionState
from sottovoce.sim.randomness import dice

N = 900


def opened(way: str, n: int = N, batches: BatchRule = BY_SHARE) -> tuple[RegressionMethod, list[Door], bytes]:
    return open_doors(plan_of(**WAYS[way]), rows_of(n), dice(3), batches)


def same(one: RegressionState, other: RegressionState) -> bool:
    return codec.to_bytes(one) == codec.to_bytes(other)


@pytest.mark.parametrize("way", WAYS)
def test_through_bytes_as_directly(way: str) -> None:
    asked: list[int] = []
    method, doors, _ = opened(way)
    direct = run(method, doors, asked.append)
    again, others, study = opened(way)
    sent = again.outcome(converse(again, through_bytes(again, others, study)))
    assert sum(asked) == direct.people == N
    assert direct.summary() == sent.summary()
    assert np.array_equal(direct.scaled, sent.scaled)
    assert "Response:      wait" in direct.summary()
    assert not direct.private


@pytest.mark.parametrize("way", WAYS)
def test_a_study_goes_on_from_any_stored_state(way: str) -> None:
    method, doors, _ = opened(way, 600 if way in ("pilot", "split") else 300)
    state, seen = method.init(), 0
    while (queries := method.query(state)) is not None:
        data = codec.to_bytes(state)
        other = RegressionMethod(method.plan, method.people, method.key, method.batches, method.private)
        back = restore(other, data)
        assert codec.to_bytes(back) == data
        assert other.query(back) == queries
        replies = [None if m is None else d.ask(queries.round, m) for m, d in zip(queries.messages, doors, strict=True)]
        before = copy.deepcopy(state)
        state = method.step(state, replies)
        assert same(before, before._replace())
        assert same(other.step(back, replies), state)
        assert codec.to_bytes(before) == data
        seen += 1
    assert seen > 15
    back = codec.from_plain(codec.to_plain(state), RegressionState)
    assert same(back, state)
    assert method.outcome(back).summary() == method.outcome(state).summary()


@pytest.mark.parametrize("way", ["dithered", "pilot", "split", "groups"])
def test_who_did_not_answer_is_asked_the_same_again(way: str) -> None:
    method, doors, study = opened(way)
    whole = method.outcome(converse(method, through_bytes(method, doors, study)))
    again, others, _ = opened(way)
    direct, calls = through_bytes(again, others, study), 0

    def unsteady(queries: Queries) -> Replies:
        nonlocal calls
        calls += 1
        replies = list(direct(queries))
        if calls % 3 == 0:
            replies[calls % len(replies)] = None
        return replies

    assert again.outcome(converse(again, unsteady)).summary() == whole.summary()


def test_the_pilot_is_the_one_of_the_stream_bit_for_bit() -> None:
    method, rows = RegressionMethod(plan_of(epsilon=4.0), [3000], bytes(16)), rows_of(3000)
    words = dice(5).words(3000)
    pilot = Pilot((0.5,), 2, method.plan.design.epsilon)
    pilot.take(rows, np.arange(3000, dtype=np.uint64), words[:, None])
    from sottovoce.client.regression.persons import Persons

    door = Door(Persons(rows, method.plan.design.channel, dice(5), epsilon=method.plan.design.epsilon), bytes(16))
    state = method.init()
    while state.guess is None:
        queries = method.query(state)
        assert queries is not None
        assert isinstance(queries.messages[0], PilotQuery)
        state = method.step(state, [door.ask(queries.round, queries.messages[0])])
    assert pilot.guess is not None
    assert state.searched == (pilot.people,)
    assert state.guess.size == pilot.guess.size
    assert np.array_equal(state.guess.start, pilot.guess.start)


def test_a_pilot_with_too_few_people_fails_and_says_so() -> None:
    method, doors, _ = open_doors(plan_of(epsilon=2.0), rows_of(100), dice(3))
    with pytest.raises(SearchFailed, match="and did not end; give density and size"):
        run(method, doors)


def test_batches_grow_with_the_people_and_end_at_a_look() -> None:
    method, doors, _ = open_doors(plan_of(**GUESSES, epsilon=8.0), rows_of(5000), dice(3))
    state, rounds = method.init(), 0
    sizes: list[int] = []
    while (queries := method.query(state)) is not None:
        (message,) = queries.messages
        assert isinstance(message, PeopleQuery)
        assert message.first == sum(sizes)
        assert message.round == queries.round == rounds + 1
        sizes.append(message.count)
        rounds += 1
        assert message.count == queries.records <= max(16, 0.03 * message.first)
        state = method.step(state, [doors[0].ask(queries.round, message)])
        assert state.dithered[0].run.people <= state.dithered[0].run.until
    assert sum(sizes) == 5000
    assert max(sizes) > 100
    assert rounds < 200


def test_one_by_one_is_every_person_a_round() -> None:
    method, doors, _ = opened("dithered", 200, ONE_BY_ONE)
    told: list[int] = []
    assert run(method, doors, told.append).people == 200
    assert told == [1] * 200


HOSTILE: dict[str, Callable[[Any], Any]] = {
    "another kind": lambda reply: Tally(reply.round, (1,)),
    "another round": lambda reply: PeopleReport(reply.round + 1, reply.letters),
    "a letter too few": lambda reply: PeopleReport(reply.round, reply.letters[:-1]),
    "a letter too many": lambda reply: PeopleReport(reply.round, (*reply.letters, 0)),
    "no letters": lambda reply: PeopleReport(reply.round, ()),
    "a large letter": lambda reply: PeopleReport(reply.round, (5000, *reply.letters[1:])),
    "a huge letter": lambda reply: PeopleReport(reply.round, (10**9, *reply.letters[1:])),
    "a letter beyond 64 bits": lambda reply: PeopleReport(reply.round, (2**70, *reply.letters[1:])),
    "a negative letter": lambda reply: PeopleReport(reply.round, (*reply.letters[:-1], -1)),
    "a fraction": lambda reply: PeopleReport(reply.round, (*reply.letters[:-1], 0.5)),  # type: ignore[arg-type]
    "a truth": lambda reply: PeopleReport(reply.round, (*reply.letters[:-1], True)),
    "a text": lambda reply: PeopleReport(reply.round, (*reply.letters[:-1], "1")),  # type: ignore[arg-type]
    "a report of one": lambda reply: PersonReport(0, reply.letters[0]),
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_a_reply_that_does_not_fit_changes_nothing(hostile: Callable[[Any], Message]) -> None:
    method, doors, _ = opened("dithered")
    state = method.init()
    for _ in range(12):
        queries = method.query(state)
        assert queries is not None
        assert queries.messages[0] is not None
        good = doors[0].ask(queries.round, queries.messages[0])
        before = codec.to_bytes(state)
        with pytest.raises(BadInput, match=f"round {queries.round}"):
            method.step(state, [hostile(good)])
        assert codec.to_bytes(state) == before
        state = method.step(state, [good])


@pytest.mark.parametrize("way", ["dithered", "groups"])
@pytest.mark.parametrize(
    "wrong", [lambda p, n: (p + 1, n), lambda p, n: (p, 10**9), lambda p, n: (p, -1), lambda p, n: (10**12, n)]
)
def test_a_report_of_another_person_or_alphabet_is_refused(
    way: str, wrong: Callable[[int, int], tuple[int, int]]
) -> None:
    method, doors, _ = opened(way, 80, ONE_BY_ONE)
    state = method.init()
    while (queries := method.query(state)) is not None:
        assert queries.messages[0] is not None
        good = doors[0].ask(queries.round, queries.messages[0])
        assert isinstance(good, PersonReport)
        with pytest.raises(BadInput, match="round"):
            method.step(state, [PersonReport(*wrong(good.person, good.letter))])
        state = method.step(state, [good])


def test_bits_are_checked_too() -> None:
    method, doors, _ = open_doors(plan_of(**GUESSES, epsilon=8.0, channel="cq:9,2"), rows_of(400), dice(3), ONE_BY_ONE)
    state, met = method.init(), 0
    while (queries := method.query(state)) is not None:
        (message,) = queries.messages
        assert message is not None
        good: Any = doors[0].ask(queries.round, message)
        if message.factors or message.pair:  # type: ignore[attr-defined]
            met += 1
            assert good.letter in (0, 1)
            with pytest.raises(BadInput, match="alphabet"):
                method.step(state, [PersonReport(good.person, 2)])
        state = method.step(state, [good])
    assert met > 5


def test_hostile_tallies_are_refused() -> None:
    method, doors, _ = opened("split")
    state = method.init()
    queries = method.query(state)
    assert queries is not None
    good: list[Any] = [door.ask(1, message) for door, message in zip(doors, queries.messages, strict=True) if message]
    counts = queries.messages[0].counts  # type: ignore[union-attr]
    for ones in ((), (0,) * (len(counts) + 1), (-1, *counts[1:]), (counts[0] + 1, *counts[1:]), (0.5, *counts[1:])):
        with pytest.raises(BadInput, match="none above what was asked"):
            method.step(state, [Tally(1, ones), good[1]])
    for replies in ([], good[:1], [*good, None], [Tally(2, good[0].ones), good[1]], [PersonReport(0, 1), good[1]]):
        with pytest.raises(BadInput):
            method.step(state, replies)
    assert same(state, method.init())


def test_nobody_answers_who_was_not_asked_or_after_the_end() -> None:
    method, doors, _ = opened("dithered", 64)
    state = method.init()
    while (queries := method.query(state)) is not None:
        assert queries.messages[0] is not None
        reply = doors[0].ask(queries.round, queries.messages[0])
        state = method.step(state, [reply])
    with pytest.raises(BadInput, match="is over"):
        method.step(state, [reply])


def test_a_state_of_another_study_is_refused() -> None:
    method, doors, _ = opened("dithered")
    other = RegressionMethod(plan_of(**WAYS["shared"]), method.people, method.key)
    mixed, (message,) = other.init(), method.query(method.init()).messages  # type: ignore[union-attr]
    assert message is not None
    reply = doors[0].ask(1, message)
    with pytest.raises(BadInput):
        method.step(mixed, [reply])
    with pytest.raises(BadInput, match="another regression"):
        method.query(opened("split")[0].init()._replace(guess=method.init().guess))


def test_doors_and_key_must_fit_the_plan() -> None:
    plan = plan_of(**WAYS["split"])
    for people, key in (([10], bytes(16)), ([10, 0], bytes(16)), ([10, 10], b"short")):
        with pytest.raises(BadInput, match="public key of 16 bytes"):
            RegressionMethod(plan, people, key)


def test_exact_scores_are_not_sent() -> None:
    method, doors, _ = open_doors(plan_of(**GUESSES, epsilon=np.inf, channel="open"), rows_of(50), dice(3))
    with pytest.raises(BadInput, match="exact scores are not letters"):
        run(method, doors)


def test_the_study_has_a_name_of_its_own() -> None:
    studies = {open_doors(plan_of(**WAYS[way]), rows_of(50), dice(seed))[2] for way in WAYS for seed in (1, 1, 2)}
    assert len(studies) == 2 * len(WAYS)
    assert all(len(study) == 16 for study in studies)
    method, doors, _ = opened("dithered")
    queries = method.query(method.init())
    assert queries is not None
    with pytest.raises(BadInput, match="another study"):
        through_bytes(method, doors, bytes(16))(queries)
    assert msgspec.msgpack.encode(queries.messages[0])

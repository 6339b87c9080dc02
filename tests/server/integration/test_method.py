"""The whole method without a record: every kind of site, sites that do not answer, searches that fail, bad replies."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sottovoce.core import codec
from sottovoce.core.errors import BadInput, SearchFailed
from sottovoce.protocol.messages import Message, Query, Reports, Tally, WalkQuery
from sottovoce.protocol.summaries import SummaryQuery, SummaryReport
from sottovoce.server.integration.method import IntegrationMethod, State
from sottovoce.server.method import Queries, converse, restore

from .answers import LAW, SIZES, Crowd, planned

METHODS = ("valid", "ivw")  # staged sites, and the paper's chains


@pytest.mark.parametrize("method", [*METHODS, "known-bound", "target"])
def test_sites_of_every_kind_are_asked_and_combined(method: str) -> None:
    plan = planned(method, bound=0.5 if method == "known-bound" else None)
    asks = IntegrationMethod(plan)
    result = asks.outcome(converse(asks, Crowd(plan)))
    assert abs(result.estimate - LAW.mean) < 0.05
    # chains without noise do not differ, and take their error to be nothing
    assert plan.settings.chains is not None or result.interval.low < LAW.mean < result.interval.high
    assert [site.kind for site in result.known] == ["private", "private", "open", "summary"][: len(result.known)]
    assert result.idle == (("north", "open", "told") if method == "target" else ())
    assert result.reports <= sum(SIZES.values())
    assert (result.private, result.seeded) == (method == "target", False)
    assert replace(result, hints=("tied",)).to_dict() == result.to_dict()


def test_open_sites_come_first_then_all_private_ones_side_by_side() -> None:
    plan = planned()
    method, crowd = IntegrationMethod(plan), Crowd(plan)
    state, asked = method.init(), []
    while (queries := method.query(state)) is not None:
        asked.append([None if message is None else type(message) for message in queries.messages])
        state = method.step(state, crowd(queries))
    assert asked[0] == [None, None, SummaryQuery, None]
    assert asked[1] == asked[2] == [Query, Query, None, None]
    assert max(site.rounds for site in method.outcome(state).known) == len(asked) - 1


@pytest.mark.parametrize("name", METHODS)
def test_the_state_survives_its_bytes_at_every_step(name: str) -> None:
    plan = planned(name)
    method, crowd = IntegrationMethod(plan), Crowd(plan)
    fresh, again = IntegrationMethod(plan), Crowd(plan)
    state, other = method.init(), fresh.init()
    steps = 0
    while (queries := method.query(state)) is not None:
        data = codec.to_bytes(other)
        assert codec.to_bytes(state) == data
        if steps % 100 == 0 or steps < 60:  # another server, without any memory
            fresh = IntegrationMethod(plan)
        other = restore(fresh, data)
        assert fresh.query(other) == queries
        state, other = method.step(state, crowd(queries)), fresh.step(other, again(queries))
        steps += 1
    assert IntegrationMethod(plan).outcome(restore(method, codec.to_bytes(state))) == method.outcome(state)


@pytest.mark.parametrize("name", METHODS)
def test_a_site_that_does_not_answer_is_asked_again_and_the_others_wait(name: str) -> None:
    plan = planned(name)
    method, crowd = IntegrationMethod(plan), Crowd(plan)
    whole = method.outcome(converse(method, Crowd(plan)))
    state, turn = method.init(), 0
    while (queries := method.query(state)) is not None:
        waiting = [k for k, message in enumerate(queries.messages) if message is not None]
        silent = waiting[turn % len(waiting)] if waiting and turn % 3 == 0 else None
        heard = queries._replace(messages=[None if k == silent else m for k, m in enumerate(queries.messages)])
        before, state = state, method.step(state, crowd(heard))
        if silent is not None:
            again = method.query(state)
            assert again is not None
            assert (again.round, again.messages[silent]) == (queries.round, queries.messages[silent])
            assert [k for k, message in enumerate(again.messages) if message is not None] == [silent]
            assert codec.to_bytes(state[0][silent]) == codec.to_bytes(before[0][silent])
        turn += 1
    assert method.outcome(state) == whole


def answered(
    method: IntegrationMethod, ready: Callable[[Queries], bool]
) -> tuple[State, Queries, list[Message | None]]:
    """Return the first state whose queries are of a kind, with honest replies."""
    crowd, state = Crowd(method.plan), method.init()
    while (queries := method.query(state)) is not None:
        replies = list(crowd(queries))
        if ready(queries):
            return state, queries, replies
        state = method.step(state, replies)
    raise AssertionError("nothing of that kind was asked")


def private_turn(queries: Queries) -> bool:
    return type(queries.messages[0]) is Query


def walking_turn(queries: Queries) -> bool:
    return isinstance(queries.messages[0], WalkQuery)


def open_turn(queries: Queries) -> bool:
    return isinstance(queries.messages[2], SummaryQuery)


SAID = SummaryReport(1, 400, 20.0, 0.15, 19.0, 19.7, 20.3, False)
NAN, INF = float("nan"), float("inf")
BAD: list[tuple[Any, int, Any, str]] = [
    (private_turn, 0, Reports(1, b"\x01"), "sent no tally of round 1"),
    (private_turn, 0, Tally(2, (1,)), "sent no tally of round 1"),
    (private_turn, 0, Tally(1, (-1,) * 9), "answer with one count of ones for each"),
    (private_turn, 2, SAID, "site 2 was not asked in round 1"),
    (private_turn, 3, Tally(1, (1,)), "site 3 was not asked in round 1"),
    (walking_turn, 0, Tally(1, (1,)), "sent no letters of round"),
    (walking_turn, 0, "letters of another round", "sent no letters of round"),
    (walking_turn, 0, "two letters", "expected 1 letters of 0 or 1"),
    (walking_turn, 0, "a letter that there is not", "expected 1 letters of 0 or 1"),
    (open_turn, 2, Tally(1, (1,)), "source 'open' sent no summary of round 1"),
    (open_turn, 2, {"round": 2}, "source 'open' sent no summary of round 1"),
    (open_turn, 2, {"n": 399}, "counts its records differently"),
    (open_turn, 2, {"estimate": NAN}, "no order statistics"),
    (open_turn, 2, {"estimate": 20.4}, "no order statistics"),
    (open_turn, 2, {"low": -INF}, "no order statistics"),
    (open_turn, 2, {"high": NAN}, "no order statistics"),
    (open_turn, 2, {"std_error": NAN}, "no order statistics"),
    (open_turn, 2, {"std_error": -1.0}, "no order statistics"),
    (open_turn, 2, {"df": 0.0}, "no order statistics"),
    (open_turn, 2, {"df": 1e9}, "no order statistics"),
    (open_turn, 2, {"std_error": 0.0}, "source 'open' has no variance"),
]


@pytest.mark.parametrize(("turn", "k", "said", "complaint"), BAD)
def test_replies_that_do_not_fit_are_refused_and_change_nothing(turn: Any, k: int, said: Any, complaint: str) -> None:
    import msgspec

    method = IntegrationMethod(planned("ivw" if turn is walking_turn else "valid"))
    state, queries, replies = answered(method, turn)
    if isinstance(said, dict):
        said = msgspec.structs.replace(SAID, **said)
    elif isinstance(said, str):
        letters = {"two letters": b"\x00\x01", "a letter that there is not": b"\x02"}.get(said, b"\x01")
        said = Reports(queries.round + (said == "letters of another round"), letters)
    before = codec.to_bytes(state)
    replies[k] = said
    with pytest.raises(BadInput, match=complaint):
        method.step(state, replies)
    with pytest.raises(BadInput, match="goes to 4 sites"):
        method.step(state, replies[:-1])
    assert codec.to_bytes(state) == before


def lying(plan: Any, site: int) -> Callable[[Queries], list[Message | None]]:
    """Answer for all sites, one of which says that nobody lies above any point, then everybody."""
    crowd = Crowd(plan)

    def gather(queries: Queries) -> list[Message | None]:
        replies, asked = list(crowd(queries)), queries.messages[site]
        if type(asked) is Query:
            lot = (0, 1)[queries.round % 2]
            replies[site] = Tally(queries.round, tuple(lot * n for n in asked.counts))
        return replies

    return gather


def test_a_source_whose_search_fails_is_left_out_and_its_cost_is_told() -> None:
    plan = planned()
    method = IntegrationMethod(plan)
    state = converse(method, lying(plan, 1))
    assert state[1][1]
    assert not any(state[1][:1] + state[1][2:])
    result = IntegrationMethod(plan).outcome(restore(method, codec.to_bytes(state)))
    assert result == method.outcome(state)
    [lost] = result.lost
    assert (lost.name, lost.private) == ("north", True)
    assert 0 < lost.reports <= SIZES["north"]
    assert [site.name for site in result.known] == ["ours", "open", "told"]
    assert any("source 'north' is left out" in text for text in result.warnings)


def test_a_target_whose_search_fails_ends_the_study() -> None:
    plan = planned()
    with pytest.raises(SearchFailed):
        converse(IntegrationMethod(plan), lying(plan, 0))


def test_nothing_is_told_before_the_end_or_after_it() -> None:
    plan = planned()
    method = IntegrationMethod(plan)
    with pytest.raises(BadInput, match=r"answer what it asks first|ask it first"):
        method.outcome(method.init())
    with pytest.raises(BadInput, match="the study is over"):
        method.step(converse(method, Crowd(plan)), [None] * 4)
    with pytest.raises(BadInput, match="not a stored"):
        restore(method, b"\x93\x01\x02\x03")


def test_the_card_names_what_sites_agree_on() -> None:
    from sottovoce.protocol.card import from_bytes, identity, to_bytes

    plan = planned()
    assert from_bytes(to_bytes(plan.card())) == plan.card()
    assert identity(plan.card()) == identity(planned().card())
    others = [planned("ivw"), planned(level=0.9), planned(bounds=(0.0, 40.0)), planned(resolution=0.5)]
    assert len({identity(other.card()) for other in (plan, *others)}) == 5
    assert identity(plan.card(nonce=b"again")) != identity(plan.card())

"""Hostile messages of data integration: queries to an open site's door, replies of every kind to the whole method."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from sottovoce.client.door import Door, SiteLimits
from sottovoce.client.integration.site import OpenSite
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.core import codec
from sottovoce.core.errors import BadInput, SearchFailed
from sottovoce.core.roster import Roster
from sottovoce.core.unit import NUMBER
from sottovoce.protocol.messages import Query, Reports, Study, Tally, WalkQuery
from sottovoce.protocol.summaries import SummaryQuery, SummaryReport
from sottovoce.protocol.wire import seal, unseal
from sottovoce.server.integration.method import IntegrationMethod, State
from sottovoce.server.integration.plan import check_settings, plan_integration
from sottovoce.server.integration.result import IntegratedResult
from sottovoce.server.method import Queries, opened
from sottovoce.sim.randomness import dice

from .mutate import mutants, read

STUDY = b"0123456789abcdef"
ROSTER = Roster(("ours", "north", "open"), (1_500, 1_800, 300), NUMBER)
BUDGETS = {"ours": 5.0, "north": 6.0, "open": math.inf}
KINDS = ("query", "walk-query", "tally", "reports", "summary-query", "summary-report", "person-query")
slow = pytest.mark.slow
Step = tuple[State, Queries, list[bytes | None]]


def attack_door(n: int, seed: int) -> int:
    """Send mutated queries to an open site; return how many it answered, each of which must have been a whole query."""
    good = [seal(STUDY, 1, SummaryQuery(1, 0.5, 0.95)), seal(STUDY, 2, SummaryQuery(2, 0.5, 0.9))]
    answered, records = 0, Records(np.linspace(0.0, 1.0, 300))
    for mutant in mutants(good, n, seed, KINDS):
        site = OpenSite(records, Study(0.5, math.inf), limits=SiteLimits(rounds=100))
        try:
            reply = Door(site, STUDY).answer(mutant.data)
        except BadInput:
            assert site.spent == 0, mutant.how
            continue
        answered += 1
        said, plain = read(mutant.data), read(reply)["body"]
        body = said["body"]
        assert (said["version"], said["study"], said["kind"]) == (1, STUDY, "summary-query"), mutant.how
        assert set(body) == {"round", "tau", "level"}, mutant.how
        assert 1 <= body["round"] == said["round"] <= 100, mutant.how
        assert body["tau"] == 0.5, mutant.how
        assert 0 < body["level"] < 1, mutant.how
        assert site.spent == site.size == plain["n"], mutant.how
        assert plain["low"] <= plain["estimate"] <= plain["high"], mutant.how
    return answered


def method_of(name: str, names: Sequence[str] = ROSTER.names) -> IntegrationMethod:
    settings = check_settings(name, 0.95, 0.5, "printed", "z", 1.96, None, 4)
    known: dict[str, Any] = {"bounds": (-9.0, 9.0), "resolution": 0.01}
    return IntegrationMethod(plan_integration(settings, names, ROSTER, {}, 0.5, BUDGETS, **known))


def path(method: IntegrationMethod) -> list[Step]:
    """Return every state of an honest run with what was asked and answered."""
    source, doors = dice(3).generator(), []
    for k, site in enumerate(method.plan.asked):
        assert site.study is not None
        kind: Any = OpenSite if site.kind == "open" else Site
        doors.append(Door(kind(Records(source.normal(size=site.size)), site.study.study_of(0), dice(k)), STUDY))
    steps, state = [], method.init()
    while (queries := method.query(state)) is not None:
        sent = [
            None if message is None else door.answer(seal(STUDY, queries.round, message))
            for door, message in zip(doors, queries.messages, strict=True)
        ]
        steps.append((state, queries, sent))
        state = method.step(state, opened(method, STUDY, queries, sent))
    return steps


def fits(asked: Any, found: Any) -> bool:
    """Tell whether a reply is one that an honest site could have given."""
    if isinstance(asked, SummaryQuery):
        ordered = isinstance(found, SummaryReport) and -math.inf < found.low <= found.estimate <= found.high < math.inf
        return ordered and found.n == 300 and found.std_error > 0 and 0 < found.df <= 151
    if isinstance(asked, WalkQuery):
        return isinstance(found, Reports) and found.letters in (b"\x00", b"\x01")
    assert isinstance(asked, Query)
    if not isinstance(found, Tally) or len(found.ones) != len(asked.counts):
        return False
    return all(0 <= one <= n for one, n in zip(found.ones, asked.counts, strict=True))


def attack_method(method: IntegrationMethod, n: int, seed: int) -> int:
    """Answer with mutated replies; return how many were accepted, each of which must be what was asked for."""
    steps = path(method)
    chosen = [steps[0], *steps[1 :: max(1, len(steps) // 16)]]
    accepted = 0
    for i, (state, queries, sent) in enumerate(chosen):
        before = codec.to_bytes(state)
        asked = [k for k, data in enumerate(sent) if data is not None]
        k, good = asked[i % len(asked)], [data for data in sent if data is not None]
        for mutant in mutants(good, n // len(chosen), seed + i, KINDS):
            replies = [mutant.data if j == k else data for j, data in enumerate(sent)]
            try:
                after = method.step(state, opened(method, STUDY, queries, replies))
            except BadInput:
                assert codec.to_bytes(state) == before, mutant.how
                continue
            except SearchFailed:  # what it said led the target's search astray
                assert k == 0, mutant.how
                after = None
            accepted += 1
            found = unseal(mutant.data, STUDY, method.replies, queries.round).message
            assert fits(queries.messages[k], found), mutant.how
            assert codec.to_bytes(state) == before
            assert after is None or codec.to_bytes(after) != before
    return accepted


def attack_result(name: str, names: Sequence[str], n: int, seed: int) -> int:
    """Let an open site lie; return how many lies were accepted, each of which must be told as any result is."""
    method = method_of(name, names)
    steps = path(method)
    state, queries, sent = steps[-1]
    last = method.step(state, opened(method, STUDY, queries, sent))
    state, queries, sent = steps[0]
    k = names.index("open")
    [good] = [data for data in sent if data is not None]
    accepted = 0
    for mutant in mutants([good], n, seed, KINDS):
        replies = [mutant.data if j == k else None for j in range(len(names))]
        try:
            lied = method.step(state, opened(method, STUDY, queries, replies))
        except BadInput:
            continue
        accepted += 1
        result = method.outcome(method.put(last, k, lied[0][k]))
        assert IntegratedResult.from_dict(result.to_dict()).summary() == result.summary(), mutant.how
        assert result.interval.low <= result.estimate <= result.interval.high, mutant.how
    return accepted


@pytest.mark.parametrize("name", ["valid", "conservative", "adaptive"])
@pytest.mark.parametrize("names", [("ours", "north", "open"), ("open", "ours", "north")])
def test_what_a_lying_site_says_is_told_as_any_other_numbers(name: str, names: tuple[str, ...]) -> None:
    assert attack_result(name, names, 1_000, 5) > 5


def test_a_door_survives() -> None:
    assert 5 < attack_door(2_000, 1) < 1_500


@pytest.mark.parametrize("name", ["valid", "ivw"])
def test_a_method_survives(name: str) -> None:
    assert 5 < attack_method(method_of(name), 2_000, 2) < 1_500


@slow
def test_a_door_survives_long() -> None:
    assert attack_door(50_000, 3) > 100


@slow
@pytest.mark.parametrize("name", ["valid", "ivw"])
def test_a_method_survives_long(name: str) -> None:
    assert attack_method(method_of(name), 50_000, 4) > 100

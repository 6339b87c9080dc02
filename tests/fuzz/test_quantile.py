"""Hostile messages of federated quantiles: queries to a site's door, tallies and letters to the methods."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from sottovoce.client.door import Door
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.core import codec
from sottovoce.core.errors import BadInput
from sottovoce.core.roster import Roster
from sottovoce.core.unit import Unit
from sottovoce.protocol.messages import Query, Reports, Study, Tally, WalkQuery
from sottovoce.protocol.wire import seal, unseal
from sottovoce.server.method import Method, Queries, opened
from sottovoce.server.quantile.method import StagedQuantile
from sottovoce.server.quantile.plan import plan_quantile
from sottovoce.server.quantile.recursion.method import RecursionMethod, RecursionState, plan_recursion
from sottovoce.server.quantile.shortfall.method import StagedShortfall
from sottovoce.server.quantile.shortfall.plan import ShortfallPlan
from sottovoce.sim.randomness import dice

from .mutate import mutants, read

STUDY = b"0123456789abcdef"
SIZES = (3_000, 2_000)
ROSTER = Roster(("north", "south"), SIZES, Unit("number"))
PLAN = plan_quantile(ROSTER, 0.5, 6.0, bounds=(-9.0, 9.0))
KINDS = ("query", "walk-query", "tally", "reports", "person-query", "order-query")
slow = pytest.mark.slow


def sites() -> list[Site]:
    source = dice(3).generator()
    return [
        Site(Records(source.normal(size=n)), PLAN.study_of(k), dice(k), PLAN.channels[k]) for k, n in enumerate(SIZES)
    ]


def attack_door(n: int, seed: int) -> int:
    """Send mutated queries to a site; return how many it answered, each of which must have been a whole query."""
    good = [
        seal(STUDY, 3, Query(3, (0.5, 1.5), (10, 4))),
        seal(STUDY, 3, WalkQuery(3, (0.25,), (7,), 0.125)),
        seal(STUDY, 4, Query(4, (-1.0,), (1,))),
        seal(STUDY, 5, Query(5, (0.25, 7.0), (3, 12), 0.0, (0.5, 0.0))),
    ]
    answered, records = 0, Records(np.arange(300.0))
    for mutant in mutants(good, n, seed, KINDS):
        site = Site(records, PLAN.study_of(0), dice(1), PLAN.channels[0])
        try:
            reply = Door(site, STUDY).answer(mutant.data)
        except BadInput:
            assert site.spent == 0, mutant.how
            continue
        answered += 1
        said, plain = read(mutant.data), read(reply)
        body = said["body"]
        assert (said["version"], said["study"], said["round"]) == (1, STUDY, body["round"]), mutant.how
        assert set(body) <= {"round", "points", "counts", "step", "periods"}, mutant.how
        assert len(body["points"]) == len(body["counts"]) <= 10_000, mutant.how
        assert np.isfinite([*body["points"], body.get("step", 0.0)]).all(), mutant.how
        assert min(body["counts"]) >= 0, mutant.how
        if periods := body.get("periods"):
            assert len(periods) == len(body["points"]), mutant.how
            assert all(0 <= period < math.inf for period in periods), mutant.how
            assert (said["kind"], body.get("step", 0.0)) == ("query", 0.0), mutant.how
        assert site.spent == sum(body["counts"]), mutant.how
        if said["kind"] == "query":
            assert all(0 <= one <= n for one, n in zip(plain["body"]["ones"], body["counts"], strict=True))
        else:
            assert len(plain["body"]["letters"]) == sum(body["counts"])
    return answered


def path(method: Method[Any, Any], doors: Sequence[Door]) -> list[tuple[Any, Queries, list[bytes | None]]]:
    """Return every state of an honest run with what was asked and answered."""
    steps, state = [], method.init()
    while (queries := method.query(state)) is not None:
        sent = [
            None if message is None else door.answer(seal(STUDY, queries.round, message))
            for door, message in zip(doors, queries.messages, strict=True)
        ]
        steps.append((state, queries, sent))
        state = method.step(state, opened(method, STUDY, queries, sent))
    return steps


def attack_method(method: Method[Any, Any], n: int, seed: int) -> int:
    """Answer with mutated replies; return how many were accepted, each of which must be what was asked for."""
    steps = path(method, [Door(site, STUDY) for site in sites()])
    chosen = steps[:: max(1, len(steps) // 12)]
    accepted = 0
    for i, (state, queries, sent) in enumerate(chosen):
        before, k = codec.to_bytes(state), next(j for j, data in enumerate(sent) if data is not None)
        good = [data for data in sent if data is not None]
        question = queries.messages[k]
        assert isinstance(question, Query)
        for mutant in mutants(good, n // len(chosen), seed + i, KINDS):
            replies = [mutant.data if j == k else data for j, data in enumerate(sent)]
            try:
                after = method.step(state, opened(method, STUDY, queries, replies))
            except BadInput:
                assert codec.to_bytes(state) == before, mutant.how
                continue
            accepted += 1
            found = unseal(mutant.data, STUDY, (Tally, Reports), queries.round).message
            if isinstance(question, WalkQuery):
                assert isinstance(found, Reports), mutant.how
                assert len(found.letters) == question.counts[0], mutant.how
                assert set(found.letters) <= {0, 1}, mutant.how
            else:
                assert isinstance(found, Tally), mutant.how
                assert all(0 <= one <= n for one, n in zip(found.ones, question.counts, strict=True)), mutant.how
            assert codec.to_bytes(state) == before
            assert codec.to_bytes(after) != before
    return accepted


def staged() -> Method[Any, Any]:
    return StagedQuantile(PLAN)


def shortfall() -> Method[Any, Any]:
    return StagedShortfall(ShortfallPlan(PLAN, True, 0.5, 0.95, True), b"coin")


def recursion() -> Method[RecursionState, Any]:
    return RecursionMethod(PLAN, plan_recursion(PLAN, "regression", "every:100", 1.0, None, "l2"), "regression")


def test_a_door_survives() -> None:
    assert 20 < attack_door(2_000, 1) < 1_500


@pytest.mark.parametrize("make", [staged, shortfall, recursion])
def test_a_method_survives(make: Any) -> None:
    assert 5 < attack_method(make(), 2_000, 2) < 1_500


@slow
def test_a_door_survives_long() -> None:
    assert attack_door(50_000, 3) > 500


@slow
@pytest.mark.parametrize("make", [staged, shortfall, recursion])
def test_a_method_survives_long(make: Any) -> None:
    assert attack_method(make(), 50_000, 4) > 100


def test_a_study_that_a_site_does_not_want() -> None:
    from sottovoce.client.door import SiteLimits
    from sottovoce.protocol.randomised_response import binary

    records = Records(np.arange(100.0))
    nan = float("nan")
    for study in (Study(nan, 1.0), Study(0.0, 1.0), Study(1.0, 1.0), Study(0.5, 1.0, -1.0), Study(0.5, 1.0, nan)):
        with pytest.raises(BadInput, match="correct the study"):
            Site(records, study)
    for epsilon in (nan, -1.0, 2.1):
        with pytest.raises(BadInput, match="more than this site allows"):
            Site(records, Study(0.5, epsilon), limits=SiteLimits(epsilon=2.0))
    with pytest.raises(BadInput, match="more than the study says"):
        Site(records, Study(0.5, 0.001), channel=binary(20.0))
    site = Site(records, Study(0.5, 1.0), limits=SiteLimits(points=3, rounds=5))
    for query in (Query(1, (), ()), Query(1, (0.0,) * 4, (0,) * 4), Query(2**60, (0.0,), (1,)), Query(6, (0.0,), (1,))):
        with pytest.raises(BadInput, match="this site answers"):
            site.tally(query)
    assert site.spent == 0

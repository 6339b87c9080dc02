"""One round through the one runner: what sites say reaches the server as it was said, once, with or without bytes."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from sottovoce.client.conformal.shares import SharingSite
from sottovoce.client.conformal.site import CalibrationSite, CoverageSite
from sottovoce.client.door import AnsweringSite, Door
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.core import codec
from sottovoce.core.errors import BadInput
from sottovoce.local.runner import run, through_bytes
from sottovoce.protocol.messages import Study
from sottovoce.protocol.selection.geometric import noisy_count
from sottovoce.server.conformal.plan import Participants, SiteFacts, plan
from sottovoce.server.conformal.pooled import CountsMethod, SumMethod, TallyMethod, plan_pooled
from sottovoce.server.conformal.report import CoverageMethod, CoveragePlan
from sottovoce.server.conformal.settings import check_settings
from sottovoce.server.conformal.votes import VotesMethod
from sottovoce.server.method import Method, Queries, converse, restore
from sottovoce.sim.randomness import dice

STUDY = b"0123456789abcdef"
SIZES = (400, 700, 20)
NAMES = ("north", "south", "small")
EDGES = tuple(np.linspace(0.05, 1.0, 20).tolist())
KINDS = (
    "open", "three", "sparse-vector", "exponential", "mixed", "local", "aggregate", "counts", "report", "private report"
)  # fmt: skip


def scores(place: int) -> Records:
    return Records((np.arange(SIZES[place]) + 0.5 + place / 7) / SIZES[place])


def study(kind: str, seed: int = 1) -> tuple[Method[Any, Any], list[Door]]:
    """Return a method and fresh sites that answer it, always with the same dice."""
    budgets = {"open": (math.inf,) * 3, "three": (math.inf,) * 3, "mixed": (6.0, math.inf, 8.0)}.get(kind, (8.0,) * 3)
    facts = tuple(SiteFacts(*fact) for fact in zip(SIZES, budgets, strict=True))
    who, own = Participants(NAMES, facts), dice(seed).split(3)
    sites: list[AnsweringSite]
    method: Method[Any, Any]
    if "report" in kind:
        noises = None if kind == "report" else (noisy_count(1.0),) * 3
        budget = math.inf if noises is None else 1.0
        method = CoverageMethod(CoveragePlan(0.9, 0.1, 0.95, (0.5, 0.25, 0.25), "given", noises), who)
        sites = [CoverageSite(scores(i), budget, own[i]) for i in range(3)]
        return method, [Door(site, STUDY) for site in sites]
    private = math.isfinite(min(budgets))
    mechanism = kind if kind in ("exponential", "local", "aggregate", "counts") else "sparse-vector"
    many = 3 if kind == "three" else 1
    settings = check_settings(0.2, "marginal", 0.1, "closest", many, False, mechanism, private)
    if kind == "local":
        method = TallyMethod(plan_pooled(facts, settings, len(EDGES)), settings, who, EDGES)
        sites = [Site(scores(i), Study(0.5, budgets[i]), own[i]) for i in range(3)]
    elif kind == "counts":
        line = EDGES[13:18:2]
        method = CountsMethod(plan_pooled(facts, settings, len(line)), settings, who, line)
        sites = [CoverageSite(scores(i), budgets[i], own[i]) for i in range(3)]
    elif kind == "aggregate":
        method = SumMethod(plan_pooled(facts, settings, len(EDGES)), settings, who, EDGES)
        sites = [SharingSite(scores(i), 3, budgets[i], own[i]) for i in range(3)]
    else:
        line = EDGES if private else ()
        method = VotesMethod(plan(facts, settings, len(line) + 1 if line else 0), who, line)
        sites = [CalibrationSite(scores(i), budgets[i], own[i]) for i in range(3)]
    return method, [Door(site, STUDY) for site in sites]


every = pytest.mark.parametrize("kind", KINDS)


@every
def test_messages_through_their_bytes_give_the_same(kind: str) -> None:
    method, doors = study(kind)
    direct = run(method, doors)
    method, doors = study(kind)
    assert method.outcome(converse(method, through_bytes(method, doors, STUDY))) == direct
    if "report" in kind:
        assert direct.worst.coverage < 0.96
    else:
        assert 0.7 <= direct.value <= 1.0  # so large a budget leaves next to no noise


@every
def test_sites_that_did_not_answer_are_asked_again_and_nobody_else_is(kind: str) -> None:
    direct = run(*study(kind))
    method, doors = study(kind)
    asked: list[list[int]] = []

    def one_at_a_time(queries: Queries) -> Sequence[Any]:
        places = [place for place, message in enumerate(queries.messages) if message is not None]
        asked.append(places)
        last = places[-1]
        return [
            door.ask(queries.round, message) if place == last and message is not None else None
            for place, (door, message) in enumerate(zip(doors, queries.messages, strict=True))
        ]

    assert method.outcome(converse(method, one_at_a_time)) == direct
    assert asked == ([[0, 1, 2], [0, 1], [0]])


@every
def test_a_state_survives_its_bytes_after_every_reply(kind: str) -> None:
    direct = run(*study(kind))
    method, doors = study(kind)
    gather = through_bytes(method, doors, STUDY)
    state = method.init()
    for place in range(3):
        state = restore(method, codec.to_bytes(state))
        queries = method.query(state)
        assert queries is not None
        replies = gather(queries)
        state = method.step(state, [reply if i == place else None for i, reply in enumerate(replies)])
    state = restore(method, codec.to_bytes(state))
    assert method.query(state) is None
    assert method.outcome(state) == direct


@every
def test_there_is_no_outcome_before_all_have_answered(kind: str) -> None:
    method, _ = study(kind)
    with pytest.raises(BadInput, match="3 of 3 sites have not answered"):
        method.outcome(method.init())


def test_a_second_round_is_refused() -> None:
    method, doors = study("open")
    first = run(method, doors)
    assert run(method, doors) == first  # a retry
    queries = method.query(method.init())
    assert queries is not None
    for door, message in zip(doors, queries.messages, strict=True):
        assert message is not None
        with pytest.raises(BadInput, match="answers round 1 alone"):
            door.ask(2, message)


def test_a_site_with_fewer_scores_than_questions_is_not_asked() -> None:
    facts = tuple(SiteFacts(size, 8.0) for size in (40_000, 2))
    settings = check_settings(0.1, "marginal", 0.1, "closest", 1, False, "local", True)
    who = Participants(("many", "two"), facts)
    method = TallyMethod(plan_pooled(facts, settings, len(EDGES)), settings, who, EDGES)
    queries = method.query(method.init())
    assert queries is not None
    assert queries.messages[1] is None
    records = [Records((np.arange(40_000) + 0.5) / 40_000), Records(np.array([0.5, 0.6]))]
    doors = [Door(Site(each, Study(0.5, 8.0), dice(i)), STUDY) for i, each in enumerate(records)]
    assert run(method, doors).value in (EDGES[17], EDGES[18])

"""Mutated messages of conformal prediction, both ways: no crash, nothing accepted wrongly, nothing spent or changed."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from tests.fuzz.mutate import Mutant, mutants

from sottovoce.client.conformal.shares import SharingSite
from sottovoce.client.conformal.site import CalibrationSite, CoverageSite
from sottovoce.client.door import Door
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.core import codec
from sottovoce.core.errors import BadInput
from sottovoce.protocol.exact import within
from sottovoce.protocol.messages import (
    CellQuery,
    CellReport,
    CoverageCount,
    CoverageQuery,
    Message,
    OrderQuery,
    OrderReport,
    Query,
    Study,
    SumQuery,
    SumShare,
    Tally,
)
from sottovoce.protocol.selection import SELECTIONS, selection
from sottovoce.protocol.selection.geometric import noisy_count, polya, ratio
from sottovoce.protocol.wire import kind_of, seal, unseal
from sottovoce.server.conformal.plan import Participants, SiteFacts, plan
from sottovoce.server.conformal.pooled import CountsMethod, SumMethod, TallyMethod, plan_pooled
from sottovoce.server.conformal.report import CoverageMethod, CoveragePlan
from sottovoce.server.conformal.settings import check_settings
from sottovoce.server.conformal.votes import VotesMethod
from sottovoce.server.method import Method, Queries, opened
from sottovoce.sim.randomness import dice

STUDY = b"0123456789abcdef"
SCORES = np.linspace(0.0, 1.0, 60)
EDGES = (0.25, 0.5, 0.75, 1.0)
BUDGET = 2.0
ALL: tuple[type[Message], ...] = (
    OrderQuery,
    OrderReport,
    CellQuery,
    CellReport,
    SumQuery,
    SumShare,
    CoverageQuery,
    CoverageCount,
    Query,
    Tally,
)
KINDS = [*(kind_of(kind) for kind in ALL), "walk-query"]
QUICK, MANY = 500, 20_000  # of each of five sites, and of each of five methods


class Asked(NamedTuple):
    """A kind of site: how to open one, what it may be asked, and whether a query keeps to its limits."""

    open: Callable[[], Any]
    queries: Sequence[Message]
    fits: Callable[[Any], bool]


def records() -> Records:
    return Records(SCORES.copy())


def edges_fit(edges: Sequence[float]) -> bool:
    return 1 <= len(edges) <= 100_000 and all(map(math.isfinite, edges)) and list(edges) == sorted(set(edges))


def orders_fit(query: OrderQuery | CellQuery) -> bool:
    if isinstance(query, CellQuery):
        return edges_fit(query.edges)
    return 1 <= len(query.orders) <= 5 and min(query.orders) >= 1


def cell_fits(query: CellQuery) -> bool:
    if query.mechanism not in SELECTIONS or not edges_fit(query.edges):
        return False
    made = selection(query.mechanism, 60, query.order, len(query.edges) + 1, query.epsilon)
    return within(made.ratio, BUDGET)


def sum_fits(query: SumQuery) -> bool:
    return query.sites == 3 and edges_fit(query.edges) and within(ratio(query.noise, query.noise), BUDGET)


def count_fits(query: CoverageQuery) -> bool:
    return query.orders == () and not math.isnan(query.threshold) and within(ratio(query.noise), BUDGET)


def tally_fits(query: Query) -> bool:
    finite = all(map(math.isfinite, (*query.points, query.step, *query.periods)))
    if query.periods and (query.step or len(query.periods) != len(query.points) or min(query.periods) < 0):
        return False
    return finite and len(query.points) == len(query.counts) and min(query.counts) >= 0 and sum(query.counts) <= 60


SITES = {
    "open": Asked(
        lambda: CalibrationSite(records(), math.inf, dice(1)),
        [OrderQuery((50,)), OrderQuery((10, 30, 55))],
        orders_fit,
    ),
    "cell": Asked(
        lambda: CalibrationSite(records(), BUDGET, dice(1)),
        [CellQuery("sparse-vector", 50, BUDGET, EDGES), CellQuery("exponential", 50, 1.0, EDGES)],
        lambda query: isinstance(query, CellQuery) and cell_fits(query),
    ),
    "sum": Asked(
        lambda: SharingSite(records(), 3, BUDGET, dice(1)),
        [SumQuery(EDGES, polya(BUDGET, 3).numerator, 3)],
        sum_fits,
    ),
    "count": Asked(
        lambda: CoverageSite(records(), BUDGET, dice(1)),
        [CoverageQuery(0.75, noisy_count(BUDGET).numerator)],
        count_fits,
    ),
    "tally": Asked(
        lambda: Site(records(), Study(0.5, BUDGET), dice(1)),
        [Query(1, EDGES, (15,) * 4), Query(1, EDGES[:2], (20, 20))],
        tally_fits,
    ),
}


def site_refuses(name: str, n: int, seed: int) -> Counter[str]:
    """Send mutated queries to fresh sites and tell how it went."""
    asked, outcomes = SITES[name], Counter[str]()
    good = [seal(STUDY, 1, query) for query in asked.queries]
    for query in asked.queries:
        assert asked.fits(query)
        assert Door(asked.open(), STUDY).answer(seal(STUDY, 1, query))
    site = asked.open()
    door = Door(site, STUDY)
    for mutant in mutants(good, n, seed, KINDS):
        try:
            said = door.answer(mutant.data)
        except BadInput as error:
            outcomes["refused"] += 1
            assert site.spent == 0, mutant.how
            in_one_sentence(error, mutant)
            continue
        outcomes["accepted"] += 1
        opened = unseal(mutant.data, STUDY, site.kinds)
        # a walk is a quantile's question that this site answers too: its records pay once all the same
        assert asked.fits(opened.message), (mutant.how, opened.message)
        assert door.answer(mutant.data) == said  # a retry
        site = asked.open()
        door = Door(site, STUDY)
    return outcomes


def in_one_sentence(error: BadInput, mutant: Mutant) -> None:
    text = str(error)
    assert text.endswith("."), (mutant.how, text)
    assert "\n" not in text
    assert len(text) < 250, (mutant.how, text[:400])


def study(name: str) -> tuple[Method[Any, Any], list[Message]]:
    """Return a method of two sites, and good replies to it."""
    budgets = (math.inf, math.inf) if name in ("open", "count") else (BUDGET, BUDGET)
    facts = tuple(SiteFacts(600, budget) for budget in budgets)
    who = Participants(("north", "south"), facts)
    if name == "count":
        return (
            CoverageMethod(CoveragePlan(1.5, 0.1, 0.95, (0.5, 0.5), "sites"), who),
            [CoverageCount(541, (1.4,)), CoverageCount(530, (1.6,))],
        )
    if name == "noisy count":
        noises = (noisy_count(BUDGET),) * 2
        return (
            CoverageMethod(CoveragePlan(1.5, 0.1, 0.95, (0.5, 0.5), "sites", noises), who),
            [CoverageCount(541), CoverageCount(602)],
        )
    mechanism = {"tally": "local", "sum": "aggregate", "counts": "counts"}.get(name, "sparse-vector")
    statistics = 3 if name == "open" else 1
    settings = check_settings(0.2, "marginal", 0.1, "closest", statistics, False, mechanism, name != "open")
    if name == "tally":
        return (
            TallyMethod(plan_pooled(facts, settings, 4), settings, who, EDGES),
            [Tally(1, (140, 70, 30, 25)), Tally(1, (150, 150, 0, 3))],
        )
    if name == "counts":
        return (
            CountsMethod(plan_pooled(facts, settings, 2), settings, who, EDGES[:2]),
            [CoverageCount(541), CoverageCount(602)],
        )
    if name == "sum":
        return (
            SumMethod(plan_pooled(facts, settings, 4), settings, who, EDGES),
            [SumShare((100, 90, 80, 2**32 - 2)), SumShare((1, 2, 3, 4))],
        )
    line = EDGES if name == "cell" else ()
    method = VotesMethod(plan(facts, settings, len(line) + 1 if line else 0), who, line)
    replies: list[Message] = [OrderReport((1.0, 1.5, 2.0)), OrderReport((1.5, 1.5, 1.6))]
    return method, replies if name == "open" else [CellReport(3), CellReport(4)]


def said_by(name: str, message: Any) -> bool:
    """Tell whether a reply can be what an honest site says: a check of its own, in other words."""
    if name == "open":
        return len(message.values) == 3 and all(map(math.isfinite, message.values))
    if name == "cell":
        return isinstance(message, CellReport) and message.cell in range(5)
    if name == "sum":
        return len(message.counts) == 4 and all(0 <= count < 2**32 for count in message.counts)
    if name == "tally":
        return message.round == 1 and len(message.ones) == 4 and all(0 <= ones <= 150 for ones in message.ones)
    if name == "count":
        return 0 <= message.covered <= 600 and len(message.values) == 1 and math.isfinite(message.values[0])
    return bool(-36 <= message.covered <= 636) and message.values == ()


REPLIES = ("open", "cell", "sum", "tally", "count", "noisy count", "counts")


def method_refuses(name: str, n: int, seed: int) -> Counter[str]:
    """Send mutated replies to a method and tell how it went."""
    method, replies = study(name)
    good = [seal(STUDY, 1, reply) for reply in replies]
    state, outcomes = method.init(), Counter[str]()
    before = codec.to_bytes(state)
    queries = method.query(state)
    assert isinstance(queries, Queries)
    method.outcome(method.step(state, opened(method, STUDY, queries, good)))
    for place, mutant in enumerate(mutants(good, n, seed, KINDS)):
        sent = [mutant.data, good[1]] if place % 2 else [good[0], mutant.data]
        try:
            after = method.step(state, opened(method, STUDY, queries, sent))
        except BadInput as error:
            outcomes["refused"] += 1
            in_one_sentence(error, mutant)
        else:
            outcomes["accepted"] += 1
            message = unseal(mutant.data, STUDY, method.replies, 1).message
            assert said_by(name, message), (mutant.how, message)
            if outcomes["accepted"] % 20 == 0:  # an outcome takes longer than a refusal
                assert method.outcome(after)
        assert codec.to_bytes(state) == before, mutant.how
    return outcomes


@pytest.mark.parametrize("name", SITES)
def test_no_mutated_query_breaks_a_site_or_spends(name: str) -> None:
    found = site_refuses(name, QUICK, seed=1)
    assert found["refused"] > 0.7 * QUICK


@pytest.mark.parametrize("name", REPLIES)
def test_no_mutated_reply_breaks_a_method_or_counts(name: str) -> None:
    found = method_refuses(name, QUICK, seed=2)
    assert found["refused"] > 0.7 * QUICK


@pytest.mark.slow
@pytest.mark.parametrize("name", SITES)
def test_a_hundred_thousand_mutated_queries(name: str) -> None:
    assert sum(site_refuses(name, MANY, seed=3).values()) == MANY


@pytest.mark.slow
@pytest.mark.parametrize("name", REPLIES)
def test_a_hundred_thousand_mutated_replies(name: str) -> None:
    assert sum(method_refuses(name, MANY, seed=4).values()) == MANY


def test_the_mutations_have_power() -> None:
    """A site that checked nothing would be caught: many mutants are whole messages that it must refuse itself."""
    query = CellQuery("sparse-vector", 50, BUDGET, EDGES)
    whole, unfit = 0, 0
    for mutant in mutants([seal(STUDY, 1, query)], 2_000, 5, KINDS):
        try:
            message = unseal(mutant.data, STUDY, [CellQuery]).message
        except BadInput:
            continue
        whole += 1
        try:
            unfit += not cell_fits(msgspec.convert(msgspec.to_builtins(message), CellQuery))
        except (BadInput, ArithmeticError):
            unfit += 1
    assert whole > 300
    assert unfit > 150

"""The one-round methods of conformal prediction, answered as exponential scores would."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sottovoce.protocol.messages import (
    CellQuery,
    CellReport,
    CoverageCount,
    CoverageQuery,
    Message,
    OrderQuery,
    OrderReport,
    Query,
    SumQuery,
    SumShare,
    Tally,
)
from sottovoce.server.conformal.plan import Participants, SiteFacts, plan
from sottovoce.server.conformal.pooled import CountsMethod, SumMethod, TallyMethod, plan_pooled
from sottovoce.server.conformal.report import CoverageMethod, CoveragePlan
from sottovoce.server.conformal.settings import ConformalSettings, check_settings
from sottovoce.server.conformal.votes import VotesMethod
from sottovoce.server.method import Queries, Replies

from .subject import Case, Subject

EDGES = tuple(np.linspace(0.5, 4.0, 8).tolist())
SIZES, BUDGETS = (4_000, 3_000, 2_000), (2.0, 3.0, 4.0)


def settings_of(mechanism: str | None) -> ConformalSettings:
    return check_settings(
        0.1, "marginal", 0.1, "closest", 1, False, mechanism or "sparse-vector", mechanism is not None
    )


def people(order: Sequence[int], private: bool) -> Participants:
    facts = tuple(SiteFacts(SIZES[k], BUDGETS[k] if private else math.inf) for k in order)
    return Participants(tuple(f"site {k}" for k in order), facts)


def scores(k: int) -> Any:
    """Return a site's scores: quantiles of an exponential distribution, a little different from site to site."""
    return -np.log1p(-(np.arange(SIZES[k]) + 0.5) / SIZES[k]) * (1 + 0.01 * k)


def answer(k: int, query: Message) -> Message:
    own = scores(k)
    if isinstance(query, OrderQuery):
        return OrderReport(tuple(float(own[rank - 1]) for rank in query.orders))
    if isinstance(query, CellQuery):
        return CellReport(int(np.searchsorted(query.edges, own[query.order - 1])))
    if isinstance(query, Query):
        return Tally(
            1, tuple(int(n * float(np.mean(own > x))) for x, n in zip(query.points, query.counts, strict=True))
        )
    if isinstance(query, SumQuery):
        cells = np.bincount(np.searchsorted(query.edges, own), minlength=len(query.edges) + 1)
        return SumShare(tuple(cells[1:].tolist()))
    assert isinstance(query, CoverageQuery)
    covered = int(np.count_nonzero(own <= query.threshold))
    return CoverageCount(covered, tuple(float(own[rank - 1]) for rank in query.orders))


def subject(make: Any, order: Sequence[int], point: Any) -> Subject:
    def reply(state: Any, queries: Queries) -> Replies:
        return [
            None if message is None else answer(k, message) for k, message in zip(order, queries.messages, strict=True)
        ]

    return Subject(make, reply, point, stride=1)


def votes(mechanism: str | None) -> Case:
    def made(order: Sequence[int]) -> Subject:
        who, line = people(order, mechanism is not None), EDGES if mechanism else ()
        planned = plan(who.facts, settings_of(mechanism), len(line) + 1 if line else 0)
        return subject(lambda: VotesMethod(planned, who, line), order, lambda result: result.value)

    return made


def pooled(kind: Any, mechanism: str) -> Case:
    def made(order: Sequence[int]) -> Subject:
        who, settings = people(order, True), settings_of(mechanism)
        line = EDGES[: len(order)] if kind is CountsMethod else EDGES
        choice = plan_pooled(who.facts, settings, len(line))
        return subject(lambda: kind(choice, settings, who, line), order, lambda result: result.value)

    return made


def coverage(order: Sequence[int]) -> Subject:
    shares = tuple(SIZES[k] / sum(SIZES) for k in order)
    planned = CoveragePlan(2.0, 0.1, 0.95, shares, "sizes", None)
    return subject(
        lambda: CoverageMethod(planned, people(order, False)), order, lambda result: result.sites[0].coverage
    )


CASES: dict[str, Case] = {
    "VotesMethod-open": votes(None),
    "VotesMethod-private": votes("sparse-vector"),
    "TallyMethod": pooled(TallyMethod, "local"),
    "SumMethod": pooled(SumMethod, "aggregate"),
    "CountsMethod": pooled(CountsMethod, "counts"),
    "CoverageMethod": coverage,
}

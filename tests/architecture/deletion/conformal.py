"""Conformal prediction from a log of messages, where no record can be: thresholds, a coverage report, their summaries.

The answers are those of sites whose scores have the distribution F(s) = 1 - exp(-s): the order statistic of rank l of n
is put at the quantile l / (n + 1), and a count at its expectation.
"""

import json
import math
from typing import Any

from sottovoce.core import codec
from sottovoce.protocol.calibration import (
    CellQuery,
    CellReport,
    CoverageCount,
    CoverageQuery,
    OrderQuery,
    OrderReport,
    SumQuery,
    SumShare,
)
from sottovoce.protocol.card import identity
from sottovoce.protocol.messages import Message, Query, Tally
from sottovoce.protocol.randomised_response import binary, rate_of
from sottovoce.protocol.wire import seal
from sottovoce.server.conformal.plan import Participants, SiteFacts, card_of, plan
from sottovoce.server.conformal.pooled import SumMethod, TallyMethod, plan_pooled
from sottovoce.server.conformal.report_method import CoverageMethod, CoveragePlan
from sottovoce.server.conformal.settings import check_settings
from sottovoce.server.conformal.votes import VotesMethod
from sottovoce.server.method import Method, opened, restore
from sottovoce.server.stored import StoredResult, from_dict

SIZES = (3_000, 5_000, 4_000)
EDGES = tuple(0.1 + 0.1 * cell for cell in range(40))
TRUTH = math.log(10.0)  # the 0.9 quantile


def above(score: float) -> float:
    """Return the probability of a larger score."""
    return math.exp(-score)


def quantile(level: float) -> float:
    """Return the score of a level."""
    return -math.log(1 - level)


def answer(query: Message, size: int, epsilon: float) -> Message:
    """Return what a site of some size would say, next to no noise left of it."""
    if isinstance(query, OrderQuery):
        return OrderReport(tuple(quantile(order / (size + 1)) for order in query.orders))
    if isinstance(query, CellQuery):
        wanted = quantile(min(query.order, size) / (size + 1))
        return CellReport(sum(edge < wanted for edge in query.edges))
    if isinstance(query, SumQuery):
        tails = [round(size * above(edge)) for edge in query.edges] + [0]
        return SumShare(tuple(tails[i] - tails[i + 1] for i in range(len(query.edges))))
    if isinstance(query, CoverageQuery):
        covered = round(size * (1 - above(query.threshold)))
        return CoverageCount(covered, tuple(quantile((order - 0.5) / size) for order in query.orders))
    assert isinstance(query, Query)
    rate = rate_of(binary(epsilon))
    chances = [(1 - rate) / 2 + rate * above(edge) for edge in query.points]
    return Tally(query.round, tuple(round(n * chance) for n, chance in zip(query.counts, chances, strict=True)))


def from_log(method: Method[Any, Any], study: bytes, facts: tuple[SiteFacts, ...]) -> Any:
    """Fold a log of messages, one site at a time, each through its bytes, as the state too."""
    state = method.init()
    for place, fact in enumerate(facts):
        queries = method.query(state)
        assert queries is not None
        message = queries.messages[place]
        assert message is not None
        log: list[bytes | None] = [None] * len(facts)
        log[place] = seal(study, queries.round, answer(message, *fact))
        state = restore(method, codec.to_bytes(method.step(state, opened(method, study, queries, log))))
    assert method.query(state) is None
    return method.outcome(state)


def stored(result: StoredResult) -> Any:
    """Read a result back from its JSON."""
    again = from_dict(json.loads(json.dumps(result.to_dict(), allow_nan=False)))
    assert again == result
    assert again.summary() == result.summary()
    return again


def check(mechanism: str | None) -> None:
    """Make a threshold and its report from logs of messages."""
    facts = tuple(SiteFacts(size, math.inf if mechanism is None else 4.0) for size in SIZES)
    who = Participants(("north", "south", "east"), facts)
    private = mechanism is not None
    settings = check_settings(0.1, "marginal", 0.1, "closest", 1, False, mechanism or "sparse-vector", private)
    line = EDGES if private else ()
    study = identity(card_of(who, settings, line))
    method: Method[Any, Any]
    if settings.pooled:
        kind = TallyMethod if mechanism == "local" else SumMethod
        method = kind(plan_pooled(facts, settings, len(line)), settings, who, line)
    else:
        method = VotesMethod(plan(facts, settings, len(line) + 1 if line else 0), who, line)
    threshold = stored(from_log(method, study, facts))
    assert abs(threshold.value - TRUTH) < (0.5 if mechanism == "local" else 0.25), (mechanism, threshold.value)
    assert threshold.coverage >= 0.9
    assert "Conformal threshold, alpha = 0.1" in threshold.summary()
    assert threshold.reporter is None  # a report on scores is made where scores are

    asked = CoveragePlan(threshold.value, 0.1, 0.95, (1 / 3,) * 3, "sites", None, threshold.coverage, private)
    report = stored(from_log(CoverageMethod(asked, who), identity(asked.card(who)), facts))
    assert abs(report.mixture.estimate - (1 - above(threshold.value))) < 1e-3
    assert "Coverage by site, target 0.9" in report.summary()


if __name__ == "__main__":
    for name in (None, "sparse-vector", "exponential", "local", "aggregate"):
        check(name)

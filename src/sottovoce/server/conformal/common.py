"""A threshold for everybody from what sites sent for their own: the same messages, another rank, at no further cost.

Each site was asked for the order statistic, or the cell, that makes a threshold of its own. A rank of all of these is a
quantile of quantiles as well, whose coverage has a known distribution if all scores are of one (`coverage.choose`): a
threshold for sites that are too small for their own, and for sites that were not there.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sottovoce.server.conformal.base import Threshold
from sottovoce.server.conformal.coverage.choose import Choice, rank_of
from sottovoce.server.conformal.plan import ConformalPlan, aim_of, cells_of_failure, kind_of, useless
from sottovoce.server.conformal.result import ConformalThreshold
from sottovoce.server.conformal.settings import ConformalSettings
from sottovoce.server.conformal.votes import weighted_rank


class CommonPlan(NamedTuple):
    """What is promised of a rank of all sites' own values, before they are known."""

    plan: ConformalPlan
    edges: tuple[float, ...]


def plan_common(own: Sequence[Threshold], settings: ConformalSettings) -> CommonPlan | None:
    """Return votes and rank over thresholds of single sites; None where they are of another kind, or promise nothing.

    ``own`` may be what is promised of them, before any site has answered; their sites are different ones.
    """
    single = [each for each in own if isinstance(each, ConformalThreshold) and len(each.names) == 1]
    if len(single) < max(2, len(own)) or any(len(each.plan.orders[0]) > 1 or each.settings.exact for each in single):
        return None
    asked = {each.facts[0]: each.plan.orders[0] for each in single}
    facts = tuple(each.facts[0] for each in single)
    private = [each for each in single if each.settings.mechanism is not None]  # the others' answers never fail
    mechanisms = {each.settings.mechanism for each in private}
    if len(mechanisms) > 1 or "paper" in mechanisms:
        return None
    agreed = replace(settings, mechanism=mechanisms.pop() if private else None, rule="closest")
    cells = {cells_of_failure(agreed, each.plan.cells) for each in private} or {0}
    if len(cells) > 1:
        return None
    kinds = tuple(kind_of(fact, agreed, *cells) for fact in sorted(asked))
    number = [facts.count(fact) for fact in sorted(asked)]
    orders = tuple(asked[fact] for fact in sorted(asked))
    found: Choice | None = rank_of(kinds, number, orders, aim_of(agreed))
    if found is None or useless(kinds, number, found, agreed):
        return None
    edges = tuple(sorted({edge for each in single for edge in each.edges}))
    return CommonPlan(ConformalPlan(facts, agreed, len(edges) + 1 if edges else 0, found), edges)


def common_of(made: CommonPlan, own: Sequence[ConformalThreshold]) -> ConformalThreshold:
    """Return the common threshold, from the values that sites sent for their own."""
    values = np.array([each.value for each in own])
    private = made.plan.settings.mechanism is not None
    spent = tuple(math.inf if each.spent is None else each.spent[0] for each in own) if private else None
    return ConformalThreshold(
        value=weighted_rank(values, np.array(made.plan.votes), made.plan.choice.rank),
        settings=made.plan.settings,
        names=tuple(each.names[0] for each in own),
        facts=made.plan.facts,
        spent=spent,
        edges=made.edges,
        seeded=any(each.seeded for each in own),
        per_person=any(each.per_person for each in own),
        dropped=sum(each.dropped for each in own),
        column=own[0].column,
        plan=made.plan,
        taken=made.plan.choice.rank,
        chance=1.0,
        unbounded=tuple(each.names[0] for each in own if each.value == np.inf),
    )

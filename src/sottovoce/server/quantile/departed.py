"""A site that is gone for good: the study goes on over the others, with what they have not been asked, as another one.

Its estimand is another one too, so it begins anew: shares are divided between the sites that stay, feasibility is
checked again, and what was heard before is not used. It stays the same study to the sites: the same card, order of
records and ledger, and rounds that count on, so that no record can answer twice.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sottovoce.core.arrays import Ints
from sottovoce.core.checks import is_one_of, unknown
from sottovoce.core.errors import BadInput
from sottovoce.server.quantile.asking import ABSENT, SiteProfile
from sottovoce.server.quantile.conversation import Conversation, Log
from sottovoce.server.quantile.feasibility import CERTIFIED, PAIRS, check, reach
from sottovoce.server.quantile.left_out import overall
from sottovoce.server.quantile.plan import Departure, QuantilePlan, barely, listed


def asked_so_far(talk: Conversation[Any], log: Log) -> tuple[int, Ints]:
    """Return the open round, and how many records of each site were asked up to it, or may have been.

    Who has not answered the open round, and is not absent from it, may have had the question.
    """
    queries = talk.query(log)
    if queries is None:
        raise BadInput("the study is over, and nobody can leave it any more; take its outcome.")
    counts, open_ = talk.open_counts(log), log.open or ((),) * len(queries.messages)
    here = np.array([not (said and said[0] == ABSENT) for said in open_])
    return queries.round, np.asarray(log.spent + np.where(here, counts, 0), dtype=np.int64)


def plan_rest(
    plan: QuantilePlan,
    asked: Ints,
    round: int,
    gone: Sequence[str],
    *,
    certified: bool = False,
    confidence: float = 0.95,
    thinned: float = 1.0,
) -> QuantilePlan:
    """Plan a study anew without some sites, over the records of the others that were not asked, or refuse.

    ``asked`` is how many records of each site of the plan were asked so far, up to a ``round``.
    """
    for name in gone:
        if not is_one_of(name, plan.names):
            raise unknown("site", name, plan.names)
    stay = np.array([name not in gone for name in plan.names])
    if not gone or not stay.any():
        raise BadInput("a study goes on without some of its sites and over the others; name those that are gone.")
    left = (plan.crowd.sizes - asked)[stay]
    if left.min() < 1:
        empty = plan.names[int(np.flatnonzero(stay)[int(np.argmin(left))])]
        raise BadInput(f"site {empty!r} has no records left that were not asked; name it among those that are gone.")
    shares = plan.crowd.shares[stay] / plan.crowd.shares[stay].sum()
    crowd, taus = SiteProfile(shares, plan.crowd.rates[stay], left), plan.taus[stay]
    tau, roster, effective = overall(shares, taus), plan.roster.only(stay.tolist()), crowd.thinned(thinned)
    measured = check(effective, tau, roster.names, CERTIFIED)
    departed = (*plan.departed, *(Departure(name, round) for name in plan.names if name in gone))
    kept = [text for text in plan.warnings if "is barely supported" not in text and "left the study" not in text]
    rest = replace(
        plan,
        roster=roster,
        tau=tau,
        taus=taus,
        budgets=tuple(np.array(plan.budgets)[stay].tolist()),
        flips=tuple(flips for flips, stays in zip(plan.flips, stay, strict=True) if stays),
        crowd=crowd,
        support=measured,
        departed=departed,
    )
    kept.append(
        f"{rest.departures}: the answer is over {listed(rest.names) if len(rest.names) <= 4 else rest.sites}, from the "
        f"{int(left.sum()):,} records not asked before"
    )
    if measured.ratio > CERTIFIED.at(tau).warn:
        certified |= plan.atoms or measured.ratio > PAIRS.at(tau).refuse
        ends = reach(effective, tau, confidence, plan.bounds is not None) if certified else None
        kept.append(barely(effective, tau, measured, CERTIFIED, ends))
    return replace(rest, warnings=tuple(kept))

"""The methods of federated quantiles."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special

from sottovoce.core.roster import Roster
from sottovoce.core.unit import Unit
from sottovoce.protocol.messages import Message, Query, Reports, Tally, WalkQuery
from sottovoce.protocol.randomised_response import binary, epsilon_of_rate
from sottovoce.server.method import Queries, Replies
from sottovoce.server.quantile.conversation import Conversation
from sottovoce.server.quantile.difference_method import DifferenceQuantile
from sottovoce.server.quantile.feasibility import PAIRS
from sottovoce.server.quantile.groups.method import StagedGroups
from sottovoce.server.quantile.groups.plan import plan_groups
from sottovoce.server.quantile.levels import StagedQuantiles
from sottovoce.server.quantile.method import StagedQuantile
from sottovoce.server.quantile.pilot import find_initialisation
from sottovoce.server.quantile.plan import QuantilePlan, plan_quantile
from sottovoce.server.quantile.recursion.method import RecursionMethod, WalkMethod, plan_recursion
from sottovoce.server.quantile.recursion.schedule import decay, elapsed
from sottovoce.server.quantile.recursion.walk import WalkStudy
from sottovoce.server.quantile.sequence import SequenceQuantile
from sottovoce.server.quantile.shortfall.method import StagedShortfall
from sottovoce.server.quantile.shortfall.plan import ShortfallPlan
from sottovoce.sim.randomness import dice

from .subject import Case, Subject

SHARES, RATES, PLACES = (0.2, 0.3, 0.5), (0.3, 0.5, 0.9), (0.0, 0.4, -0.2)
NAMES = ("north", "south", "west")


def plan_of(order: Sequence[int], tau: float, records: int) -> QuantilePlan:
    names = tuple(NAMES[k] for k in order)
    budgets = {NAMES[k]: epsilon_of_rate(RATES[k]) for k in order}
    whole = sum(SHARES[k] for k in order)
    shares = {NAMES[k]: SHARES[k] / whole for k in order}
    roster = Roster(names, (records,) * len(order), Unit("number"))
    return plan_quantile(roster, tau, budgets, shares=shares, bounds=(-20.0, 20.0), limits=PAIRS)


def answer(order: Sequence[int], queries: Queries) -> Replies:
    """Answer as normal records would: sums half of what chance allows off, letters by seeded coins."""
    replies: list[Message | None] = []
    for k, message in zip(order, queries.messages, strict=True):
        if message is None:
            replies.append(None)
            continue
        assert isinstance(message, Query)
        counts, rate = np.array(message.counts), RATES[k]
        above = special.ndtr(PLACES[k] - np.array(message.points))
        if message.periods:  # smooth records lie evenly on both halves of a period
            above = np.where(np.array(message.periods) > 0, 0.5, above)
        if isinstance(message, WalkQuery):
            words = dice(queries.round).split(3)[k].words(int(counts[0]))
            chance = rate * float(above[0]) + (1 - rate) / 2
            replies.append(Reports(message.round, bytes((words < np.uint64(chance * 2**64)).astype(np.uint8))))
        else:
            noise = 0.25 * np.sqrt(counts) * math.sin(queries.round - 1)
            ones = np.rint(counts * ((1 - rate) / 2 + rate * above) + noise).astype(np.int64)
            replies.append(Tally(message.round, tuple(np.clip(ones, 0, counts).tolist())))
    return replies


def replying(order: Sequence[int]) -> Any:
    return lambda state, queries: answer(order, queries)


def staged(order: Sequence[int]) -> Subject:
    plan = plan_of(order, 0.7, 20_000)
    # sites round the same fraction each its own way, so a turn moves single records between points
    return Subject(lambda: StagedQuantile(plan), replying(order), lambda result: result.estimate, 0.01)


def scarce(order: Sequence[int]) -> Subject:
    plan = plan_of(order, 0.7, 1_000)
    # a phase question takes some thirty records a point, so that rounding moves the estimate within its error, .085
    return Subject(lambda: StagedQuantile(plan), replying(order), lambda result: result.estimate, 0.15)


def certified(order: Sequence[int]) -> Subject:
    plan = plan_of(order, 0.7, 20_000)
    # another order draws other lots: the estimate moves within its error, .01 here
    return Subject(
        lambda: StagedQuantile(plan, coin=b"coin", certified=True), replying(order), lambda result: result.estimate, 0.1
    )


def levels(order: Sequence[int]) -> Subject:
    plans = [plan_of(order, tau, 40_000) for tau in (0.3, 0.6)]
    return Subject(
        lambda: StagedQuantiles(plans, [0.5, 0.5]), replying(order), lambda result: result.estimates[1], 0.02
    )


def shortfall(upper: bool, certified: bool) -> Case:
    def made(order: Sequence[int]) -> Subject:
        plan = ShortfallPlan(plan_of(order, 0.7, 40_000), upper, 0.3, 0.95, certified)
        # another order draws other lots: both numbers move within their errors
        return Subject(
            lambda: StagedShortfall(plan, b"coin"), replying(order), lambda result: result.estimate + 10.0, 0.05, 5
        )

    return made


def difference(order: Sequence[int]) -> Subject:
    groups = [k for k in order if k < 2], [k for k in order if k == 2]
    plans = [plan_of(group, 0.7, 20_000) for group in groups]
    return Subject(
        lambda: DifferenceQuantile(*map(StagedQuantile, plans)),
        replying([*groups[0], *groups[1]]),
        lambda result: result.estimate,
        0.05,
    )


def groups(certified: bool) -> Case:
    def made(order: Sequence[int]) -> Subject:
        names = tuple(NAMES[k] for k in order)
        budgets = {NAMES[k]: epsilon_of_rate(RATES[k]) for k in order}
        roster = Roster(names, (20_000,) * len(order), Unit("number"))
        plan = plan_groups(roster, 0.7, budgets, bounds=(-20.0, 20.0), method="certified" if certified else "staged")
        # rounding the same fraction at other sites moves single records, and other lots the certified estimate
        return Subject(
            lambda: StagedGroups(plan, b"coin"),
            replying(order),
            lambda result: 10.0 + sum(result.estimates.values()),
            0.02,
        )

    return made


def sequence(order: Sequence[int]) -> Subject:
    plan = plan_of(order, 0.7, 4_000)
    # the lottery draws by the order of the sites, so that a turn moves many records between them
    return Subject(lambda: SequenceQuantile(plan), replying(order), lambda result: result.estimate, 0.1)


def search(order: Sequence[int]) -> Subject:
    plan = plan_of(order, 0.7, 20_000)
    return Subject(
        lambda: Conversation(lambda: find_initialisation(plan.crowd, plan.tau, plan.bounds)),
        replying(order),
        lambda found: found.point,
        0.01,
    )


def walking(order: Sequence[int]) -> Subject:
    channels = tuple(binary(epsilon_of_rate(RATES[k])) for k in order)
    shares, sizes = np.array([SHARES[k] for k in order]), np.full(3, 80)
    study = WalkStudy(np.full(3, 0.3), shares, channels, sizes, elapsed("every:4", 80), 0.2, decay(RATES))
    return Subject(lambda: WalkMethod(study), replying(order), lambda state: float(state.points[0]))


def recursion(method: str, norm: str = "l2") -> Case:
    def made(order: Sequence[int]) -> Subject:
        plan = plan_of(order, 0.7, 4_000)
        how = plan_recursion(plan, method, "every:80", 1.0, None, norm)
        return Subject(
            lambda: RecursionMethod(plan, how, method), replying(order), lambda result: result.estimate, 0.05, 9
        )

    return made


CASES: dict[str, Case] = {
    "StagedQuantile": staged,
    "StagedQuantile-pairs": scarce,
    "StagedQuantile-certified": certified,
    "StagedQuantiles": levels,
    "DifferenceQuantile": difference,
    "StagedGroups": groups(certified=False),
    "StagedGroups-certified": groups(certified=True),
    "SequenceQuantile": sequence,
    "Conversation": search,
    "WalkMethod": walking,
    "RecursionMethod-regression": recursion("regression"),
    "StagedShortfall": shortfall(upper=True, certified=True),
    "StagedShortfall-lower": shortfall(upper=False, certified=False),
    "RecursionMethod-sup": recursion("self-normalised", "sup"),
}

"""Groups that help each other: estimates moved towards what the others let one expect, with intervals that say how far.

``each``: every group keeps its own level, whatever the groups are (`inference.quantile.assisted`). What a group may
expect comes from the others' answers and from public numbers alone: their mean, how far they lie apart, and its own
error as sizes, budgets and the others' densities predict it. ``average``: the level holds on average over the groups
(`inference.quantile.on_average`), and intervals get shorter; fewer than ten groups help each other as with "each".

A certified group is not shrunk: both sides of its interval have the whole error already. Neither is one that its last
answers contradicted.
"""

import math
from statistics import median
from typing import NamedTuple

from sottovoce.inference.common.between import Between, between
from sottovoce.inference.quantile import assisted, on_average
from sottovoce.server.description import Interval
from sottovoce.server.quantile.expected import error_of
from sottovoce.server.quantile.groups.ends import GroupEnds
from sottovoce.server.quantile.result import QuantileResult

MOST_MOVED = 1.0  # errors that an estimate is moved at most (Efron and Morris 1972): one group may be the odd one
FEWEST = 4  # groups: of fewer nobody can say how far they lie apart


class ShrunkGroup(NamedTuple):
    """A group's estimate moved towards the others, with its interval; ``own`` is what its own answers count."""

    estimate: float
    low: float
    high: float
    own: float


def spread_of(ends: GroupEnds) -> Between | None:
    """Return mean and variance of the groups' quantiles; None where too few groups can tell."""
    known = [found for at in range(len(ends.results)) if (found := ends.near_normal(at)) is not None]
    if len(known) < FEWEST:
        return None
    return between([each.estimate for each in known], [each.std_error for each in known])


def helped(ends: GroupEnds, how: str) -> str:
    """Return how groups do help each other: as was asked for, or not on average, or not at all, where they are few."""
    known = sum(ends.near_normal(at) is not None for at in range(len(ends.results)))
    if known < FEWEST or not how:
        return ""
    return "each" if known < on_average.FEWEST else how


def shrunk(ends: GroupEnds, how: str, level: float) -> tuple[ShrunkGroup | None, ...]:
    """Move every group that can be moved; ``level`` is that of each interval."""
    results = ends.results
    known = {at: found for at in range(len(results)) if (found := ends.near_normal(at)) is not None}
    how = helped(ends, how)
    moved: dict[int, ShrunkGroup] = {}
    if how == "average":
        estimates, errors = zip(*((each.estimate, each.std_error) for each in known.values()), strict=True)
        told = on_average.moved(estimates, errors, level)
        moved = {at: _rounded(results[at], *each) for at, each in zip(known, told, strict=True)}
    elif how == "each":
        scales = {at: found.std_error / _public_error(results[at]) for at, found in known.items()}
        for at, found in known.items():
            others = [other for other in known if other != at]
            rest = between([known[i].estimate for i in others], [known[i].std_error for i in others])
            expected = assisted.Expected(
                rest.mean,
                math.sqrt(rest.variance + rest.error**2),
                median(scales[i] for i in others) * _public_error(results[at]),
            )
            solution = results[at].solution
            reach = assisted.interval(found.estimate, solution.interval, solution.p_value, expected, level)
            own = expected.spread**2 / (expected.spread**2 + found.variance)
            move = (1 - own) * (rest.mean - found.estimate)
            limited = math.copysign(min(abs(move), MOST_MOVED * found.std_error), move)
            centre = min(max(found.estimate + limited, reach[0]), reach[1])
            moved[at] = _rounded(results[at], centre, *reach, own)
    return tuple(moved.get(at) for at in range(len(results)))


def _rounded(result: QuantileResult, estimate: float, low: float, high: float, own: float) -> ShrunkGroup:
    """Round to the public resolution, as a group's own numbers are."""
    ends = Interval(result.plan.rounded(low, -1), result.plan.rounded(high, 1))
    return ShrunkGroup(min(max(result.plan.rounded(estimate), ends.low), ends.high), *ends, own)


def _public_error(result: QuantileResult) -> float:
    """Return the error of the distribution function that public numbers predict."""
    return error_of(result.plan.crowd, result.plan.tau)

"""Several levels at once from one report a person: a public split of the records, joint coverage, no crossing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sottovoce.api.asking import spend
from sottovoce.api.quantile.planning import (
    METHODS,
    Prepared,
    Progress,
    coin_of,
    prepare,
    remember,
    run_sites,
)
from sottovoce.core.calling import public, say_before
from sottovoce.core.checks import check_callers, confidence, is_one_of, unknown
from sottovoce.core.random_source import RandomSource
from sottovoce.server.explanation import Explanation
from sottovoce.server.quantile.expected import ROUNDS, expected_width, explain_quantile
from sottovoce.server.quantile.feasibility import CERTIFIED
from sottovoce.server.quantile.left_out import without
from sottovoce.server.quantile.levels import (
    QuantilesResult,
    StagedQuantiles,
    check_levels,
    check_sizes,
    fewest_records,
    split_of,
)
from sottovoce.server.quantile.plan import QuantilePlan, plan_quantile


@public
def federated_quantiles(
    sites: Any,
    taus: Sequence[float],
    epsilon: Any,
    *,
    level: float = 0.95,
    method: str = "staged",
    split: Sequence[float] | None = None,
    shares: Any = "pooled",
    bounds: Any = None,
    scale: Any = None,
    resolution: Any = None,
    kind: str | None = None,
    randomness: RandomSource | None = None,
    missing: str = "refuse",
    progress: Progress | None = None,
) -> QuantilesResult:
    """Estimate several quantiles at once; each record answers once, for one level drawn at random.

    Parameters
    ----------
    sites, epsilon, shares, bounds, scale, resolution, kind, randomness, missing, progress
        As for `federated_quantile`.
    taus
        The levels.
    level
        The confidence with which all intervals hold together.
    method
        "staged" (default) or "certified", as for `federated_quantile`.
    split
        The public parts of the records that answer for each level; without it each gets what it needs to be answered at
        all, which is more for extreme levels, and an equal part of the rest: with ample records, nearly equal parts.

    Examples
    --------
    >>> import sottovoce as sv
    >>> waits = sv.sim.dice(1).generator().exponential(30.0, size=(2, 60_000))
    >>> r = sv.federated_quantiles([waits[0], waits[1]], [0.25, 0.5, 0.75], 2.0, randomness=sv.sim.dice(2))
    >>> [bool(low < truth < high) for (low, high), truth in zip(r.intervals, (8.63, 20.79, 41.59))]
    [True, True, True]
    """
    study = plan_levels(
        sites,
        taus,
        epsilon,
        level=level,
        method=method,
        split=split,
        shares=shares,
        bounds=bounds,
        scale=scale,
        resolution=resolution,
        kind=kind,
        missing=missing,
    )
    say_before(*study.warnings)
    return run_levels(study, randomness, progress)


@dataclass(frozen=True, eq=False)
class PlannedLevels:
    """A study of several levels whose whole input is checked, and of which nothing is spent yet."""

    whole: Prepared
    plans: list[QuantilePlan]
    parts: list[float]
    level: float
    certified: bool

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what is worth knowing before any record answers."""
        return tuple(dict.fromkeys([*self.whole.plan.hints, *(text for plan in self.plans for text in plan.warnings)]))

    def explain(self, seeded: bool = False) -> Explanation:
        """Return what would be asked, what is protected, and how wide the intervals will be; nobody is asked."""
        method, each = "certified" if self.certified else "staged", 1 - (1 - self.level) / len(self.plans)
        widths = [
            expected_width(plan, method, each, part, of=f"{plan.tau:g}")
            for plan, part in zip(self.plans, self.parts, strict=True)
        ]
        taus = ", ".join(f"{plan.tau:g}" for plan in self.plans)
        what = f"the {taus} quantiles of the {self.plans[0].roster.unit.plural}, each record for one of them"
        found = explain_quantile(
            self.plans[0],
            method,
            self.level,
            widths,
            rounds=ROUNDS[method],
            what=what,
            warnings=list(dict.fromkeys(text for plan in self.plans for text in plan.warnings)),
            seeded=seeded,
        )
        values = {**found.values, "tau": [plan.tau for plan in self.plans], "split": list(self.parts)}
        return replace(found, values=values)


def plan_levels(
    sites: Any,
    taus: Sequence[float],
    epsilon: Any,
    *,
    level: float = 0.95,
    method: str = "staged",
    split: Sequence[float] | None = None,
    missing: str = "refuse",
    **known: Any,
) -> PlannedLevels:
    """Check all input of `federated_quantiles` without asking any record."""
    levels = check_levels(taus)
    confidence(level)
    if not is_one_of(method, METHODS[:2]):
        raise unknown("for several levels method", method, METHODS[:2])
    each = 1 - (1 - level) / len(levels)
    public = {**known, "limits": CERTIFIED, "confidence": each, "certified": method == "certified"}
    whole = prepare(sites, 0.5, epsilon, missing=missing, **public)
    gone = whole.plan.left_out
    while True:
        parts = split_of(split, levels, whole.plan.crowd)
        own = {**public, "shares": _own_shares(whole.plan), "fewest": fewest_records(parts)}
        budgets, roster = dict(zip(whole.plan.names, whole.plan.budgets, strict=True)), whole.table.roster
        plans = [
            plan_quantile(roster, tau, budgets, thinned=part, **own) for tau, part in zip(levels, parts, strict=True)
        ]
        small = {name for plan in plans for name in plan.left_out}
        if not small:
            break
        left = [name for name in whole.plan.names if name not in small]
        again = {**public, "shares": _own_shares(whole.plan, left)}
        gone += tuple(name for name in whole.plan.names if name in small)
        whole = prepare(whole.table.only(left), 0.5, {name: budgets[name] for name in left}, **again)
    check_sizes(whole.plan, parts)
    said = (without(gone, len(whole.plan.names)),) if gone else ()
    plans = [replace(plan, hints=whole.plan.hints, left_out=gone) for plan in plans]
    plans[0] = replace(plans[0], warnings=(*said, *plans[0].warnings))
    return PlannedLevels(whole, plans, parts, level, method == "certified" or whole.plan.kind == "amounts")


def _own_shares(plan: QuantilePlan, names: Sequence[str] | None = None) -> Any:
    """Return the shares of a plan, or of some of its sites, as they can be given again."""
    if plan.shares_name != "custom":
        return plan.shares_name
    found = dict(zip(plan.names, plan.crowd.shares.tolist(), strict=True))
    kept = {name: found[name] for name in (plan.names if names is None else names)}
    return {name: share / sum(kept.values()) for name, share in kept.items()}


def run_levels(
    study: PlannedLevels, randomness: RandomSource | None = None, progress: Progress | None = None
) -> QuantilesResult:
    """Run a planned study of several levels: from here on records answer."""
    check_callers(randomness, progress)
    whole = study.whole
    in_all = spend(whole.table, whole.plan.budgets, randomness)
    talk = StagedQuantiles(study.plans, study.parts, study.level, coin_of(whole.plan, randomness), study.certified)
    found, private = run_sites(whole, talk, "levels", randomness, progress)
    results = tuple(remember(replace(result, private=private, in_all=in_all), whole.table) for result in found.results)
    return replace(found, results=results, in_all=in_all)

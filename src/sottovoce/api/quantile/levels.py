"""Several levels at once from one report a person: a public split of the records, joint coverage, no crossing."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sottovoce.api.asking import spend
from sottovoce.api.quantile.planning import Prepared, Progress, coin_of, look_at, remember, run_sites
from sottovoce.client.reading.divided import read_table_of
from sottovoce.client.reading.table import SiteTable
from sottovoce.core.calling import public, say_before
from sottovoce.core.checks import check_callers
from sottovoce.core.random_source import RandomSource
from sottovoce.server.explanation import Explanation
from sottovoce.server.quantile import levels_plan as server_plan
from sottovoce.server.quantile.expected import ROUNDS, expected_width, explain_quantile
from sottovoce.server.quantile.levels import QuantilesResult, StagedQuantiles
from sottovoce.server.quantile.levels_plan import LevelsPlan


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
    censored: Any = None,
    progress: Progress | None = None,
) -> QuantilesResult:
    """Estimate several quantiles at once; each record answers once, for one level drawn at random.

    Parameters
    ----------
    sites, epsilon, shares, bounds, scale, resolution, kind, randomness, missing, censored, progress
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
        censored=censored,
    )
    say_before(*study.warnings)
    return run_levels(study, randomness, progress)


@dataclass(frozen=True, eq=False)
class PlannedLevels:
    """A study of several levels whose whole input is checked, and of which nothing is spent yet."""

    plan: LevelsPlan
    table: SiteTable = field(repr=False)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what is worth knowing before any record answers."""
        return self.plan.warnings

    def explain(self, seeded: bool = False) -> Explanation:
        """Return what would be asked, what is protected, and how wide the intervals will be; nobody is asked."""
        plans, level = self.plan.plans, self.plan.level
        method, each = "certified" if self.plan.certified else "staged", 1 - (1 - level) / len(plans)
        widths = [
            expected_width(plan, method, each, part, of=f"{plan.tau:g}")
            for plan, part in zip(plans, self.plan.parts, strict=True)
        ]
        taus = ", ".join(f"{plan.tau:g}" for plan in plans)
        what = f"the {taus} quantiles of the {plans[0].roster.unit.plural}, each record for one of them"
        found = explain_quantile(
            plans[0],
            method,
            level,
            widths,
            rounds=ROUNDS[method],
            what=what,
            warnings=list(dict.fromkeys(text for plan in plans for text in plan.warnings)),
            seeded=seeded,
        )
        values = {**found.values, "tau": [plan.tau for plan in plans], "split": list(self.plan.parts)}
        return replace(found, values=values)


def plan_levels(
    sites: Any, taus: Sequence[float], epsilon: Any, *, missing: str = "refuse", censored: Any = None, **known: Any
) -> PlannedLevels:
    """Check all input of `federated_quantiles` without asking any record."""
    table = read_table_of(sites, missing=missing, censored=censored)
    plan = server_plan.plan_levels(table.roster, taus, epsilon, **known)
    if len(plan.whole.names) < len(table.names):
        table = table.only(plan.whole.names)
    return PlannedLevels(plan.with_hints(look_at(plan.whole, table, known.get("method") == "certified")), table)


def run_levels(
    study: PlannedLevels, randomness: RandomSource | None = None, progress: Progress | None = None
) -> QuantilesResult:
    """Run a planned study of several levels: from here on records answer."""
    check_callers(randomness, progress)
    plan, table = study.plan, study.table
    in_all = spend(table, plan.whole.budgets, randomness)
    talk = StagedQuantiles(plan.plans, plan.parts, plan.level, coin_of(plan.whole, randomness), plan.certified)
    found, private = run_sites(Prepared(plan.whole, table), talk, "levels", randomness, progress)
    results = tuple(remember(replace(result, private=private, in_all=in_all), table) for result in found.results)
    return replace(found, results=results, in_all=in_all)

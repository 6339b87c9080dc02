"""Value at risk and expected shortfall over many sites, each record answering once through randomised response."""

from dataclasses import dataclass, replace
from typing import Any

from sottovoce.api.asking import spend
from sottovoce.api.quantile.planning import Prepared, Progress, coin_of, look_at, remember, run_sites
from sottovoce.client.reading.table import SiteTable, read_sites
from sottovoce.core.calling import public, say_before
from sottovoce.core.checks import check_callers
from sottovoce.core.random_source import RandomSource
from sottovoce.server.explanation import Explanation
from sottovoce.server.quantile.shortfall import plan as server_plan
from sottovoce.server.quantile.shortfall.method import StagedShortfall
from sottovoce.server.quantile.shortfall.plan import ShortfallPlan
from sottovoce.server.quantile.shortfall.result import ShortfallResult


@public
def expected_shortfall(
    sites: Any,
    tau: float,
    epsilon: Any,
    *,
    bounds: Any,
    level: float = 0.95,
    tail: str = "upper",
    method: str = "certified",
    split: float | None = None,
    shares: Any = "pooled",
    scale: Any = None,
    resolution: Any = None,
    kind: str | None = None,
    randomness: RandomSource | None = None,
    missing: str = "refuse",
    progress: Progress | None = None,
) -> ShortfallResult:
    """Estimate a quantile (value at risk) and the mean of the records beyond it (expected shortfall), with intervals.

    Parameters
    ----------
    sites, epsilon, shares, scale, resolution, kind, randomness, missing, progress
        As for `federated_quantile`.
    tau
        The level of the quantile: 0.95 for the losses of the worst 5 % above it, 0.05 for the worst returns below it.
    bounds
        Public limits of the records, in their unit. What lies beyond one counts as the limit: the shortfall is that of
        the limited records. Its interval is the longer, the farther the bound of the tail is from the quantile.
    level
        The confidence level, of each of the two intervals.
    tail
        "upper" (default): the mean above the quantile; "lower": the mean below it.
    method
        "certified" (default): both intervals hold for every distribution within the bounds; or "staged": the quantile's
        is shorter, and takes the density to be smooth around it.
    split
        The part of the records that answers for the quantile; without it a quarter, or what the quantile needs.

    Returns
    -------
    The shortfall (``estimate``, ``interval``) and the quantile (``value_at_risk``, itself a result).

    Examples
    --------
    >>> import sottovoce as sv
    >>> losses = sv.sim.dice(1).generator().gamma(2.0, 10.0, size=(2, 100_000))
    >>> r = sv.expected_shortfall([losses[0], losses[1]], 0.9, 2.0, bounds=(0, 200), randomness=sv.sim.dice(2))
    >>> bool(r.value_at_risk.interval.low < 38.9 < r.value_at_risk.interval.high)
    True
    >>> bool(r.interval.low < 51.0 < r.interval.high)
    True
    """
    study = plan_shortfall(
        sites,
        tau,
        epsilon,
        bounds=bounds,
        level=level,
        tail=tail,
        method=method,
        split=split,
        shares=shares,
        scale=scale,
        resolution=resolution,
        kind=kind,
        missing=missing,
    )
    say_before(*study.warnings)
    return run_shortfall(study, randomness, progress)


@dataclass(frozen=True, eq=False)
class PlannedShortfall:
    """A study of a shortfall whose whole input is checked, and of which nothing is spent yet."""

    plan: ShortfallPlan
    prepared: Prepared

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what is worth knowing before any record answers."""
        return (*self.prepared.plan.hints, *self.plan.warnings)

    def explain(self, seeded: bool = False) -> Explanation:
        """Return what would be asked, what is protected, and how wide the intervals will be; nobody is asked."""
        return self.plan.explain(seeded)


def plan_shortfall(sites: Any, tau: Any, epsilon: Any, *, missing: str = "refuse", **known: Any) -> PlannedShortfall:
    """Check all input of `expected_shortfall` without asking any record."""
    table = sites if isinstance(sites, SiteTable) else read_sites(sites, missing=missing)
    plan = server_plan.plan_shortfall(table.roster, tau, epsilon, **known)
    if len(plan.quantile.names) < len(table.names):
        table = table.only(plan.quantile.names)
    hinted = replace(plan.quantile, hints=look_at(plan.quantile, table, plan.certified))
    return PlannedShortfall(replace(plan, quantile=hinted), Prepared(hinted, table))


def run_shortfall(
    study: PlannedShortfall, randomness: RandomSource | None = None, progress: Progress | None = None
) -> ShortfallResult:
    """Run a planned study of a shortfall: from here on records answer."""
    check_callers(randomness, progress)
    plan, table = study.plan.quantile, study.prepared.table
    in_all = spend(table, plan.budgets, randomness)
    method = StagedShortfall(study.plan, coin_of(plan, randomness))
    found, private = run_sites(study.prepared, method, f"shortfall-{study.plan.method}", randomness, progress)
    risk = remember(replace(found.value_at_risk, private=private, in_all=in_all), table)
    return replace(found, value_at_risk=risk, private=private, in_all=in_all)

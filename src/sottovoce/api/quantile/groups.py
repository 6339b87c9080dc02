"""A quantile for every site, or for every public group, with intervals that hold all together, and help between groups.

Each record answers once, for the quantile of its own group alone.
"""

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
from sottovoce.server.quantile.groups.expected import explain_groups
from sottovoce.server.quantile.groups.method import StagedGroups
from sottovoce.server.quantile.groups.plan import GroupsPlan
from sottovoce.server.quantile.groups.plan import plan_groups as plan_roster
from sottovoce.server.quantile.groups.result import GroupQuantilesResult, with_costs


@public
def group_quantiles(
    sites: Any,
    tau: float,
    epsilon: Any,
    *,
    groups: Any = None,
    weights: Any = None,
    level: float = 0.95,
    simultaneous: bool = True,
    shrinkage: str | None = None,
    method: str = "staged",
    shares: Any = "pooled",
    bounds: Any = None,
    scale: Any = None,
    resolution: Any = None,
    kind: str | None = None,
    randomness: RandomSource | None = None,
    missing: str = "refuse",
    censored: Any = None,
    progress: Progress | None = None,
) -> GroupQuantilesResult:
    """Estimate a quantile for every site, or for every group of a public column, with intervals that hold together.

    Parameters
    ----------
    sites, epsilon, weights, bounds, scale, resolution, kind, randomness, missing, censored, progress
        As for `federated_quantile`. A table that `read_frame` or `read_files` made with ``group=`` has its groups.
        Where values beyond limits are symbols, all groups are certified, and none are compared by a difference.
    tau
        The level of the quantile, one for all groups.
    groups
        Without it every site is a group. Else the public group of every record: a mapping from site to a column with a
        label beside every record, or to one label for the whole site; a group's records may lie at several sites. If it
        is not public who belongs to which group, ask for the quantile as a regression on it instead
        (`PrivateQuantileRegressor` with ``levels``), which protects it.
    level
        The confidence: of all intervals together, or of each.
    simultaneous
        Whether all intervals hold together with the level (default), or each by itself; the result has both.
    shrinkage
        None; "each": other groups shorten a group's interval, which keeps its own level whatever they are; or
        "average": the level holds on average over the groups, for which intervals are shorter (then give
        ``simultaneous=False``). Certified groups are not shrunk.
    method
        "staged" (default), which certifies groups with too few records, or "certified": every interval holds for every
        distribution.
    shares
        How the sites of a group count in it, as for `federated_quantile`.

    Returns
    -------
    The table of groups with estimates and intervals, the test that all are equal, comparisons, and every group's own
    result. Groups too small for any answer are left out before anybody is asked, which a warning says.

    Examples
    --------
    >>> import sottovoce as sv
    >>> g = sv.sim.dice(1).generator()
    >>> waits = {name: g.gamma(2.0, 10.0 + at, 8_000) for at, name in enumerate(["north", "south", "west"])}
    >>> r = sv.group_quantiles(waits, 0.5, 2.0, randomness=sv.sim.dice(2))
    >>> [bool(low < 1.67835 * (10 + at) < high) for at, (low, high) in enumerate(r.intervals.values())]
    [True, True, True]
    >>> sorted(r.compare(to="north").differing), r.equal.pvalue < 0.05
    (['south', 'west'], True)
    """
    study = plan_groups(
        sites,
        tau,
        epsilon,
        groups=groups,
        weights=weights,
        level=level,
        simultaneous=simultaneous,
        shrinkage=shrinkage,
        method=method,
        shares=shares,
        bounds=bounds,
        scale=scale,
        resolution=resolution,
        kind=kind,
        missing=missing,
        censored=censored,
    )
    say_before(*study.warnings)
    return run_groups(study, randomness, progress)


@dataclass(frozen=True, eq=False)
class PlannedGroups:
    """A study of groups whose whole input is checked, and of which nothing is spent yet."""

    plan: GroupsPlan
    table: SiteTable = field(repr=False)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what is worth knowing before any record answers."""
        return (*self.plan.whole.hints, *self.plan.warnings)

    def explain(self, seeded: bool = False) -> Explanation:
        """Return what would be asked, what is protected, and how wide the intervals will be; nobody is asked."""
        return explain_groups(self.plan, seeded)


def plan_groups(
    sites: Any,
    tau: Any,
    epsilon: Any,
    *,
    groups: Any = None,
    weights: Any = None,
    missing: str = "refuse",
    censored: Any = None,
    **known: Any,
) -> PlannedGroups:
    """Check all input of `group_quantiles` without asking any record."""
    table = read_table_of(sites, groups=groups, weights=weights, missing=missing, censored=censored)
    plan = plan_roster(table.roster, tau, epsilon, **known)
    table.marks  # noqa: B018 - sites that hold the same records are refused here, those of groups left out among them
    if len(plan.whole.names) < len(table.names):
        table = table.only(plan.whole.names)
    hints = look_at(plan.whole, table, plan.certified)
    return PlannedGroups(replace(plan, whole=replace(plan.whole, hints=hints)), table)


def run_groups(
    study: PlannedGroups, randomness: RandomSource | None = None, progress: Progress | None = None
) -> GroupQuantilesResult:
    """Run a planned study of groups: from here on records answer."""
    check_callers(randomness, progress)
    plan, table = study.plan, study.table
    in_all = spend(table, plan.whole.budgets, randomness)
    method = StagedGroups(plan, coin_of(plan.whole, randomness))
    found, private = run_sites(Prepared(plan.whole, table), method, "groups", randomness, progress)
    costed = with_costs(found, private, in_all, plan.whole.hints)
    for result, names in zip(costed.results, _members(plan), strict=True):
        remember(result, table.only(names))
    return costed


def _members(plan: GroupsPlan) -> list[Sequence[str]]:
    """Return the names of all that answer for each group."""
    return [each.names for each in plan.plans]

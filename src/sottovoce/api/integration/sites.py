"""Who takes part when sources help a target: sites with records, private or not, and sites that give a summary.

Everything is checked here, before any record answers: names, budgets, sizes, and that the target is not among its
sources.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sottovoce.api.integration.apart import check_apart, check_once
from sottovoce.api.integration.names import TARGET, is_summary, named, part_of
from sottovoce.api.quantile.planning import PlannedStudy, plan_study, prepare
from sottovoce.client.integration.order_statistics import records_needed
from sottovoce.client.reading.table import SiteTable, read_sites
from sottovoce.core.checks import check_names, label_text, number, per_site
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.core.unit import NUMBER, Unit, common_unit
from sottovoce.server.integration.site_summary import SiteSummary, summary_from
from sottovoce.server.quantile.feasibility import Limits


class Ungated(Limits):
    """Limits that nothing exceeds: order statistics need no search, and have no noise but that of the records."""

    def at(self, tau: float) -> Limits:  # noqa: ARG002
        """Return the same at every level."""
        return self


OPEN = Ungated(math.inf, math.inf, "")


@dataclass(frozen=True, eq=False)
class PlannedSite:
    """A site before it is measured: ``study`` where it has records, ``summary`` where it gives numbers."""

    name: str
    study: PlannedStudy | None = None
    summary: SiteSummary | None = None

    @property
    def kind(self) -> str:
        """Return "private", "open" (records without a budget), or "summary"."""
        if self.study is None:
            return "summary"
        return "private" if math.isfinite(self.study.plan.channels[0].epsilon) else "open"

    @property
    def size(self) -> int | None:
        """Return the number of records, where it is known."""
        if self.study is not None:
            return int(self.study.plan.crowd.sizes[0])
        return self.summary.n if self.summary is not None else None


@dataclass(frozen=True, eq=False)
class PlannedSites:
    """All sites, the target first, and the unit of their records."""

    sites: tuple[PlannedSite, ...]
    unit: Unit
    seeded: bool
    per_person: bool

    @property
    def target(self) -> PlannedSite:
        """Return the site whose quantile is wanted."""
        return self.sites[0]

    @property
    def sources(self) -> tuple[PlannedSite, ...]:
        """Return the sites that may help."""
        return self.sites[1:]

    @property
    def step(self) -> float:
        """Return the public step by which records are dithered, zero if none."""
        return max((site.study.plan.resolution for site in self.sites if site.study is not None), default=0.0)

    @property
    def hints(self) -> tuple[str, ...]:
        """Return what whoever holds the records should know of them, and nobody else."""
        held = [(site.name, hint) for site in self.sites if site.study is not None for hint in site.study.plan.hints]
        return tuple(f"site {name!r}: {hint}" if len(self.sites) > 1 else hint for name, hint in held)


def plan_sites(
    target: Any, sources: Any, tau: Any, epsilon: Any, level: float, missing: str, **known: Any
) -> PlannedSites:
    """Check who takes part; ``known`` are bounds, scale and resolution, the same for all sites."""
    name, own, others = named(target, sources)
    if name in others and name == TARGET and not isinstance(target, Mapping | SiteTable):
        raise BadInput("a source is called 'target', as the target itself is; rename it, or give {name: records}.")
    if name in others:
        raise BadInput(
            f"the target {name!r} is among the sources too; a site cannot help itself: take it out of the sources."
        )
    given = {name: own, **others}
    check_names(given)
    summaries = {site: summary_from(value, _where(site, name)) for site, value in given.items() if is_summary(value)}
    columns = {site: value for site, value in given.items() if site not in summaries}
    check_once(given, name)
    table = _read(columns, missing)
    if table is not None:
        check_apart(table, name)
    studies = {} if table is None else _studies(table, name, tau, epsilon, level, summaries, known)
    if table is None:
        _check_without_records(tau, epsilon, known)
    planned = tuple(PlannedSite(site, studies.get(site), summaries.get(site)) for site in given)
    if planned[0].summary is not None and not planned[0].summary.trusted:
        raise BadInput(f"the target {name!r} has no standard error to be trusted; only a source can do without.")
    return PlannedSites(
        planned,
        NUMBER if table is None else table.unit,
        table is not None and table.seeded,
        table is not None and table.per_person,
    )


def _read(given: Mapping[str, Any], missing: str) -> SiteTable | None:
    """Read all sites that have records, in one unit."""
    if not given:
        return None
    tables = [value for value in given.values() if isinstance(value, SiteTable)]
    if not tables:
        return read_sites(given, missing=missing)
    rest = {name: value for name, value in given.items() if not isinstance(value, SiteTable)}
    if rest:
        tables.append(read_sites(rest, missing=missing))
    common_unit({name: table.unit for table in tables for name in table.names})
    held = {
        name: (records, table) for table in tables for name, records in zip(table.names, table.records, strict=True)
    }
    return replace(
        tables[0],
        names=tuple(given),
        records=tuple(held[name][0] for name in given),
        dropped={name: held[name][1].dropped.get(name, 0) for name in given},
        seeded=any(table.seeded for table in tables),
        per_person=all(table.per_person for table in tables),
    )


def _studies(
    table: SiteTable, target: str, tau: Any, epsilon: Any, level: float, summaries: Mapping[str, Any], known: Any
) -> dict[str, PlannedStudy]:
    """Plan one study for each site that has records, or say which site cannot be asked."""
    if isinstance(epsilon, Mapping):  # a budget for a site without records is nothing to complain of
        epsilon = {name: value for name, value in epsilon.items() if label_text(name) not in summaries}
    if isinstance(tau, Mapping):
        raise BadInput("tau must be one level: the sources help with the target's own quantile; give one number.")
    budgets = dict(zip(table.names, per_site(epsilon, table.names, "epsilon"), strict=True))
    found = {}
    for i, name in enumerate(table.names):
        budget = number(*budgets[name])
        try:
            if math.isinf(budget):  # exact with any number of records that it needs: the gate is for noise
                panel = prepare(part_of(table, i), tau, {name: budget}, limits=OPEN, **known)
                study = PlannedStudy(panel, None, level, "staged", robust=False)
            else:
                study = plan_study(part_of(table, i), tau, {name: budget}, level=level, **known)
        except Infeasible as error:
            raise Infeasible(f"{_where(name, target)} has too few records: {error}") from None
        if math.isinf(study.plan.channels[0].epsilon):
            level_of, size = study.plan.tau, table.records[i].size
            needed = max(records_needed(level_of, level), records_needed(level_of))
            if size < needed:
                raise BadInput(
                    f"{_where(name, target)} has {size:,} records, and an interval for its {level_of:g} quantile "
                    f"needs {needed:,}; add records, or ask a level nearer 0.5."
                )
        found[name] = study
    return found


def _check_without_records(tau: Any, epsilon: Any, known: Mapping[str, Any]) -> None:
    """Check what is left to check where every site gives a summary."""
    if not 0 < number(tau, "tau") < 1:
        raise BadInput(f"tau must lie strictly between 0 and 1, not {tau!r}; give 0.9 for nine out of ten.")
    given = [name for name, value in known.items() if value is not None]
    if given:
        raise BadInput(f"{given[0]} belongs to records, and every site gives a summary; leave it out.")
    for budget in epsilon.values() if isinstance(epsilon, Mapping) else [] if epsilon is None else [epsilon]:
        if not number(budget, "epsilon") > 0:
            raise BadInput(f"epsilon must be positive, not {budget!r}; leave it out where every site gives a summary.")


def _where(name: str, target: str) -> str:
    if name != target:
        return f"source {name!r}"
    return "the target" if name == TARGET else f"the target {name!r}"

"""One site's quantile, helped by other sites that may or may not be alike.

Target and sources are read first, with the names they go by; records that two sites share are refused.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from sottovoce.api.asking import spend_columns
from sottovoce.api.quantile.planning import TIED
from sottovoce.client.answered import shared_columns
from sottovoce.client.fingerprint import mark
from sottovoce.client.integration.site import OpenSite
from sottovoce.client.quantile.site import Site, look_rounded
from sottovoce.client.reading.table import SiteTable, read_sites
from sottovoce.core.calling import public, say_before
from sottovoce.core.checks import check_callers, check_names, close_names, first_few, label_text
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource, SystemEntropy, is_private, parts_of
from sottovoce.core.roster import doubtful_names
from sottovoce.core.shown import quoted
from sottovoce.core.unit import common_unit
from sottovoce.local.integration import ask_in_turn
from sottovoce.server.explanation import Explanation
from sottovoce.server.integration.expected import explain_integration
from sottovoce.server.integration.method import IntegrationMethod
from sottovoce.server.integration.plan import TARGET, IntegrationPlan, check_settings, plan_integration, where
from sottovoce.server.integration.result import IntegratedResult
from sottovoce.server.integration.site_summary import SiteSummary, summary_from
from sottovoce.server.stored import InAll

Progress = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class GivenSites:
    """All sites as they were given, the target first: records for some of them, summaries for the others."""

    names: tuple[str, ...]
    table: SiteTable | None = field(repr=False)
    summaries: Mapping[str, SiteSummary]

    def hints(self, plan: IntegrationPlan) -> tuple[str, ...]:
        """Return what whoever holds the records should know of them, and nobody else."""
        if self.table is None or plan.step > 0:
            return ()
        asked = {site.name for site in plan.asked if not site.certified}
        held = zip(self.table.names, self.table.records, strict=True)
        tied = [name for name, records in held if name in asked and look_rounded(records)]
        return tuple(f"site {name!r}: {TIED}" if len(self.names) > 1 else TIED for name in tied)


def read_given(target: Any, sources: Any, missing: str) -> GivenSites:
    """Read who takes part; ``missing`` says what becomes of missing values."""
    name, own, others = named(target, sources)
    if name in others and name == TARGET and not isinstance(target, Mapping | SiteTable):
        raise BadInput("a source is called 'target', as the target itself is; rename it, or give {name: records}.")
    if name in others:
        raise BadInput(
            f"the target {name!r} is among the sources too; a site cannot help itself: take it out of the sources."
        )
    given = {name: own, **others}
    check_names(given)
    summaries = {site: summary_from(value, where(site, name)) for site, value in given.items() if is_summary(value)}
    columns = {site: value for site, value in given.items() if site not in summaries}
    _check_once(given, name)
    table = _read(columns, missing)
    if table is not None:
        _check_apart(table, name)
    return GivenSites(tuple(given), table, summaries)


def named(target: Any, sources: Any) -> tuple[str, Any, dict[str, Any]]:
    """Return the target's name, the target, and the sources by name."""
    others = by_name(sources)
    if isinstance(target, int) and label_text(target) in others:
        target = label_text(target)
    if isinstance(target, str):
        if target not in others:
            close = close_names(target, others) or "name one of them."
            raise BadInput(f"the target {quoted(target)} is not one of the sites {first_few(others)}; {close}")
        return target, others.pop(target), others
    if isinstance(target, SiteTable):
        target.undivided("one site helped by others")
        if len(target.names) != 1:
            raise BadInput(f"the target must be one site, not {len(target.names)}; name one of them.")
        return target.names[0], target, others
    if isinstance(target, Mapping) and not is_summary(target):
        if len(target) != 1:
            raise BadInput(f"the target must be one site, not a mapping of {len(target)}; give {{name: records}}.")
        [(name, own)] = target.items()
        return label_text(name), own, others
    return TARGET, target, others


def by_name(sources: Any) -> dict[str, Any]:
    """Return the sources by name."""
    if sources is None:
        return {}
    if isinstance(sources, SiteTable):
        sources.undivided("one site helped by others")
        return {name: part_of(sources, i) for i, name in enumerate(sources.names)}
    if isinstance(sources, Mapping) and not is_summary(sources):
        found = {label_text(name): value for name, value in sources.items()}
        if len(found) < len(sources):
            raise BadInput("two sources have the same name; give each its own.")
        return found
    if isinstance(sources, Sequence) and not isinstance(sources, str | bytes):
        if sources and all(isinstance(value, int | float) for value in sources):
            raise BadInput(
                "sources is one column of numbers; give a mapping from name to records, or a list of columns."
            )
        return {f"source {i}": value for i, value in enumerate(sources, 1)}
    raise BadInput(
        f"sources must be a mapping from name to records or summary, or a list of them, not a "
        f"{type(sources).__name__}; give {{}} for none, and read a data frame with sv.read_frame."
    )


def is_summary(value: Any) -> bool:
    """Tell numbers about a site from its records."""
    return isinstance(value, SiteSummary) or (isinstance(value, Mapping) and "estimate" in value)


def part_of(table: SiteTable, i: int) -> SiteTable:
    """Return one site of a table."""
    name = table.names[i]
    return replace(table, names=(name,), records=(table.records[i],), dropped={name: table.dropped.get(name, 0)})


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


def _check_once(columns: Mapping[str, Any], target: str) -> None:
    """Refuse one column given twice: once both are converted, the copies no longer show that they are one."""
    seen: dict[int, str] = {}
    for name, column in columns.items():
        other = seen.setdefault(id(column), name)
        if other != name:
            raise _shared(other, name, target)


def _check_apart(table: SiteTable, target: str) -> None:
    """Refuse records that two sites share."""
    order = sorted(range(len(table.names)), key=lambda i: table.records[i].address)
    for i, j in pairwise(order):  # holders that share memory follow each other in the order of memory
        if table.records[i].overlaps(table.records[j]):
            raise _shared(table.names[min(i, j)], table.names[max(i, j)], target)
    if (found := shared_columns(table.columns, mark(table.columns))) is not None:
        raise _shared(table.names[found[0]], table.names[found[1]], target)


def _shared(one: str, two: str, target: str) -> BadInput:
    """Say who shares records with whom."""
    if target in (one, two):
        other = two if one == target else one
        return BadInput(f"the target's records are among the sources, at {other!r}; take them out there.")
    return BadInput(f"the sources {one!r} and {two!r} share records; give each record to one site.")


@public
def integrated_quantile(
    target: Any,
    sources: Any,
    tau: Any,
    epsilon: Any,
    *,
    method: str = "valid",
    level: float = 0.95,
    bound: Any = None,
    variance: str = "printed",
    quantile: str = "z",
    caution: float = 1.96,
    sites: str | None = None,
    chains: int = 10,
    bounds: Any = None,
    scale: Any = None,
    resolution: Any = None,
    randomness: RandomSource | None = None,
    missing: str = "refuse",
    progress: Progress | None = None,
) -> IntegratedResult:
    """Estimate the quantile of one site, the target, with the help of sources that may be alike.

    Parameters
    ----------
    target
        The records of the target (a column, or ``{name: column}``), a `SiteSummary`, or the name of one of ``sources``.
    sources
        A mapping from name to records or `SiteSummary`, a list of them, or what `read_frame` or `read_files` returned;
        ``{}`` for none.
    tau
        The level of the quantile.
    epsilon
        The budget of a record's one report, or a mapping from site to budget; ``math.inf`` for a site whose records may
        be read as they are (order statistics).
    method
        "valid" (default): covers whatever the sources' shifts; on average about 5 % shorter where they agree, and 3 %
        longer at worst. "conservative": never longer. "known-bound": much shorter, if ``bound`` holds. For comparison,
        not uniformly valid: the paper's "adaptive", "decay", "conservative-paper", "ivw"; and "target" alone.
    level
        The confidence level; "valid" knows 0.8, 0.9, 0.95 and 0.99.
    bound
        For "known-bound": the largest difference between a source's quantile and the target's, chosen before any data
        were seen, in the unit of the records; or a mapping from source to bound.
    variance
        For the paper's methods: "printed" (made its tables) or "theorem".
    quantile
        For the paper's methods: "z" or "t".
    caution
        For "conservative-paper": the paper's constant C.
    sites
        How private sites measure themselves: "staged", or the paper's parallel "chains" (default of its methods).
    chains
        How many chains a site runs.
    bounds, scale, resolution, randomness, missing, progress
        As for `federated_quantile`; public knowledge holds for all sites.

    Returns
    -------
    The estimate with its interval, weights, sensitivity curve and summary.

    Examples
    --------
    >>> import sottovoce as sv
    >>> g = sv.sim.dice(1).generator()
    >>> clinics = {"ours": g.gamma(2.0, 10.0, 20_000), "north": g.gamma(2.0, 10.0, 80_000)}
    >>> r = sv.integrated_quantile("ours", clinics, 0.5, 1.0, randomness=sv.sim.dice(2))
    >>> bool(r.interval.low < 16.78 < r.interval.high), r.private, round(sum(r.weights.values()), 9)
    (True, False, 1.0)
    """
    planned = plan_integrated(
        target,
        sources,
        tau,
        epsilon,
        method=method,
        level=level,
        bound=bound,
        variance=variance,
        quantile=quantile,
        caution=caution,
        sites=sites,
        chains=chains,
        bounds=bounds,
        scale=scale,
        resolution=resolution,
        randomness=randomness,
        missing=missing,
    )
    check_callers(None, progress)
    say_before(*planned.warnings)
    return run_integrated(planned, progress)


@dataclass(frozen=True, eq=False)
class PlannedIntegration:
    """An integration whose whole input is checked, and of which nothing is spent yet."""

    plan: IntegrationPlan
    given: GivenSites = field(repr=False)
    dice: RandomSource

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what is worth knowing before any record answers; what the records show is for their holder."""
        return (*doubtful_names(self.given.names), *self.given.hints(self.plan), *self.plan.warnings)

    def explain(self, seeded: bool = False) -> Explanation:  # noqa: ARG002
        """Return what would be asked, what is protected, and how wide the interval will be; nobody is asked."""
        found, doubts = explain_integration(self.plan), doubtful_names(self.given.names)
        return replace(found, warnings=(*doubts, *found.warnings), hints=self.given.hints(self.plan))


def plan_integrated(
    target: Any,
    sources: Any,
    tau: float,
    epsilon: Any,
    *,
    method: str = "valid",
    level: float = 0.95,
    bound: Any = None,
    variance: str = "printed",
    quantile: str = "z",
    caution: float = 1.96,
    sites: str | None = None,
    chains: int = 10,
    randomness: RandomSource | None = None,
    missing: str = "refuse",
    **known: Any,
) -> PlannedIntegration:
    """Check all input of `integrated_quantile` without asking any record."""
    settings = check_settings(method, level, tau, variance, quantile, caution, sites, chains)
    check_callers(randomness, None)
    dice = SystemEntropy() if randomness is None else randomness
    given = read_given(target, sources, missing)
    roster = None if given.table is None else given.table.roster
    who = (given.names, roster, given.summaries)
    plan = plan_integration(settings, *who, tau, epsilon, bound, simulated=not is_private(dice), **known)
    return PlannedIntegration(plan, given, dice)


def run_integrated(planned: PlannedIntegration, progress: Progress | None = None) -> IntegratedResult:
    """Run a planned integration: from here on records answer."""
    plan, given = planned.plan, planned.given
    opened = opener(plan, given.table, planned.dice)
    in_all = None if given.table is None else _spend(plan, given.table, planned.dice)
    return replace(ask_in_turn(IntegrationMethod(plan), opened, progress), hints=given.hints(plan), in_all=in_all)


def _spend(plan: IntegrationPlan, table: SiteTable, randomness: RandomSource | None) -> InAll:
    """Count what the sites that are about to be asked have cost with this study."""
    asked = {site.name: site.study.budgets[0] for site in plan.asked if site.study is not None}
    columns = [table.records[table.names.index(name)].values() for name in asked]
    total = spend_columns(columns, mark(columns), [*asked.values()], randomness)
    return None if total is None else dict(zip(asked, total, strict=True))


def opener(plan: IntegrationPlan, table: SiteTable | None, dice: RandomSource) -> Callable[[int], Site | OpenSite]:
    """Return what opens a site that takes part, by its place, with dice of its own."""
    parts = parts_of(dice, len(plan.asked), look=False)  # sites are still to be checked

    def opened(k: int) -> Site | OpenSite:
        site = plan.asked[k]
        assert table is not None
        assert site.study is not None
        records, study = table.records[table.names.index(site.name)], site.study.study_of(0)
        if site.kind == "open":
            return OpenSite(records, study, parts[k])
        [own] = parts[k].split(1)  # as a study of one site splits them
        return Site(records, study, own, site.study.channels[0])

    return opened

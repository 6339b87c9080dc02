"""One site's quantile, helped by other sites that may or may not be alike."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sottovoce.api.integration.sites import read_given
from sottovoce.client.integration.site import OpenSite
from sottovoce.client.quantile.site import Site
from sottovoce.client.reading.table import SiteTable
from sottovoce.core.checks import check_callers
from sottovoce.core.random_source import RandomSource, SystemEntropy
from sottovoce.local.integration.study import ask_in_turn
from sottovoce.server.integration.method import IntegrationMethod
from sottovoce.server.integration.plan import IntegrationPlan, plan_integration
from sottovoce.server.integration.result import IntegratedResult
from sottovoce.server.integration.settings import check_settings

Progress = Callable[[int], None]


def integrated_quantile(
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
    settings = check_settings(method, level, tau, variance, quantile, caution, sites, chains)
    check_callers(randomness, progress)
    dice = SystemEntropy() if randomness is None else randomness
    given = read_given(target, sources, missing)
    plan = plan_integration(
        settings,
        given.names,
        None if given.table is None else given.table.roster,
        given.summaries,
        tau,
        epsilon,
        bound,
        simulated=not dice.private,
        bounds=bounds,
        scale=scale,
        resolution=resolution,
    )
    opened = opener(plan, given.table, dice)
    return replace(ask_in_turn(IntegrationMethod(plan), opened, progress), hints=given.hints(plan))


def opener(plan: IntegrationPlan, table: SiteTable | None, dice: RandomSource) -> Callable[[int], Site | OpenSite]:
    """Return what opens a site that takes part, by its place, with dice of its own."""
    parts = dice.split(len(plan.asked))

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

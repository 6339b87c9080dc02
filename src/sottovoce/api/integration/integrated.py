"""One site's quantile, helped by other sites that may or may not be alike."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sottovoce.api.integration.measure import measure_sites
from sottovoce.api.integration.sites import PlannedSites, plan_sites
from sottovoce.core.checks import check_callers
from sottovoce.core.random_source import RandomSource
from sottovoce.server.integration.result import IntegratedResult
from sottovoce.server.integration.settings import check_settings, check_sites, unneeded, with_bound

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
    plan = plan_sites(
        target, sources, tau, epsilon, settings.level, missing, bounds=bounds, scale=scale, resolution=resolution
    )
    settings = with_bound(settings, bound, [site.name for site in plan.sources], plan.unit, plan.step)
    check_sites(settings, plan)
    idle = unneeded(settings, plan)
    asked = replace(plan, sites=tuple(site for site in plan.sites if site.name not in idle))
    known, lost, warnings = measure_sites(asked, settings.level, settings.chains, randomness, progress)
    seeded = plan.seeded or (randomness is not None and not randomness.private)
    return IntegratedResult(
        settings=settings,
        known=tuple(known),
        lost=lost,
        idle=tuple(site.name for site in plan.sources if site.name in idle),
        unit=plan.unit,
        step=plan.step,
        resolution=_resolution(plan),
        private=all([site.private for site in known] + [site.private for site in lost]) and not plan.seeded,
        seeded=seeded,
        per_person=plan.per_person,
        measured_warnings=warnings,
        hints=plan.hints,
    )


def _resolution(plan: PlannedSites) -> float:
    """Return the public step to which the answer is rounded: that of the target's own dithered records, if any."""
    return plan.target.study.plan.resolution if plan.target.study is not None else 0.0

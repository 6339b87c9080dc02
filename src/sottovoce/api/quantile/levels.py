"""Several levels at once from one report a person: a public split of the records, joint coverage, no crossing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sottovoce.api.quantile.planning import Prepared, Progress, coin_of, prepare, remember, run_sites, say_before
from sottovoce.core.checks import check_callers, confidence, is_one_of
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource
from sottovoce.server.quantile.feasibility import CERTIFIED
from sottovoce.server.quantile.levels import QuantilesResult, StagedQuantiles, check_levels, check_sizes, split_of
from sottovoce.server.quantile.plan import QuantilePlan


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
        return tuple(text for plan in self.plans for text in plan.warnings)


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
    if not is_one_of(method, ("staged", "certified")):
        raise BadInput(f"method {method!r} is unknown for several levels; choose 'staged' or 'certified'.")
    each = 1 - (1 - level) / len(levels)
    public = {**known, "limits": CERTIFIED, "confidence": each, "certified": method == "certified"}
    whole = prepare(sites, 0.5, epsilon, missing=missing, **public)
    parts = split_of(split, levels, whole.plan.crowd)
    plans = [
        prepare(whole.table, tau, epsilon, thinned=part, **public).plan for tau, part in zip(levels, parts, strict=True)
    ]
    check_sizes(whole.plan, parts)
    return PlannedLevels(whole, plans, parts, level, method == "certified" or whole.plan.kind == "amounts")


def run_levels(
    study: PlannedLevels, randomness: RandomSource | None = None, progress: Progress | None = None
) -> QuantilesResult:
    """Run a planned study of several levels: from here on records answer."""
    check_callers(randomness, progress)
    whole = study.whole
    talk = StagedQuantiles(study.plans, study.parts, study.level, coin_of(whole.plan, randomness), study.certified)
    found, private = run_sites(whole, talk, "levels", randomness, progress)
    results = tuple(remember(replace(result, private=private), whole.table) for result in found.results)
    return replace(found, results=results)

"""From what the sites know to one estimate and interval, by the method that was asked for."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from sottovoce.core.errors import BadInput
from sottovoce.inference.common.measured import SiteEstimate, t_value
from sottovoce.inference.common.normal import two_sided
from sottovoce.inference.integration import known_bound, valid, weighted
from sottovoce.inference.integration.sensitivity import least_bounds
from sottovoce.server.integration.plan import IntegrationSettings
from sottovoce.server.quantile.solutions import FittedSolution, Solution

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)  # at which a private target keeps its own interval
LEAST_DF = 4.0  # a source whose error is known worse than this is left out
# In errors of the target: what is farther or vaguer is as good as infinite, an error below this as good as none.
FARTHEST, FINEST = 1e40, 1e-6


@dataclass(frozen=True)
class KnownSite:
    """What is known of a site: its three numbers, its own interval at the level asked, and what that cost."""

    name: str
    kind: str
    measured: SiteEstimate
    low: float
    high: float
    epsilon: float | None
    records: int | None
    reports: int = 0
    rounds: int = 0
    private: bool = True
    trusted: bool = True
    tied: bool = False
    warnings: tuple[str, ...] = ()
    ends: tuple[tuple[float, float, float], ...] = ()  # its own interval at further levels: level, low, high

    def at(self, level: float) -> "KnownSite":
        """Return the site with its own interval at another level, or refuse where nobody knows it."""
        for known, low, high in self.ends:
            if math.isclose(known, level, rel_tol=1e-12):
                return replace(self, low=low, high=high)
        if self.kind == "summary" or (self.kind == "private" and not self.ends):  # Student's law is all there is
            ends = self.measured.interval(level) if self.trusted else (-math.inf, math.inf)
            return replace(self, low=ends[0], high=ends[1])
        told = ", ".join(f"{known:g}" for known, _, _ in self.ends) or "the level it was asked for"
        raise BadInput(f"the target's own interval is known at {told} alone, not at {level:g}; choose one of these.")

    @property
    def usable(self) -> bool:
        """Tell whether a source may help: its estimate is a number and its error is known well enough."""
        error, df = self.measured.std_error, self.measured.df
        return math.isfinite(self.measured.estimate) and (not self.trusted or (0 < error < math.inf and df >= LEAST_DF))


@dataclass(frozen=True)
class LostSite:
    """A source whose search was lost: it helps nobody, and what it spent is spent."""

    name: str
    epsilon: float
    reports: int
    private: bool


def measured_of(solution: Solution) -> SiteEstimate:
    """Return what a finished study knows; of an inverted test, the error by which a normal interval has its length."""
    if isinstance(solution, FittedSolution):
        return solution.fitted.measured
    low, high = solution.interval(0.95)
    return SiteEstimate(solution.point, (high - low) / (2 * two_sided(0.95)))


class Combination(NamedTuple):
    """What a method makes of the sites: weights are those of the target and the sources that were used."""

    estimate: float
    low: float
    high: float
    weights: tuple[float, ...]


def combine(settings: IntegrationSettings, target: KnownSite, sources: Sequence[KnownSite]) -> Combination:
    """Combine a target with its usable sources."""
    own, level, measured = (target.low, target.high), settings.level, [site.measured for site in sources]
    # between tied records an interval is exact, and moved it would miss them; bounds and the paper do not start from it
    exact = target.tied and settings.method in ("valid", "conservative")
    if exact or not 0 < target.measured.std_error < math.inf:
        return Combination(target.measured.estimate, *own, (1.0, *[0.0] * len(sources)))
    if settings.method == "valid":
        trusted = all(site.trusted for site in sources)
        return Combination(*valid.combine(target.measured, own, measured, level, trusted))
    if settings.method in weighted.METHODS:
        return _paper(settings, target, sources)
    if settings.bound is not None:
        limits = [limit_of(settings, target, site) for site in sources]
        bounded = known_bound.combine(effective(target, level), measured, limits, level, common(sources))
        found = Combination(bounded.estimate, bounded.low, bounded.high, bounded.weights)
    else:
        cautious = weighted.cautious(target.measured, measured, level)
        # the target's own edges, shortened, so that it is never longer than these, symmetric or not
        part, place = cautious.std_error / target.measured.std_error, target.measured.estimate
        low, high = cautious.estimate - part * (place - own[0]), cautious.estimate + part * (own[1] - place)
        found = Combination(cautious.estimate, low, high, cautious.weights)
    # without help, the target's own interval edge by edge
    return found if found.weights[0] < 1 else Combination(target.measured.estimate, *own, found.weights)


def _paper(settings: IntegrationSettings, target: KnownSite, sources: Sequence[KnownSite]) -> Combination:
    """Combine as the paper does."""
    weighed = weighted.paper(
        settings.method,
        target.measured,
        [site.measured for site in sources],
        settings.level,
        records=float(sum(site.records or 0 for site in (target, *sources))),
        variance=settings.variance,
        quantile=settings.quantile,
        caution=settings.caution,
    )
    return Combination(weighed.estimate, weighed.low, weighed.high, weighed.weights)


def moderate(target: KnownSite, source: KnownSite) -> KnownSite:
    """Return a source within the range where squares of differences and errors are still numbers."""
    place, own = target.measured.estimate, target.measured.std_error
    most, least = FARTHEST * own, FINEST * own
    estimate, error, df = source.measured
    near = min(max(estimate - place, -most), most)
    held = SiteEstimate(
        estimate if near == estimate - place else place + near,
        min(max(error, least), most) if source.trusted else error,
        df,
    )
    return source if held == source.measured else replace(source, measured=held)


def common(sources: Sequence[KnownSite]) -> list[bool]:
    """Tell which sources are private: these share a small bias of one sign, which pooling does not average out."""
    return [site.kind == "private" for site in sources]


def effective(target: KnownSite, level: float) -> SiteEstimate:
    """Return the target with the error that gives its own interval, exact or inverted, its length by Student's law."""
    estimate, error, df = target.measured
    length = target.high - target.low
    return SiteEstimate(estimate, length / (2 * t_value(level, df)) if 0 < length < math.inf else error, df)


def limit_of(settings: IntegrationSettings, target: KnownSite, source: KnownSite) -> float:
    """Return the bound of a source, with half a step where one of the two is dithered and the other a summary."""
    assert settings.bound is not None
    return settings.bound[source.name] + settings.slack * ((target.kind == "summary") != (source.kind == "summary"))


def refuted(settings: IntegrationSettings, target: KnownSite, sources: Sequence[KnownSite]) -> list[str]:
    """Say which bounds the data contradict, at the level asked, over all sources together."""
    if settings.bound is None or not sources:
        return []
    least = least_bounds(
        effective(target, settings.level), [site.measured for site in sources], settings.level, common(sources)
    )
    return [
        f"the bound of source {site.name!r} is contradicted by the data ({settings.level:g}): do not use this interval"
        for site, bound in zip(sources, least, strict=True)
        if bound > limit_of(settings, target, site)
    ]

"""What is known of a site, however it was asked: estimate, error, its own interval, and what that cost."""

import math
from dataclasses import dataclass

from sottovoce.inference.common.measured import SiteEstimate
from sottovoce.inference.common.normal import two_sided
from sottovoce.server.quantile.solutions import FittedSolution, Solution

LEAST_DF = 4.0  # a source whose error is known worse than this is left out


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

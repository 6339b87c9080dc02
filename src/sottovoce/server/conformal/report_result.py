"""The report on a threshold's coverage: sites worst first, mixture, promise and expectation, spread of quantiles."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from sottovoce.server.description import finite

FLATTERED = "Scores that made the threshold flatter it; fresh ones judge it fairly."
OPEN = "This report is not private: it shows how many scores of each site are covered, and a quantile of each site."


@dataclass(frozen=True)
class SiteCoverage:
    """The coverage at one site with its two-sided interval; ``below`` if it fails the target, judged with all sites.

    ``p_value`` is of "the coverage is at least the target". In a private report ``covered`` has its noise, and may lie
    outside 0 to ``n``; intervals and p-values account for it.
    """

    name: str
    n: int
    covered: int
    coverage: float
    low: float
    high: float
    p_value: float
    below: bool


class Mixture(NamedTuple):
    """The coverage of a score from a site drawn by ``weights`` ("sites", "records" or "given")."""

    estimate: float
    low: float
    high: float
    weights: str


class Prediction(NamedTuple):
    """The coverage to expect from a new calibration under the sites' own laws: of the mixture, and at each site."""

    mixture: float
    sites: Mapping[str, float]


class Spread(NamedTuple):
    """How far the sites' own quantiles at the target lie apart."""

    least: float
    median: float
    largest: float
    sites: Mapping[str, float]


@dataclass(frozen=True)
class CoverageReport:
    """Whom a threshold fails; print it, or `summary()`, for a table."""

    value: float
    alpha: float
    level: float
    sites: tuple[SiteCoverage, ...] = field(repr=False)
    mixture: Mixture
    weights: Mapping[str, float] = field(repr=False)
    homogeneous: float | None
    predicted: Prediction | None = field(repr=False)
    unpredicted: str | None = field(repr=False)
    # values of single scores: part of the report that is not private, and of nothing that is printed by the way
    spread: Spread | None = field(repr=False)
    epsilon: Mapping[str, float] | None
    seeded: bool = field(repr=False)
    private_threshold: bool = field(repr=False)
    dropped: int = field(repr=False)
    per_person: bool = field(repr=False)

    @property
    def target(self) -> float:
        """Return the coverage that is wanted."""
        return 1 - self.alpha

    @property
    def worst(self) -> SiteCoverage:
        """Return the site with the lowest coverage."""
        return self.sites[0]

    @property
    def below(self) -> tuple[str, ...]:
        """Return the sites below the target, worst first; one or more wrongly with probability ``error`` at most."""
        return tuple(site.name for site in self.sites if site.below)

    @property
    def error(self) -> float:
        """Return how likely it is at most that any site is named below the target and is not."""
        return (1 - self.level) / 2

    @property
    def private(self) -> bool:
        """Tell whether every count had noise that nobody can reproduce."""
        return self.epsilon is not None and not self.seeded

    @property
    def caveats(self) -> tuple[str, ...]:
        """Return what is worth knowing before the report is believed or passed on."""
        return (FLATTERED, self.promise)

    @property
    def promise(self) -> str:
        """Return in words what the report tells of the records."""
        if self.epsilon is None:
            return f"{OPEN} That the threshold is private does not make it so." if self.private_threshold else OPEN
        from sottovoce.server.conformal.report_summary import promise

        return promise(self)

    def summary(self) -> str:
        """Return a table, worst site first."""
        from sottovoce.server.conformal.report_summary import summary

        return summary(self)

    def plot(self, path: str | Path) -> Path:
        """Draw the coverage of every site with its interval, the target, the mixture and the expectation."""
        from sottovoce.server.conformal.plot import plot

        return plot(self, path)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for strict JSON: what is infinite is None."""
        predicted, spread = self.predicted, self.spread
        return {
            "threshold": finite(self.value),
            "alpha": self.alpha,
            "target": self.target,
            "level": self.level,
            "sites": [
                asdict(site)
                | {
                    "weight": self.weights[site.name],
                    "predicted": None if predicted is None else predicted.sites[site.name],
                    "quantile": None if spread is None else spread.sites[site.name],
                }
                for site in self.sites
            ],
            "mixture": self.mixture._asdict(),
            "worst": self.worst.name,
            "below": list(self.below),
            "error": self.error,
            "homogeneous": self.homogeneous,
            "predicted": None if predicted is None else predicted.mixture,
            "unpredicted": self.unpredicted,
            "spread": None
            if spread is None
            else {"least": spread.least, "median": spread.median, "largest": spread.largest},
            "private": self.private,
            "epsilon": None if self.epsilon is None else dict(self.epsilon),
            "dropped": self.dropped,
            "caveats": list(self.caveats),
        }

    def __str__(self) -> str:
        return self.summary()

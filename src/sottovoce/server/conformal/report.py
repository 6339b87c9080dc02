"""The report on a threshold's coverage: sites worst first, mixture, promise and expectation, range of quantiles."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from sottovoce.core import codec
from sottovoce.core.errors import BadInput
from sottovoce.server.conformal.judge import Mixture, SiteCoverage
from sottovoce.server.description import WIDTH, Description, finite
from sottovoce.server.stored import StoredResult

FLATTERED = "Scores that made the threshold flatter it; fresh ones judge it fairly."
OPEN = "This report is not private: it shows how many scores of each site are covered, and a quantile of each site."
ROWS = 40  # of the worst sites; the others share a line
WEIGHTS = {"sites": "sites count alike", "records": "sites count by size", "given": "given weights"}


class Prediction(NamedTuple):
    """The coverage to expect from a new calibration under the sites' own distributions: of the mixture, and at each."""

    mixture: float
    sites: Mapping[str, float]


class QuantileRange(NamedTuple):
    """How far the sites' own quantiles at the target lie apart."""

    least: float
    median: float
    largest: float
    sites: Mapping[str, float]


@dataclass(frozen=True)
class CoverageReport(StoredResult):
    """Whom a threshold fails; print it, or `summary()`, for a table."""

    kind: ClassVar[str] = "coverage-report"

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
    spread: QuantileRange | None = field(repr=False)
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
        return (FLATTERED, self.privacy_statement)

    @property
    def privacy_statement(self) -> str:
        """Return in words what the report tells of the records."""
        if self.epsilon is None:
            return f"{OPEN} That the threshold is private does not make it so." if self.private_threshold else OPEN
        worst, unit = max(self.epsilon.values()), "person" if self.per_person else "record"
        text = (
            "Each site sent one number, how many of its scores are covered, with two-sided geometric noise; whoever "
            f"sees it can shift the odds between any two values of a {unit} by at most a factor {math.exp(worst):.3g} "
            f"(epsilon {worst:.3g}, computed from the integer of the noise). "
        )
        if self.seeded:
            text += "This run used seeded dice, which anybody can throw again: it is a simulation and protects nobody. "
        return text + (
            "Not protected: which sites took part and how many scores each has; and where the same scores made the "
            "threshold, the epsilons of both rounds add up."
        )

    @property
    def promise(self) -> str:
        """Return in words what the report tells of the records; another name of ``privacy_statement``."""
        return self.privacy_statement

    def plot(self, path: str | Path) -> Path:
        """Draw the coverage of every site with its interval, the target, the mixture and the expectation."""
        from sottovoce.server.conformal.plot import plot

        return plot(self, path)

    def to_state(self) -> "CoverageReport":
        """Return the plain state the report is made from: the report itself."""
        return self

    @classmethod
    def from_state(cls, plain: Any) -> Self:
        """Make the report again from what JSON kept of its state."""
        found = codec.from_plain(plain, cls)
        names = {site.name for site in found.sites}
        parts = (found.weights, found.epsilon, found.predicted and found.predicted.sites)
        if not names or any(part is not None and set(part) != names for part in parts):
            raise BadInput("this is not a whole stored report; store it again.")
        return found

    def describe(self) -> Description:
        """Return what the report says of itself: mixture, promise, expectation, every site worst first, caveats."""
        mixture, worst = self.mixture, self.worst
        within = f"[{mixture.low:.4f}, {mixture.high:.4f}]"
        rows = [
            ("Threshold", f"{self.value:.6g}"),
            (
                "Mixture",
                f"{mixture.estimate:.4f} {within}   ({WEIGHTS[mixture.weights]}; {self.level:.4g} guaranteed)",
            ),
        ]
        if self.homogeneous is not None:
            least = "at least " if self.private_threshold else ""
            said = f"{least}{self.homogeneous:.4f}, on average over calibrations, if all sites had one distribution"
            rows.append(("Promised", said))
        if self.predicted is not None:
            rows.append(
                ("Expected", f"{self.predicted.mixture:.4f}, likewise, under the distributions the sites do have")
            )
        elif self.homogeneous is not None:
            rows.append(("Expected", f"not known under the sites' own distributions: {self.unpredicted}"))
        rows.append(("Worst", f"{worst.name}: {worst.coverage:.4f} [{worst.low:.4f}, {worst.high:.4f}]"))
        rows.append(("Below", _verdict(self)))
        if (own := self.spread) is not None:
            ends = f"{own.least:.6g} to {own.largest:.6g}"
            rows.append((f"Own {self.target:.4g}", f"quantiles from {ends}, median {own.median:.6g}"))
        if self.dropped:
            rows.append(("Left out", f"{self.dropped:,} missing values"))
        statement = ("Caution" if self.epsilon is None else "Protected", self.privacy_statement)
        title = f"Coverage by site, target {self.target:.6g}"
        return Description(title, rows, _table(self), [("Caution", FLATTERED), statement], self._plain_values())

    def _plain_values(self) -> dict[str, Any]:
        """Return everything as plain values, ready for strict JSON: what is infinite is None."""
        predicted, own = self.predicted, self.spread
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
                    "quantile": None if own is None else own.sites[site.name],
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
            "spread": None if own is None else {"least": own.least, "median": own.median, "largest": own.largest},
            "private": self.private,
            "epsilon": None if self.epsilon is None else dict(self.epsilon),
            "dropped": self.dropped,
            "caveats": list(self.caveats),
        }


def _verdict(report: CoverageReport) -> str:
    """Say how many sites fail the target beyond chance."""
    count, number = len(report.below), len(report.sites)
    if not count:
        return f"no site is below {report.target:.6g} beyond chance"
    return (
        f"{count:,} of {number:,} site{'' if number == 1 else 's'} (marked *) {'is' if count == 1 else 'are'} below "
        f"{report.target:.6g} beyond chance: one or more wrongly so with probability {report.error:.3g} at most (Holm)"
    )


def _table(report: CoverageReport) -> list[str]:
    """Lay out the sites, worst first; what is not known has no column."""
    shown = report.sites if len(report.sites) <= ROWS else report.sites[: ROWS - 1]
    columns = {
        "scores": [f"{site.n:,}" for site in shown],
        "covered": [f"{site.covered:,}" for site in shown],
        "coverage": [f"{site.coverage:.4f}{'*' if site.below else ' '}" for site in shown],
        f"{report.level:.4g} interval": [f"[{site.low:.4f}, {site.high:.4f}]" for site in shown],
    }
    if (predicted := report.predicted) is not None:
        columns["expected"] = [f"{predicted.sites[site.name]:.4f}" for site in shown]
    if (own := report.spread) is not None:
        columns[f"own {report.target:.3g}"] = [f"{own.sites[site.name]:.4g}" for site in shown]
    if report.epsilon is not None:
        columns["epsilon"] = [f"{report.epsilon[site.name]:.3g}" for site in shown]
    wide = {title: max(map(len, [title, *cells])) for title, cells in columns.items()}
    room = WIDTH - sum(wide.values()) - 2 * len(wide)
    lines = [_line("site", room, {title: (title, width) for title, width in wide.items()}), "-" * WIDTH]
    for place, site in enumerate(shown):
        lines.append(_line(site.name, room, {title: (columns[title][place], width) for title, width in wide.items()}))
    rest = report.sites[len(shown) :]
    if rest:
        lines.append(f"and {len(rest):,} more, coverage {rest[0].coverage:.4f} to {rest[-1].coverage:.4f}")
    return lines


def _line(name: str, room: int, cells: dict[str, tuple[str, int]]) -> str:
    """Lay one line of the table."""
    shown = name if len(name) <= room else name[: room - 1] + "…"
    return f"{shown:<{room}}" + "".join(f"  {text:>{width}}" for text, width in cells.values())

"""What every conformal threshold tells, however it was made: its value, its guarantee, its sites and their privacy."""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce.server.conformal.plan import SiteFacts, noise_warnings
from sottovoce.server.conformal.settings import ConformalSettings
from sottovoce.server.description import finite
from sottovoce.server.stored import StoredResult

if TYPE_CHECKING:
    from sottovoce.server.conformal.report import CoverageReport

HOLDS_FOR = (
    "new scores that come from the sites' common distribution; where sites differ, one threshold can hold on average "
    "and fail some sites badly: report(scores) shows which"
)
NOT_PROTECTED = (
    "Not protected: which sites took part, how many scores and missing values each holds; and where one individual "
    "gave several records, or several studies ask the same ones, epsilons add up."
)


class CoverageDistribution(NamedTuple):
    """The probability that one calibration covers at least each level."""

    levels: Floats
    at_least: Floats


class ThresholdState(NamedTuple):
    """What every stored threshold is made from again."""

    value: float
    settings: ConformalSettings
    names: tuple[str, ...]
    facts: tuple[SiteFacts, ...]
    spent: tuple[float, ...] | None
    edges: tuple[float, ...]
    seeded: bool
    per_person: bool
    dropped: int


@dataclass(frozen=True, kw_only=True)
class Threshold(StoredResult):
    """A threshold for scores; print it, or `summary()`, for a table."""

    # who can report on scores, which no server holds: `api.conformal` says so when it is there
    reporter: ClassVar[Callable[..., "CoverageReport"] | None] = None

    value: float
    settings: ConformalSettings = field(repr=False)
    names: tuple[str, ...]
    facts: tuple[SiteFacts, ...] = field(repr=False)
    spent: tuple[float, ...] | None = field(repr=False)
    edges: tuple[float, ...] = field(repr=False)
    seeded: bool = field(repr=False)
    per_person: bool = field(repr=False)
    dropped: int = field(repr=False)
    # for whoever holds the scores, and kept out of everything that is passed on
    hints: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    @abstractmethod
    def coverage(self) -> float:
        """Return the mean coverage over calibrations, or what it is at least."""

    @property
    @abstractmethod
    def confidence(self) -> float:
        """Return the probability that one calibration covers at least 1 - alpha, or what it is at least."""

    @property
    def sd(self) -> float:
        """Return the standard deviation of the coverage over calibrations; nan where its distribution is not known."""
        return math.nan

    @property
    def spread(self) -> float:
        """Return the standard deviation of the coverage over calibrations; another name of ``sd``."""
        return self.sd

    @property
    def rank(self) -> int | None:
        """Return the rank of the threshold among all votes; None where answers were summed."""
        return None

    @property
    def orders(self) -> Mapping[str, tuple[int, ...]]:
        """Return which order statistics each site was asked for; none where answers were summed."""
        return dict.fromkeys(self.names, ())

    @property
    def votes(self) -> Mapping[str, int]:
        """Return how many votes each value of a site has."""
        return dict.fromkeys(self.names, 1)

    @property
    def distribution(self) -> CoverageDistribution:
        """Return the distribution of the coverage over calibrations."""
        raise BadInput(f"mechanism {self.mechanism!r} knows bounds of its coverage alone; plot report(scores).")

    @property
    def law(self) -> CoverageDistribution:
        """Return `distribution`, by its former name."""
        return self.distribution

    @property
    @abstractmethod
    def privacy_statement(self) -> str:
        """Return what is protected, and what is not."""

    @property
    def promise(self) -> str:
        """Return what is protected, and what is not; another name of ``privacy_statement``."""
        return self.privacy_statement

    @property
    @abstractmethod
    def infinite_chance(self) -> float:
        """Return the chance (at most) of an infinite set even if no score lies beyond the grid."""

    @property
    @abstractmethod
    def warnings(self) -> tuple[str, ...]:
        """Return what is worth knowing before the threshold is used."""

    def noise_warnings(self) -> tuple[str, ...]:
        """Say how often noise alone makes the set infinite, unless that is rare."""
        return noise_warnings(self.infinite_chance)

    @property
    def alpha(self) -> float:
        """Return the part of new scores that may lie above the threshold."""
        return self.settings.alpha

    @property
    def guarantee(self) -> str:
        """Return what is promised: "marginal" or "training-conditional"."""
        return self.settings.guarantee

    @property
    def mechanism(self) -> str | None:
        """Return how sites answered in private; None without privacy."""
        return self.settings.mechanism

    @property
    def sizes(self) -> Mapping[str, int]:
        """Return the number of scores of each site."""
        return {name: fact.size for name, fact in zip(self.names, self.facts, strict=True)}

    @property
    def epsilon(self) -> Mapping[str, float] | None:
        """Return what a record pays at each site, computed from the integers of its mechanism; None without privacy."""
        return None if self.spent is None else dict(zip(self.names, self.spent, strict=True))

    @property
    def private(self) -> bool:
        """Tell whether every site's scores are protected, and the dice nobody's."""
        return self.spent is not None and all(map(math.isfinite, self.spent)) and not self.seeded

    @property
    def estimand(self) -> str:
        """Return in words what is promised."""
        level = f"{1 - self.alpha:.6g}"
        if self.settings.conditional:
            return (
                f"covers a new score with probability {level} or more, in {1 - self.settings.delta:.6g} of calibrations"
            )
        exactly = "exactly " if self.settings.exact else "at least "
        return f"covers a new score with probability {exactly}{level}, on average over calibrations"

    def report(self, scores: Any, **settings: Any) -> "CoverageReport":
        """Report the coverage site by site, worst first, where the scores are; see `sv.coverage_report`."""
        if self.reporter is None:
            raise BadInput("a report needs scores, which are not here; call sv.coverage_report(threshold, scores).")
        return type(self).reporter(self, scores, **settings)  # type: ignore[misc]

    def plot(self, path: str | Path) -> Path:
        """Draw the distribution of the coverage over calibrations."""
        from sottovoce.server.conformal.plot import plot_distribution

        return plot_distribution(self, path)

    def __getstate__(self) -> dict[str, Any]:
        """Leave at home what is for whoever holds the scores, and what can be computed again."""
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"hints": ()}

    def state(self) -> ThresholdState:
        """Return what every threshold is stored by."""
        return ThresholdState(*(getattr(self, name) for name in ThresholdState._fields))

    def plain_values(self) -> dict[str, Any]:
        """Return everything that may be passed on, in plain numbers."""
        return {
            "value": finite(self.value),
            "infinite": self.value == math.inf,
            "empty": self.value == -math.inf,
            "coverage": self.coverage,
            "confidence": self.confidence,
            "alpha": self.alpha,
            "guarantee": self.guarantee,
            "delta": self.settings.delta if self.settings.conditional else None,
            "mechanism": self.mechanism,
            "private": self.private,
            "estimand": self.estimand,
            "bins": len(self.edges) or None,
            "grid_end": self.edges[-1] if self.edges else None,
            "dropped": self.dropped,
            "infinite_chance": self.infinite_chance,
            "promise": self.privacy_statement,
            "warnings": list(self.warnings),
            "sites": [
                {
                    "name": name,
                    "scores": fact.size,
                    "epsilon": None if self.spent is None else finite(self.spent[i]),
                }
                for i, (name, fact) in enumerate(zip(self.names, self.facts, strict=True))
            ],
        }

    def text_value(self) -> str:
        """Return the threshold in words."""
        if math.isinf(self.value):
            return "infinite: the prediction set holds everything" if self.value > 0 else "minus infinity: an empty set"
        return f"{self.value:.6g}"


def check_state(state: ThresholdState) -> None:
    """Refuse a stored threshold of which parts are missing."""
    sites, spent = len(state.names), state.spent
    if len(state.facts) != sites or (spent is not None and len(spent) != sites) or math.isnan(state.value):
        raise BadInput("this is not a whole stored threshold; store it again.")

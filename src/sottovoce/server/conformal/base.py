"""What every conformal threshold tells, however it was made: its value, its guarantee, its sites and their privacy."""

import math
import os
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from sottovoce.core.arrays import Floats
from sottovoce.core.digits import number_text
from sottovoce.core.errors import BadInput
from sottovoce.server.conformal.plan import SiteFacts, noise_warnings
from sottovoce.server.conformal.settings import ConformalSettings
from sottovoce.server.description import Outside, finite, of_column, protection
from sottovoce.server.picture import check_path, save
from sottovoce.server.stored import StoredResult

if TYPE_CHECKING:
    from sottovoce.server.conformal.report import CoverageReport

HOLDS_FOR = (
    "new scores that come from the sites' common distribution; where sites differ, one threshold can hold on average "
    "and fail some sites badly: coverage_by_site(scores) shows which"
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
    column: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
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
    column: str = field(default="", repr=False)
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
        raise BadInput(
            f"mechanism {self.mechanism!r} knows bounds of its coverage alone; plot coverage_by_site(scores)."
        )

    @property
    def law(self) -> CoverageDistribution:
        """Return `distribution`, by its former name."""
        from sottovoce.core.deprecation import say_former

        say_former("law", "distribution", since="0.1.0", gone="0.3.0")
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

    def coverage_by_site(self, scores: Any, **settings: Any) -> "CoverageReport":
        """Return the coverage site by site, worst first, where the scores are; see `sv.coverage_report`."""
        if self.reporter is None:
            raise BadInput("coverage needs scores, which are not here; call sv.coverage_report(threshold, scores).")
        return type(self).reporter(self, scores, **settings)  # type: ignore[misc]

    def report(self, path: str | os.PathLike[str], **settings: Any) -> Path:
        """Write one page on the threshold for readers outside: question, answer, picture, privacy, limits, settings.

        Parameters
        ----------
        path
            A file that ends in .html. For the coverage by site, call `coverage_by_site(scores)`.
        """
        if settings or not isinstance(path, str | os.PathLike):
            raise BadInput("report(path) writes a page; the coverage by site is coverage_by_site(scores).")
        return super().report(path)

    def plot(self, path: str | os.PathLike[str]) -> Path:
        """Draw the distribution of the coverage over calibrations."""
        target = check_path(path)
        return save(self.draw(), target)

    def draw(self) -> Any:
        """Return the picture of `plot`, as a figure of matplotlib."""
        from sottovoce.server.conformal.plot import draw_distribution

        return draw_distribution(self)

    @property
    def headline(self) -> str:
        """Return the threshold in one line."""
        value = number_text(self.value) if math.isfinite(self.value) else self.text_value().partition(":")[0]
        paid = "no privacy: sites sent scores" if self.spent is None else protection(self.spent, self.private)
        least = "at least " if self.spent is not None else ""
        coverage = f"coverage {least}{self.coverage:.4f}, wanted {1 - self.alpha:.6g}"
        return f"threshold{of_column(self.column)}: {value} ({coverage}), {paid}"

    def outside(self, coverage: str) -> Outside:
        """Return what somebody outside the study asks."""
        scores, sites = sum(fact.size for fact in self.facts), len(self.names)
        what = f"score ({self.column})" if self.column else "score"
        question = (
            f"Up to which {what} does a prediction set reach that misses a new case with probability {self.alpha:.6g} "
            f"at most? {scores:,} scores at {sites:,} site{'' if sites == 1 else 's'} were used."
        )
        settings = [
            ("Scores", self.column or "(without a name)"),
            ("Part that may be missed (alpha)", f"{self.alpha:.6g}"),
            ("Guarantee", self.guarantee),
            ("Mechanism", self.mechanism or "none: sites sent scores"),
            ("Unit of privacy", "the person" if self.per_person else "the record"),
        ]
        assumed = (
            "New scores come from the distribution that the sites' scores have in common.",
            "The model was fitted without the records of these scores, and the public grid without a look at them.",
        )
        answer = f"{self.text_value()}. Coverage: {coverage}."
        return Outside(question, answer, self.privacy_statement, assumed, tuple(settings))

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
            "column": self.column or None,
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
        return number_text(self.value)


def check_state(state: ThresholdState) -> None:
    """Refuse a stored threshold of which parts are missing."""
    sites, spent = len(state.names), state.spent
    if len(state.facts) != sites or (spent is not None and len(spent) != sites) or math.isnan(state.value):
        raise BadInput("this is not a whole stored threshold; store it again.")

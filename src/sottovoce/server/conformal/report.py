"""The report on a threshold's coverage, and the one round of counts it is made of.

Sites worst first, mixture, promise and expectation, range of quantiles.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from sottovoce.core import codec
from sottovoce.core.checks import rest_of
from sottovoce.core.errors import BadInput
from sottovoce.inference.conformal import CoverageSaid, Mixture, SiteCoverage, judge, mix
from sottovoce.protocol.card import Card
from sottovoce.protocol.messages import CoverageCount, CoverageQuery, Message
from sottovoce.protocol.selection.geometric import NoisyCount
from sottovoce.server.conformal.one_round import OneRound
from sottovoce.server.conformal.plan import Participants
from sottovoce.server.conformal.summary import FLATTERED, describe
from sottovoce.server.description import Description, percent, protection
from sottovoce.server.picture import check_path, save
from sottovoce.server.stored import StoredResult

OPEN = "This report is not private: it shows how many scores of each site are covered, and a quantile of each site."

ROUNDING = 1e-12  # 0.9 * 10 is a little less than 9: what floats cannot tell apart counts as equal
FARTHEST = 70.0  # over epsilon: noise goes beyond it with probability exp(-70), so an honest count is never refused


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


@dataclass(frozen=True, repr=False)
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
    column: str = field(default="", repr=False)
    # the threshold of each site, where it has its own; ``value`` is then the largest
    values: Mapping[str, float] | None = field(default=None, repr=False)

    @property
    def target(self) -> float:
        """Return the coverage that is wanted."""
        return rest_of(self.alpha)

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
        target = check_path(path)
        return save(self.draw(), target)

    def draw(self) -> Any:
        """Return the picture of `plot`, as a figure of matplotlib."""
        from sottovoce.server.conformal.plot import draw

        return draw(self)

    @property
    def headline(self) -> str:
        """Return the report in one line."""
        mixture, worst, count = self.mixture, self.worst, len(self.below)
        ends = f"{mixture.estimate:.3f} [{mixture.low:.3f}, {mixture.high:.3f}]"
        lowest = f"worst {worst.coverage:.3f} at {worst.name}, {count:,} of {len(self.sites):,} below"
        paid = "not private" if self.epsilon is None else protection(self.epsilon.values(), self.private)
        return f"coverage by site: {ends} ({percent(self.level)}), wanted {self.target:.6g}; {lowest}; {paid}"

    def to_state(self) -> "CoverageReport":
        """Return the plain state the report is made from: the report itself."""
        return self

    @classmethod
    def from_state(cls, plain: Any) -> Self:
        """Make the report again from what JSON kept of its state."""
        found = codec.from_plain(plain, cls)
        names = {site.name for site in found.sites}
        parts = (found.weights, found.epsilon, found.predicted and found.predicted.sites, found.values)
        if not names or any(part is not None and set(part) != names for part in parts):
            raise BadInput("this is not a whole stored report; store it again.")
        return found

    def describe(self) -> Description:
        """Return what the report says of itself: mixture, promise, expectation, every site worst first, caveats."""
        return self.with_cost(describe(self))


@dataclass(frozen=True)
class CoveragePlan:
    """What is judged, and how: nothing of it depends on a score.

    Without ``noises`` the report is not private; ``homogeneous`` is the coverage that was promised if all sites are
    alike, where it is known. ``values`` are the thresholds of the sites, where each has one of its own.
    """

    value: float
    alpha: float
    level: float
    weights: tuple[float, ...]
    weights_name: str
    noises: tuple[NoisyCount, ...] | None = None
    homogeneous: float | None = None
    private_threshold: bool = False
    values: tuple[float, ...] = ()

    def value_at(self, place: int) -> float:
        """Return the threshold that the scores of a site are judged by."""
        return self.values[place] if self.values else self.value

    def queries(self, who: Participants) -> list[CoverageQuery]:
        """Return what each site is asked; one without privacy also tells its own quantile at the target."""
        if self.noises is not None:
            return [CoverageQuery(self.value_at(i), noise.numerator) for i, noise in enumerate(self.noises)]
        tau = (1 - self.alpha) * (1 - ROUNDING)
        ranks = [max(math.ceil(fact.size * tau), 1) for fact in who.facts]
        return [CoverageQuery(self.value_at(i), 0, (rank,)) for i, rank in enumerate(ranks)]

    def card(self, who: Participants, name: str = "") -> Card:
        """Return the card of the study: what every party agrees on."""
        terms = {
            "threshold": list(self.values) if self.values else self.value,
            "alpha": self.alpha,
            "level": self.level,
            "sites": list(who.names),
            "sizes": [fact.size for fact in who.facts],
            "noise": None if self.noises is None else [noise.numerator for noise in self.noises],
        }
        return Card("coverage", terms, name)


class Counts(NamedTuple):
    """How many scores of each site are covered, and its own quantile; None where it has not answered."""

    said: tuple[tuple[int, tuple[float, ...]] | None, ...]


class CoverageMethod(OneRound[Counts, tuple[int, tuple[float, ...]], CoverageReport]):
    """Counts how many scores of each site a threshold covers.

    >>> from sottovoce.server.conformal.plan import SiteFacts
    >>> who = Participants(("north", "south"), (SiteFacts(100, math.inf), SiteFacts(50, math.inf)))
    >>> method = CoverageMethod(CoveragePlan(1.5, 0.1, 0.95, (0.5, 0.5), "sites"), who)
    >>> state = method.step(method.init(), [CoverageCount(91, (1.4,)), None])
    >>> state = method.step(state, [None, CoverageCount(40, (2.0,))])
    >>> report = method.outcome(state)
    >>> report.worst.name, report.below, round(report.mixture.estimate, 3)
    ('south', (), 0.855)
    """

    replies = (CoverageCount,)
    state = Counts

    def __init__(self, plan: CoveragePlan, who: Participants) -> None:
        self._asked = plan.queries(who)
        super().__init__(self._asked, [fact.size for fact in who.facts])
        self._plan, self._who = plan, who

    def init(self) -> Counts:
        """Return the state before anything was asked."""
        return Counts((None,) * len(self.messages))

    def heard(self, state: Counts) -> Sequence[bool]:
        """Tell which sites have answered."""
        return [said is not None for said in state.said]

    def read(self, place: int, reply: Message) -> tuple[int, tuple[float, ...]]:
        """Return the count of a site, and its own quantile where it was asked for."""
        size, orders = self._sizes[place], self._asked[place].orders
        if not isinstance(reply, CoverageCount) or len(reply.values) != len(orders):
            self.refuse(place, f"a count with {len(orders)} scores")
        if not all(map(math.isfinite, reply.values)):
            self.refuse(place, "a count with a finite quantile")
        reach = 0
        if self._plan.noises is not None:
            reach = math.ceil(FARTHEST / -math.log(self._plan.noises[place].fall))
        if not -reach <= reply.covered <= size + reach:
            self.refuse(place, f"a count of {size:,} scores")
        if orders and (reply.values[0] <= self._plan.value_at(place)) != (reply.covered >= orders[0]):
            self.refuse(place, "a count and a quantile that agree")
        return reply.covered, reply.values

    def added(self, state: Counts, said: Sequence[tuple[int, tuple[float, ...]] | None]) -> Counts:
        """Return the state with what some sites have said."""
        return Counts(tuple(old if new is None else new for old, new in zip(state.said, said, strict=True)))

    def outcome(self, state: Counts) -> CoverageReport:
        """Return the report; what to expect of a new calibration is for whoever holds all scores to add."""
        self.finished(state)
        plan, names = self._plan, self._who.names
        counts = [said for said in state.said if said is not None]
        falls = [0.0] * len(names) if plan.noises is None else [noise.fall for noise in plan.noises]
        said = [
            CoverageSaid(covered, size, fall)
            for (covered, _), size, fall in zip(counts, self._sizes, falls, strict=True)
        ]
        own = {name: values[0] for name, (_, values) in zip(names, counts, strict=True) if values}
        spent = None if plan.noises is None else {n: noise.epsilon for n, noise in zip(names, plan.noises, strict=True)}
        noisy = "each site told a noisy count, and nothing of its distribution"
        return CoverageReport(
            value=plan.value,
            alpha=plan.alpha,
            level=plan.level,
            sites=judge(names, said, 1 - plan.alpha, plan.level),
            mixture=mix(said, plan.weights, plan.weights_name, plan.level),
            weights=dict(zip(names, plan.weights, strict=True)),
            homogeneous=plan.homogeneous,
            predicted=None,
            unpredicted=noisy if spent is not None else "the scores of all sites are not in one place",
            spread=_range(own) if own else None,
            epsilon=spent,
            seeded=self._who.seeded,
            private_threshold=plan.private_threshold,
            dropped=self._who.dropped,
            per_person=self._who.per_person,
            column=self._who.column,
            values=dict(zip(names, plan.values, strict=True)) if plan.values else None,
        )


def _range(own: Mapping[str, float]) -> QuantileRange:
    """Return how far the sites' own quantiles lie apart."""
    values = list(own.values())
    return QuantileRange(min(values), float(np.median(values)), max(values), own)

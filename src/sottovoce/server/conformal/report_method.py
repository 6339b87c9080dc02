"""One round in which each site counts how many of its scores a threshold covers, and the report made of the counts."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sottovoce.protocol.card import Card
from sottovoce.protocol.messages import CoverageCount, CoverageQuery, Message
from sottovoce.protocol.selection.geometric import NoisyCount
from sottovoce.server.conformal.judge import CoverageSaid, judge, mix
from sottovoce.server.conformal.one_round import OneRound
from sottovoce.server.conformal.plan import Participants
from sottovoce.server.conformal.report import CoverageReport, QuantileRange

ROUNDING = 1e-12  # 0.9 * 10 is a little less than 9: what floats cannot tell apart counts as equal
FARTHEST = 70.0  # over epsilon: noise goes beyond it with probability exp(-70), so an honest count is never refused


@dataclass(frozen=True)
class CoveragePlan:
    """What is judged, and how: nothing of it depends on a score.

    Parameters
    ----------
    value, alpha
        The threshold, and the part of the scores that it may miss.
    level
        The confidence level of every interval.
    weights, weights_name
        What each site counts in the mixture, and what that is called.
    noises
        The noise of each site's count; None for a report that is not private.
    homogeneous
        The coverage that was promised if all sites are alike, where it is known.
    private_threshold
        Whether the threshold is private.
    """

    value: float
    alpha: float
    level: float
    weights: tuple[float, ...]
    weights_name: str
    noises: tuple[NoisyCount, ...] | None = None
    homogeneous: float | None = None
    private_threshold: bool = False

    def queries(self, who: Participants) -> list[CoverageQuery]:
        """Return what each site is asked; one without privacy also tells its own quantile at the target."""
        if self.noises is not None:
            return [CoverageQuery(self.value, noise.numerator) for noise in self.noises]
        tau = (1 - self.alpha) * (1 - ROUNDING)
        return [CoverageQuery(self.value, 0, (max(math.ceil(fact.size * tau), 1),)) for fact in who.facts]

    def card(self, who: Participants, name: str = "") -> Card:
        """Return the card of the study: what every party agrees on."""
        terms = {
            "threshold": self.value,
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

    Parameters
    ----------
    plan
        What is judged.
    who
        The sites.

    Examples
    --------
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
        if orders and (reply.values[0] <= self._plan.value) != (reply.covered >= orders[0]):
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
        )


def _range(own: Mapping[str, float]) -> QuantileRange:
    """Return how far the sites' own quantiles lie apart."""
    values = list(own.values())
    return QuantileRange(min(values), float(np.median(values)), max(values), own)

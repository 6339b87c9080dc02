"""A conformal threshold: between which levels of the scores it will lie, which is how far its coverage strays."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.planner.crowd import PlannedCrowd
from sottovoce.planner.question import Budgets, PlannedWidth, Yardstick
from sottovoce.server.conformal.base import Threshold
from sottovoce.server.conformal.expected import RANGE, SAME, explain_threshold
from sottovoce.server.conformal.methods import check_edges, method_of, settle
from sottovoce.server.conformal.plan import Participants, SiteFacts, card_of
from sottovoce.server.conformal.settings import (
    AUTO,
    ConformalSettings,
    check_budgets,
    check_settings,
)

MODELS = {
    "local": "one randomised bit a score (mechanism 'local')",
    "aggregate": "noisy counts into a secure sum (mechanism 'aggregate')",
    AUTO: "one private message a site, each site trusted with its own scores (mechanism 'auto')",
}
OPEN = "no privacy: one order statistic a site"


@dataclass(frozen=True)
class ConformalQuestion:
    """The threshold that a part alpha of new scores exceeds at most."""

    agreed: ConformalSettings
    bins: int | None = None

    @property
    def title(self) -> str:
        """Return what is asked, in words."""
        return f"a conformal threshold, alpha = {self.agreed.alpha:g}"

    @property
    def unit(self) -> str:
        """Return in what the widths are told."""
        return "levels"

    @property
    def assumption(self) -> str:
        """Return what the widths rest on."""
        grid = ", but for the public grid, which adds up to one of its steps" if self.agreed.pooled else ""
        return f"{SAME}; the range of {RANGE:.0%} of calibrations, in levels of the scores{grid}"

    def settings(self) -> dict[str, Any]:
        """Return the settings as plain values."""
        return {"alpha": self.agreed.alpha, "mechanism": self.agreed.mechanism, "guarantee": self.agreed.guarantee}

    def widths(self, crowd: PlannedCrowd, epsilon: Budgets) -> list[PlannedWidth]:
        """Return between which levels the threshold will lie, or raise `Infeasible`."""
        promised = self._promised(crowd, epsilon)
        if promised.infinite_chance > (1 - RANGE) / 2:
            return [PlannedWidth("threshold", math.inf, math.inf, math.inf)]
        [width] = explain_threshold(promised, ()).widths
        return [PlannedWidth("threshold", width.value, width.value, width.value, width.low, width.high)]

    def wished(self, widths: Sequence[PlannedWidth]) -> Sequence[PlannedWidth]:
        """Return the intervals that one number for all is about."""
        return widths

    def warnings(self, crowd: PlannedCrowd, epsilon: Budgets) -> Sequence[str]:
        """Return what is worth knowing before anything is sent."""
        return [each for each in self._promised(crowd, epsilon).warnings if "threshold is" not in each]

    def yardsticks(self, crowd: PlannedCrowd, epsilon: Budgets) -> list[Yardstick]:
        """Return the other ways to protect the same scores, and none; where none is wanted, there is no other."""
        if self.agreed.mechanism is None:
            return []
        found = []
        for model, how in MODELS.items():
            if model != (self.agreed.mechanism if self.agreed.mechanism in MODELS else AUTO):
                other = replace(self, agreed=replace(self.agreed, mechanism=model, rule="closest"), bins=None)
                found.append(Yardstick(model, (_width(other, crowd, epsilon),), how))
        bare = replace(self, agreed=replace(self.agreed, mechanism=None), bins=None)
        return [*found, Yardstick("no privacy", (_width(bare, crowd, epsilon),), OPEN)]

    def _promised(self, crowd: PlannedCrowd, epsilon: Budgets) -> Threshold:
        """Return the threshold as it will be, but for its value."""
        [group] = crowd.groups
        settings, private = self.agreed, self.agreed.mechanism is not None
        budgets = check_budgets(epsilon if private else None, group.sites)
        facts = tuple(SiteFacts(round(size), paid) for size, paid in zip(group.sizes, budgets, strict=True))
        who = Participants(group.sites, facts)
        grid = check_edges(None, 1.0, self.bins, None, True) if private else None
        settled = settle(settings, grid, facts)
        method: Any = method_of(who, settled.settings, settled.line, card_of(who, settled.settings, settled.line))
        promised: Threshold = method.promised()
        return promised


def _width(question: ConformalQuestion, crowd: PlannedCrowd, epsilon: Budgets) -> float:
    """Return the width under another mechanism; infinite where the scores are too few for it."""
    try:
        return question.widths(crowd, epsilon)[0].value
    except Infeasible:
        return math.inf


def conformal_settings(alpha: Any, mechanism: Any, guarantee: Any, private: bool) -> ConformalSettings:
    """Return the settings of a threshold, checked; without privacy there is no mechanism."""
    if not private and mechanism is not None:
        raise BadInput("mechanism belongs to epsilon, and epsilon=inf is no privacy; leave mechanism out.")
    return check_settings(alpha, guarantee, 0.1, "closest", 1, False, mechanism or AUTO, private)

"""One site helped by others: the width of the target's own interval, which no source can lengthen by more than 3 %."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sottovoce.core.roster import Roster
from sottovoce.core.unit import NUMBER
from sottovoce.planner.crowd import PlannedCrowd
from sottovoce.planner.guess import PublicGuess, ToldWidth
from sottovoce.planner.quantile import QuantileQuestion, own
from sottovoce.planner.question import Budgets, PlannedWidth, Yardstick
from sottovoce.server.integration.expected import HELP, expected_own
from sottovoce.server.integration.plan import IntegrationPlan, IntegrationSettings, check_settings, plan_integration
from sottovoce.server.quantile.expected import is_far

METHODS = ("valid", "conservative")


@dataclass(frozen=True)
class IntegrationQuestion:
    """The quantile of the target; the sources are who else answers."""

    tau: float
    target: str
    settings_: IntegrationSettings
    guess: PublicGuess
    public: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def title(self) -> str:
        """Return what is asked, in words."""
        return f"the {self.tau:g} quantile of {self.target}, helped by others"

    @property
    def unit(self) -> str:
        """Return in what the widths are told."""
        return "levels" if self.guess.kind == "none" else "values"

    @property
    def assumption(self) -> str:
        """Return what the widths rest on."""
        return f"the target's own interval, {HELP[self.settings_.method]}; a smooth density; {self.guess.words}"

    def settings(self) -> dict[str, Any]:
        """Return the settings as plain values."""
        return {"tau": self.tau, "method": self.settings_.method, "level": self.settings_.level, "target": self.target}

    def widths(self, crowd: PlannedCrowd, epsilon: Budgets) -> list[PlannedWidth]:
        """Return how wide the target's interval will be, or raise `Infeasible`."""
        plan = self._plan(crowd, epsilon)
        told = expected_own(plan, plan.target)
        low, high = told.low or 0.0, 1.0 if told.high is None else told.high
        study, value = plan.target.study, self.guess.told(self.tau, low, high)
        if plan.target.certified and study is not None and study.bounds is None and self.unit == "values":
            value = ToldWidth(*[math.inf] * 3) if is_far(study, "certified", low, high) else value
        return [PlannedWidth(self.target, *value, low, high)]

    def wished(self, widths: Sequence[PlannedWidth]) -> Sequence[PlannedWidth]:
        """Return the intervals that one number for all is about."""
        return widths

    def warnings(self, crowd: PlannedCrowd, epsilon: Budgets) -> Sequence[str]:
        """Return what is worth knowing before anybody is asked."""
        return self._plan(crowd, epsilon).warnings

    def yardsticks(self, crowd: PlannedCrowd, epsilon: Budgets) -> list[Yardstick]:
        """Return what the target alone would have under other models of trust."""
        [group] = crowd.groups
        at = group.sites.index(self.target)
        alone = replace(group, sites=(self.target,), sizes=(group.sizes[at],))
        question = QuantileQuestion(self.tau, "certified", self.settings_.level, self.guess)
        return question.yardsticks(PlannedCrowd((alone,), known=True), own(epsilon, group))

    def _plan(self, crowd: PlannedCrowd, epsilon: Budgets) -> IntegrationPlan:
        """Return the plan of so many people."""
        [group] = crowd.groups
        roster = Roster(group.sites, tuple(map(round, group.sizes)), NUMBER)
        names = (self.target, *(site for site in group.sites if site != self.target))
        return plan_integration(self.settings_, names, roster, {}, self.tau, epsilon, **self.public)


def integration_settings(tau: float, method: str, level: float) -> IntegrationSettings:
    """Return the settings of an integration, checked.

    >>> integration_settings(0.5, "valid", 0.95).method
    'valid'
    """
    return check_settings(method, level, tau, "printed", "z", 1.96, None, 10)

"""A regression: the widths of its coefficients, by the server's own prediction of its default inference.

What a regression's widths rest on is behind one function, `expected_widths` of `server.regression.expected`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sottovoce.core.bounds import read_bounds
from sottovoce.core.errors import BadInput
from sottovoce.planner.crowd import PlannedCrowd
from sottovoce.planner.guess import PublicGuess
from sottovoce.planner.question import Budgets, PlannedWidth, Yardstick
from sottovoce.protocol.randomised_response import binary
from sottovoce.server.regression.design import design_of
from sottovoce.server.regression.expected import barely, expected_widths
from sottovoce.server.regression.feasibility import check
from sottovoce.server.regression.plan import RegressionPlan
from sottovoce.server.regression.settings import DEFAULTS, read_settings

OPEN = "no privacy: the same inference from exact scores"


@dataclass(frozen=True)
class RegressionQuestion:
    """How a quantile depends on columns with public bounds."""

    taus: Any
    level: float
    guess: PublicGuess
    features: tuple[tuple[str, tuple[float, float]], ...]

    @property
    def title(self) -> str:
        """Return what is asked, in words."""
        taus = self.taus if isinstance(self.taus, tuple) else (self.taus,)
        columns = f"{len(self.features)} column{'s' if len(self.features) > 1 else ''}"
        return f"how the {', '.join(f'{tau:g}' for tau in taus)} quantile depends on {columns}"

    @property
    def unit(self) -> str:
        """Return in what the widths are told."""
        return "levels" if self.guess.kind == "none" else "values"

    @property
    def assumption(self) -> str:
        """Return what the widths rest on."""
        ends = "" if self.unit == "values" else ", from the middle of a column to its end"
        return f"covariates spread evenly between their bounds; {self.guess.words}{ends}"

    def settings(self) -> dict[str, Any]:
        """Return the settings as plain values."""
        taus = list(self.taus) if isinstance(self.taus, tuple) else self.taus
        return {"tau": taus, "level": self.level, "features": {name: list(ends) for name, ends in self.features}}

    def widths(self, crowd: PlannedCrowd, epsilon: Budgets) -> list[PlannedWidth]:
        """Return how wide every interval will be, or raise `Infeasible`."""
        plan, people = self._plan(_one(epsilon)), round(crowd.total)
        check(people, plan.design, plan.settings)
        return self._told(plan, people)

    def wished(self, widths: Sequence[PlannedWidth]) -> Sequence[PlannedWidth]:
        """Return the slopes: an intercept is far from the data, and in another unit."""
        return [each for each in widths if not each.of.startswith("intercept")]

    def warnings(self, crowd: PlannedCrowd, epsilon: Budgets) -> Sequence[str]:
        """Return what is worth knowing before anybody is asked."""
        return barely(self._plan(_one(epsilon)), round(crowd.total))

    def yardsticks(self, crowd: PlannedCrowd, epsilon: Budgets) -> list[Yardstick]:
        """Return the widths without privacy; for a trusted curator's regression no formula is known here."""
        del epsilon
        told = expected_widths(self._plan(math.inf), round(crowd.total))
        return [Yardstick("no privacy", tuple(each.value for each in told), OPEN)]

    def _told(self, plan: RegressionPlan, people: int) -> list[PlannedWidth]:
        """Return the widths of all coefficients; shapes matter by the density at the quantile alone."""
        told = expected_widths(plan, people)
        return [PlannedWidth(each.of, each.value, each.value, each.value) for each in told]

    def _plan(self, epsilon: float) -> RegressionPlan:
        """Return the plan at a budget; the channel is chosen once for each."""
        return _planned(self, epsilon)


@lru_cache(maxsize=256)
def _planned(question: RegressionQuestion, epsilon: float) -> RegressionPlan:
    taus = question.taus if isinstance(question.taus, tuple) else (question.taus,)
    density = [question.guess.density(tau) for tau in taus]
    known = {} if density[0] is None else {"density": density if len(taus) > 1 else density[0]}
    asked = list(taus) if isinstance(question.taus, tuple) else question.taus
    names = tuple(name for name, _ in question.features)
    settings = read_settings({**DEFAULTS, "tau": asked, "epsilon": epsilon, **known})
    bounds = read_bounds(dict(question.features), names)
    return RegressionPlan(settings, design_of(settings, bounds), bounds, None, question.level)


def _one(epsilon: Budgets) -> float:
    """Return the one budget of a regression, or refuse."""
    if not isinstance(epsilon, int | float):
        raise BadInput("a regression has one epsilon for all people; give one number.")
    if math.isfinite(epsilon):
        binary(epsilon)
    return float(epsilon)

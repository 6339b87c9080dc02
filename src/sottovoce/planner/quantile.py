"""A quantile, several of them, one a group, or the difference of two groups: widths by the server's own prediction."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from sottovoce.core.checks import label_text
from sottovoce.core.errors import BadInput
from sottovoce.core.roster import Roster
from sottovoce.core.unit import NUMBER
from sottovoce.inference.common.normal import two_sided
from sottovoce.planner.crowd import WHOLE, PlannedCrowd, PlannedGroup
from sottovoce.planner.guess import PublicGuess, ToldWidth
from sottovoce.planner.question import Budgets, PlannedWidth, Yardstick
from sottovoce.planner.trust import BEST, CENTRAL, OPEN, central_half, sampling_error
from sottovoce.server.quantile.expected import certifies, error_of, expected_reach, is_far
from sottovoce.server.quantile.feasibility import CERTIFIED
from sottovoce.server.quantile.plan import QuantilePlan, plan_quantile

METHODS = ("staged", "certified", "sequence")
ANY, SMOOTH = "any distribution", "a smooth density around the quantile"


class PlannedInterval(NamedTuple):
    """One interval of a study: its name, its plan, its level of confidence, and the part of the people behind it."""

    of: str
    plan: QuantilePlan
    level: float
    part: float = 1.0


@dataclass(frozen=True)
class QuantileQuestion:
    """One or several levels, in all people or in each group; ``differ`` asks how far two groups are apart."""

    taus: Any
    method: str
    level: float
    guess: PublicGuess
    differ: bool = False
    public: Mapping[str, Any] = field(
        default_factory=dict
    )  # bounds, resolution, kind and shares, as a study takes them

    @property
    def several(self) -> bool:
        """Tell whether each record answers for one of several levels."""
        return isinstance(self.taus, tuple)

    @property
    def title(self) -> str:
        """Return what is asked, in words."""
        levels = ", ".join(f"{tau:g}" for tau in self.taus) if self.several else _level(self.taus)
        what = f"the {levels} quantile{'s' if self.several else ''}"
        return f"the difference of {what} between two groups" if self.differ else what

    @property
    def unit(self) -> str:
        """Return in what the widths are told."""
        return "levels" if self.guess.kind == "none" else "values"

    @property
    def assumption(self) -> str:
        """Return what the widths rest on."""
        form = ANY if self.method != "staged" else SMOOTH
        return f"{form}; {self.guess.words}"

    def settings(self) -> dict[str, Any]:
        """Return the settings as plain values."""
        taus = list(self.taus) if self.several else self.taus
        return {"tau": taus, "method": self.method, "level": self.level, **self.public}

    def widths(self, crowd: PlannedCrowd, epsilon: Budgets) -> list[PlannedWidth]:
        """Return how wide every interval will be, or raise `Infeasible`."""
        found = [self._told(each) for each in self._intervals(crowd, epsilon)]
        if not self.differ:
            return found
        told = zip(*((each.value, each.shortest, each.longest) for each in found), strict=True)
        return [PlannedWidth("difference", *(math.hypot(*pair) for pair in told))]

    def wished(self, widths: Sequence[PlannedWidth]) -> Sequence[PlannedWidth]:
        """Return the intervals that one number for all is about."""
        return widths

    def warnings(self, crowd: PlannedCrowd, epsilon: Budgets) -> Sequence[str]:
        """Return what is worth knowing before anybody is asked."""
        found = self._intervals(crowd, epsilon)
        said = [text for each in found for text in each.plan.warnings]
        certified = [each for each in found if certifies(each.plan, self.method, each.plan.crowd.thinned(each.part))]
        if self.method == "staged" and certified and self.public.get("kind") != "amounts":
            said.append("so few people are certified, so the interval is 2 to 3 times as long as in stages")
        return list(dict.fromkeys(said))

    def yardsticks(self, crowd: PlannedCrowd, epsilon: Budgets) -> list[Yardstick]:
        """Return the widths of the best local answer, of a trusted curator, and without privacy."""
        asked = self._intervals(crowd, epsilon)
        return [
            Yardstick("local, at best", self._by(asked, _local), BEST),
            Yardstick("central", self._by(asked, _central), CENTRAL),
            Yardstick("no privacy", self._by(asked, _open), OPEN),
        ]

    def _by(self, asked: Sequence[PlannedInterval], half: Callable[[PlannedInterval], float]) -> tuple[float, ...]:
        """Return the widths by another rule for half of them, in levels."""
        found = []
        for each in asked:
            tau, reach = each.plan.tau, half(each)
            found.append(self.guess.told(tau, max(tau - reach, 0.0), min(tau + reach, 1.0)).value)
        return (math.hypot(*found),) if self.differ else tuple(found)

    def _told(self, asked: PlannedInterval) -> PlannedWidth:
        """Return the width of one interval; between the bounds, where they are public."""
        low, high = expected_reach(asked.plan, self.method, asked.level, asked.part)
        found = self.guess.told(asked.plan.tau, low, high)
        if asked.plan.bounds is None and self.guess.kind != "none" and is_far(asked.plan, self.method, low, high):
            found = ToldWidth(*[math.inf] * 3)
        step = asked.plan.resolution
        value = round(found.value / step) * step if step and math.isfinite(found.value) else found.value
        return PlannedWidth(asked.of, value, found.shortest, found.longest, low, high)

    def _intervals(self, crowd: PlannedCrowd, epsilon: Budgets) -> list[PlannedInterval]:
        """Return every interval that a study over some groups would give."""
        found: list[PlannedInterval] = []
        for group in crowd.groups:
            roster = Roster(group.sites, tuple(map(round, group.sizes)), NUMBER)
            paid, certified = own(epsilon, group), self.method != "staged"
            if not self.several:
                said: dict[str, Any] = {"limits": CERTIFIED, "confidence": self.level, "certified": certified}
                plan = plan_quantile(roster, own(self.taus, group), paid, **said, **self.public)
                found.append(PlannedInterval(group.name, plan, self.level))
                continue
            from sottovoce.server.quantile.levels_plan import plan_levels  # loads the compiler

            levels = plan_levels(roster, self.taus, paid, level=self.level, method=self.method, **self.public)
            joint, before = 1 - (1 - self.level) / len(levels.plans), f"{group.name}, " if group.name != WHOLE else ""
            found += [
                PlannedInterval(f"{before}{plan.tau:g}", plan, joint, part)
                for plan, part in zip(levels.plans, levels.parts, strict=True)
            ]
        return found


def own(value: Any, group: PlannedGroup) -> Any:
    """Return what concerns the sites of one group: of a mapping, its part, or what it says of the whole group."""
    if not isinstance(value, Mapping):
        return value
    given = {label_text(name): each for name, each in value.items()}
    if group.name in given and group.name not in group.sites:
        return given[group.name]
    return {site: given[site] for site in group.sites if site in given}


def check_named(value: Any, crowd: PlannedCrowd, what: str) -> None:
    """Refuse a mapping that names neither a site nor a group."""
    if not isinstance(value, Mapping):
        return
    known = {name for group in crowd.groups for name in (group.name, *group.sites)}
    for name in map(label_text, value):
        if name not in known:
            raise BadInput(f"{what} names {name!r}, which is neither a site nor a group of this plan; correct it.")


def _local(asked: PlannedInterval) -> float:
    """Return the least half width of one randomised bit a record."""
    return two_sided(asked.level) * error_of(asked.plan.crowd.thinned(asked.part), asked.plan.tau)


def _central(asked: PlannedInterval) -> float:
    """Return half the width of a trusted curator's interval; several levels are answered by parts of the budget."""
    crowd = asked.plan.crowd
    error = sampling_error(asked.plan.tau, crowd.shares, crowd.sizes.astype(np.float64))
    least = min(asked.plan.epsilons.values())
    if math.isinf(least):
        return two_sided(asked.level) * error
    noise = 2 * float(np.max(crowd.shares / crowd.sizes)) / (least * asked.part)
    return central_half(error, noise, asked.level)


def _open(asked: PlannedInterval) -> float:
    """Return half the width without privacy, where every record tells of every level."""
    crowd = asked.plan.crowd
    return two_sided(asked.level) * sampling_error(asked.plan.tau, crowd.shares, crowd.sizes.astype(np.float64))


def _level(tau: Any) -> str:
    """Write a level, or say that sites have their own."""
    return "sites' own" if isinstance(tau, Mapping) else f"{tau:g}"

"""The cells on which planned widths are judged: populations, sites alike and unlike, levels, budgets and sizes.

Records are fresh each time, so that a tally is one binomial draw; the method that asks is the one that users run.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats
from sottovoce.core.roster import Roster
from sottovoce.core.unit import NUMBER
from sottovoce.server.quantile.conversation import AskedRound, ToldRound
from sottovoce.server.quantile.feasibility import CERTIFIED
from sottovoce.server.quantile.method import StagedQuantile
from sottovoce.server.quantile.plan import QuantilePlan, plan_quantile
from sottovoce.server.quantile.result import QuantileResult
from sottovoce.server.quantile.sequence import SequenceQuantile
from sottovoce_papers.simulation.families import Generator
from sottovoce_papers.simulation.populations import Population, population

SITES = 5
METHODS = ("staged", "certified", "sequence")


Function = Callable[[npt.ArrayLike], Floats]
Pair = tuple[Function, Function]  # a distribution function and its quantiles, once records are dithered


class PlannedFamily(NamedTuple):
    """A population as devices answer for it, its standard deviation and mean, and what is public of it."""

    name: str
    base: Population
    answered: Callable[[Population], Pair]
    sd: float
    middle: float
    step: float = 0.0
    heap: float = 0.0  # the coarse step to which a part is rounded, undeclared


def planned_family(
    name: str, base: Population, answered: Callable[[Population], Pair], step: float = 0.0, heap: float = 0.0
) -> PlannedFamily:
    """Return a family; its moments are those of many quantiles."""
    at = base.quantile((np.arange(400_000) + 0.5) / 400_000)
    return PlannedFamily(name, base, answered, float(at.std()), float(at.mean()), step, heap)


def smooth(base: Population) -> Pair:
    """Take a continuous family as it is."""
    return base.cdf, base.quantile


def whole(base: Population) -> Pair:
    """Round to whole numbers, dithered by one when they answer."""

    def cdf(x: npt.ArrayLike) -> Floats:
        places = np.asarray(x, dtype=np.float64)
        left = np.floor(places - 0.5) + 0.5
        low, high = base.cdf(left), base.cdf(left + 1)
        return np.asarray(low + (places - left) * (high - low))

    return cdf, _inverse(cdf, base)


def heaped(step: float, part: float) -> Callable[[Population], Pair]:
    """Round a part of the records to a coarse step that nobody declares."""

    def answered(base: Population) -> Pair:
        def cdf(x: npt.ArrayLike) -> Floats:
            places = np.asarray(x, dtype=np.float64)
            return np.asarray(part * base.cdf((np.floor(places / step) + 0.5) * step) + (1 - part) * base.cdf(places))

        return cdf, _inverse(cdf, base)

    return answered


def _inverse(cdf: Function, base: Population) -> Function:
    """Return the quantile function of a distribution function, by bisection."""
    ends = base.quantile(np.array([1e-9, 1 - 1e-9])) + np.array([-200.0, 200.0])

    def quantiles(u: npt.ArrayLike) -> Floats:
        levels = np.asarray(u, dtype=np.float64)
        below, above = np.full(levels.shape, ends[0]), np.full(levels.shape, ends[1])
        for _ in range(60):
            middle = (below + above) / 2
            under = cdf(middle) < levels
            below, above = np.where(under, middle, below), np.where(under, above, middle)
        return np.asarray(above)

    return quantiles


TUNED = (
    planned_family("normal", population("normal").moved(100, 15), smooth),
    planned_family("exponential", population("exponential").moved(0, 30), smooth),
    planned_family("uniform", population("uniform").moved(20, 40), smooth),
)
VERIFIED = (
    planned_family("gamma 2", population("gamma", 2.0).moved(0, 10), smooth),
    planned_family("lognormal .8", population("lognormal", 0.8).moved(0, 48_000), smooth),
    planned_family("logistic", population("logistic").moved(-20, 3), smooth),
    planned_family("whole ages", population("gamma", 6.0).moved(0, 8), whole, step=1.0),
    planned_family("heaped amounts", population("gamma", 2.0).moved(0, 900), heaped(100.0, 0.3), heap=100.0),
)


@dataclass(frozen=True)
class PlanCell:
    """What is asked of whom."""

    family: PlannedFamily
    method: str
    tau: float
    epsilon: float
    records: int
    unlike: bool = False
    bounded: bool = False

    @property
    def bounds(self) -> tuple[float, float]:
        """Return public bounds, seven standard deviations to each side."""
        return self.family.middle - 7 * self.family.sd, self.family.middle + 7 * self.family.sd

    @property
    def density(self) -> float:
        """Return the density of all records at the quantile, over a small step."""
        low, high = self.bounds
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if float(self.cdf(middle)) < self.tau else (low, middle)
        step = max(self.family.step, self.family.heap, 1e-3 * self.family.sd)
        return float(self.cdf(high + step) - self.cdf(high - step)) / (2 * step)

    @property
    def name(self) -> str:
        """Return the cell in words."""
        sites = "unlike" if self.unlike else "alike"
        sites += ", bounds" if self.bounded else ""
        return f"{self.family.name}, {self.method}, {self.tau:g}, eps {self.epsilon:g}, {self.records:,}, {sites}"

    @cached_property
    def sites(self) -> list[Pair]:
        """Return how each site answers: unlike ones are stretched by up to a quarter, and shifted."""
        family = self.family
        if not self.unlike:
            return [family.answered(family.base)] * SITES
        moves = [((1 - s) * (family.middle - 2 * family.sd), s) for s in (0.8, 0.9, 1.0, 1.1, 1.25)]
        return [family.answered(family.base.moved(*move)) for move in moves]

    def cdf(self, x: npt.ArrayLike) -> Floats:
        """Return the distribution function of all records."""
        return np.asarray(np.mean([cdf(x) for cdf, _ in self.sites], axis=0))

    def plan(self, **known: Any) -> QuantilePlan:
        """Return the plan, or raise `Infeasible`."""
        size = self.records // SITES
        roster = Roster(tuple(f"site {i}" for i in range(SITES)), (size,) * SITES, NUMBER)
        certified = self.method != "staged"
        kind = "amounts" if self.family.heap and not certified else None
        public: dict[str, Any] = {
            "resolution": self.family.step or None,
            "kind": kind,
            "bounds": self.bounds if self.bounded else None,
            **known,
        }
        return plan_quantile(roster, self.tau, self.epsilon, limits=CERTIFIED, certified=certified, **public)


def obtained(
    cell: PlanCell, plan: QuantilePlan, generator: Generator, number: int, level: float = 0.95
) -> QuantileResult:
    """Run the method once with fresh records."""
    coin = number.to_bytes(8, "big")
    method = (
        SequenceQuantile(plan, level, coin)
        if cell.method == "sequence"
        else StagedQuantile(plan, level, coin, cell.method == "certified" or plan.kind == "amounts")
    )
    sites, state = cell.sites, method.init()
    rates = plan.crowd.rates[:, None]
    grid = (np.arange(2_001) + 0.5) / 2_001
    phases = [quantiles(grid) for _, quantiles in (sites if cell.unlike else sites[:1])]
    while (asked := method.query(state)) is not None:
        round_ = asked.messages
        assert isinstance(round_, AskedRound)
        above = 1 - np.array([cdf(round_.points) for cdf, _ in sites])
        if round_.periods is not None:
            turns = [_upper(values, round_.points, round_.periods) for values in phases]
            above = np.array(turns * (len(sites) // len(turns)))
        ones = generator.binomial(round_.counts, rates * above + (1 - rates) / 2)
        state = method.step(state, ToldRound(round_.round, ones, round_.speaks))
    return method.outcome(state)


def _upper(values: Floats, points: Floats, periods: Floats) -> Floats:
    """Return which part of a population answers each question with one; a threshold has no period."""
    phase = np.where(periods > 0, (values[:, None] - points) / np.where(periods > 0, periods, 1.0), 0.0)
    above = np.mean(values[:, None] > points, axis=0)
    return np.asarray(np.where(periods > 0, np.mean(phase - np.floor(phase) >= 0.5, axis=0), above))

"""The cells on which planned widths are judged: populations, sites alike and unlike, levels, budgets and sizes.

Records are fresh each time, so that a tally is one binomial draw; the method that asks is the one that users run.
"""

from collections.abc import Callable, Iterator
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
TAUS = (0.1, 0.5, 0.9, 0.99)
EPSILONS = (0.5, 1.0, 2.0, 4.0)
SIZES = (5_000, 20_000, 100_000, 500_000)
METHODS = ("staged", "certified", "sequence")


class PlannedFamily(NamedTuple):
    """A population: its distribution function once dithered, its standard deviation, and what is public of it."""

    name: str
    cdf: Callable[[npt.ArrayLike], Floats]
    quantiles: Callable[[npt.ArrayLike], Floats]
    sd: float
    middle: float
    shape: str = ""  # what a planner would call it; empty: none of its shapes
    step: float = 0.0
    heap: float = 0.0  # the coarse step of which a part is rounded to, undeclared

    def moved(self, location: float, scale: float) -> "PlannedFamily":
        """Return the family as one site of several unlike ones has it."""
        return self._replace(
            cdf=lambda x: self.cdf((np.asarray(x) - location) / scale),
            quantiles=lambda u: location + scale * self.quantiles(u),
        )


def smooth(name: str, base: Population, shape: str = "") -> PlannedFamily:
    """Return a continuous family; its moments are those of many quantiles."""
    at = base.quantile((np.arange(400_000) + 0.5) / 400_000)
    return PlannedFamily(name, base.cdf, base.quantile, float(at.std()), float(at.mean()), shape)


def whole(name: str, base: Population) -> PlannedFamily:
    """Return the whole numbers nearest to a continuous family, dithered by one."""

    def cdf(x: npt.ArrayLike) -> Floats:
        places = np.asarray(x, dtype=np.float64)
        left = np.floor(places - 0.5) + 0.5
        low, high = base.cdf(left), base.cdf(left + 1)
        return np.asarray(low + (places - left) * (high - low))

    def quantiles(u: npt.ArrayLike) -> Floats:
        return np.asarray(np.round(base.quantile(u)), dtype=np.float64)

    return smooth(name, base)._replace(cdf=cdf, quantiles=quantiles, step=1.0)


def heaped(name: str, base: Population, step: float, part: float) -> PlannedFamily:
    """Return amounts of which a part is rounded to a coarse step that nobody declares."""

    def cdf(x: npt.ArrayLike) -> Floats:
        places = np.asarray(x, dtype=np.float64)
        return np.asarray(part * base.cdf((np.floor(places / step) + 0.5) * step) + (1 - part) * base.cdf(places))

    def quantiles(u: npt.ArrayLike) -> Floats:
        return _inverse(cdf, np.asarray(u, dtype=np.float64), 0.0, float(base.quantile(1 - 1e-9)))

    return smooth(name, base)._replace(cdf=cdf, quantiles=quantiles, heap=step)


def _inverse(cdf: Callable[[npt.ArrayLike], Floats], levels: Floats, low: float, high: float) -> Floats:
    """Return where a distribution function crosses some levels, by bisection."""
    below, above = np.full(levels.shape, low), np.full(levels.shape, high)
    for _ in range(60):
        middle = (below + above) / 2
        under = cdf(middle) < levels
        below, above = np.where(under, middle, below), np.where(under, above, middle)
    return np.asarray(above)


TUNED = (
    smooth("normal", population("normal").moved(100, 15), "normal"),
    smooth("exponential", population("exponential").moved(0, 30), "exponential"),
    smooth("uniform", population("uniform").moved(20, 40), "uniform"),
)
VERIFIED = (
    smooth("gamma 2", population("gamma", 2.0).moved(0, 10)),
    smooth("lognormal .8", population("lognormal", 0.8).moved(0, 48_000), "lognormal"),
    smooth("logistic", population("logistic").moved(-20, 3)),
    whole("whole ages", population("gamma", 6.0).moved(0, 8)),
    heaped("heaped amounts", population("gamma", 2.0).moved(0, 900), 100.0, 0.3),
)


class PlanCell(NamedTuple):
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

    @property
    def sites(self) -> list[PlannedFamily]:
        """Return the family of each site: unlike ones are shifted by up to half a deviation, and stretched."""
        base = self.family
        if not self.unlike:
            return [base] * SITES
        stretches = (0.8, 0.9, 1.0, 1.1, 1.25)
        return [base.moved((1 - s) * base.middle + (s - 1) * 2 * base.sd, s) for s in stretches]

    def cdf(self, x: npt.ArrayLike) -> Floats:
        """Return the distribution function of all records."""
        return np.asarray(np.mean([site.cdf(x) for site in self.sites], axis=0))

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


def cells(families: tuple[PlannedFamily, ...], unlike: tuple[bool, ...] = (False,)) -> Iterator[PlanCell]:
    """Yield every cell of the grid."""
    for family in families:
        for method in METHODS:
            for tau in TAUS:
                for epsilon in EPSILONS:
                    for records in SIZES:
                        for apart in unlike:
                            yield PlanCell(family, method, tau, epsilon, records, apart)


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
    phases = [site.quantiles((np.arange(2_001) + 0.5) / 2_001) for site in (sites[:1] if not cell.unlike else sites)]
    while (asked := method.query(state)) is not None:
        round_ = asked.messages
        assert isinstance(round_, AskedRound)
        above = 1 - np.array([site.cdf(round_.points) for site in sites])
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

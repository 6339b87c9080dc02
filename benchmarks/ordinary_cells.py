"""Ordinary data: scores, counts, ages, prices, zeros, heaps, detection limits, spikes, several modes.

A population is a mixture of parts, each a distribution whose values were rounded, cut off, limited or replaced by one
number. Its quantile is the smallest number at which the distribution function reaches the level.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from sottovoce.core.arrays import Floats
from sottovoce_papers.simulation.families import Generator


@dataclass(frozen=True)
class Part:
    """A share of the records: their distribution function, how they are drawn, and the atom nearest to a number."""

    weight: float
    below: Callable[[float], float]
    draw: Callable[[Generator, int], Floats]
    nearest: Callable[[float], float] = lambda x: x


@dataclass(frozen=True)
class OrdinaryPopulation:
    """A mixture of parts, and the levels asked of it."""

    name: str
    parts: tuple[Part, ...]
    levels: tuple[float, ...]

    def below(self, x: float) -> float:
        """Return the share of the records that are at most ``x``."""
        return math.fsum(part.weight * part.below(x) for part in self.parts)

    def quantile(self, tau: float) -> float:
        """Return the smallest number at which the distribution function reaches the level."""
        low, high = -1e9, 1e9
        while (middle := (low + high) / 2) not in (low, high):
            low, high = (low, middle) if self.below(middle) >= tau - 1e-14 else (middle, high)
        atoms = [part.nearest(high) for part in self.parts]
        return next((value for value in atoms if value != high and abs(value - high) < 1e-8 * max(1, abs(high))), high)

    def sample(self, generator: Generator, n: int) -> Floats:
        """Draw records."""
        weights = [part.weight for part in self.parts]
        values = np.concatenate(
            [
                part.draw(generator, int(count))
                for part, count in zip(self.parts, generator.multinomial(n, weights), strict=True)
            ]
        )
        generator.shuffle(values)
        return values


def plain(weight: float, base: Any) -> Part:
    """Take a distribution as it is."""
    return Part(weight, lambda x: float(base.cdf(x)), lambda g, n: np.asarray(base.rvs(n, random_state=g), dtype=float))


def rounded(weight: float, base: Any, step: float) -> Part:
    """Round to the nearest multiple of a step."""

    def below(x: float) -> float:
        return float(base.cdf((math.floor(x / step + 1e-9) + 0.5) * step))

    def near(x: Any) -> Any:
        return np.round(x / step) * step

    return Part(weight, below, lambda g, n: near(base.rvs(n, random_state=g)), near)


def ending(weight: float, base: Any, end: float, step: float = 1.0) -> Part:
    """Cut down to a multiple of a step and add an ending, as in prices."""

    def below(x: float) -> float:
        return float(base.cdf((math.floor((x - end) / step + 1e-9) + 1) * step))

    def draw(g: Generator, n: int) -> Floats:
        return np.asarray(np.floor(base.rvs(n, random_state=g) / step) * step + end)

    return Part(weight, below, draw, lambda x: round((x - end) / step) * step + end)


def within(weight: float, base: Any, low: float, high: float = math.inf) -> Part:
    """Replace values beyond a limit by the limit: a detection limit, a top code."""

    def below(x: float) -> float:
        return 0.0 if x < low else 1.0 if x >= high else float(base.cdf(x))

    return Part(weight, below, lambda g, n: np.clip(base.rvs(n, random_state=g), low, high))


def atom(weight: float, value: float) -> Part:
    """Give one number to all."""
    return Part(weight, lambda x: float(x >= value), lambda _, n: np.full(n, value))


def whole(weights: Sequence[float], start: int = 0) -> Part:
    """Give whole numbers by their weights."""
    steps = np.cumsum(np.asarray(weights, dtype=float) / sum(weights))

    def below(x: float) -> float:
        at = math.floor(x) - start
        return 0.0 if at < 0 else float(steps[min(at, len(steps) - 1)])

    def draw(g: Generator, n: int) -> Floats:
        return start + np.searchsorted(steps, g.random(n), side="right").astype(float)

    return Part(1.0, below, draw)


def counted(base: Any, weight: float = 1.0) -> Part:
    """Take a distribution on whole numbers."""
    return Part(weight, lambda x: float(base.cdf(x)), lambda g, n: np.asarray(base.rvs(n, random_state=g), dtype=float))


def of(name: str, levels: Sequence[float], *parts: Part) -> OrdinaryPopulation:
    """Return a population."""
    return OrdinaryPopulation(name, parts, tuple(levels))


NORMAL, GAMMA = stats.norm, stats.gamma
PAY, WAIT = stats.lognorm(0.5, scale=44_000), GAMMA(2, scale=15)

# those by which the default was tuned
KNOWN: tuple[OrdinaryPopulation, ...] = (
    of("scores 0 to 10", (0.5, 0.25), whole([1, 1, 2, 3, 5, 9, 12, 18, 22, 15, 12])),
    of("counts of about 3", (0.9, 0.5), counted(stats.poisson(3))),
    of("prices ending in .99", (0.5, 0.75), ending(1, stats.lognorm(0.8, scale=20), 0.99)),
    of("detection limit, 30 %", (0.25, 0.32, 0.5), within(1, stats.lognorm(1), math.exp(-0.5244))),
    of("spike of 10 %", (0.5, 0.6), atom(0.1, 0.3), plain(0.9, NORMAL())),
    of("spike of 4 % at the median", (0.5,), atom(0.04, 0.0), plain(0.96, NORMAL())),
    of(
        "two modes far apart, 49 %",
        (0.5,),
        plain(0.49, stats.lognorm(0.3, scale=2)),
        plain(0.51, stats.lognorm(0.5, scale=180)),
    ),
    of(
        "two modes far apart, 55 %",
        (0.5, 0.95),
        plain(0.55, stats.lognorm(0.3, scale=2)),
        plain(0.45, stats.lognorm(0.5, scale=180)),
    ),
    of("two modes, valley at the quantile", (0.4,), plain(0.4, GAMMA(3)), plain(0.6, GAMMA(3, loc=8))),
    of("N(-2) and N(2)", (0.5,), plain(0.5, NORMAL(-2)), plain(0.5, NORMAL(2))),
    of("gap at the median", (0.5,), plain(0.5, stats.uniform()), plain(0.5, stats.uniform(10, 1))),
    of("Pareto 1.1", (0.5, 0.95), plain(1, stats.pareto(1.1))),
    of("85 % zeros", (0.5, 0.9, 0.95), atom(0.85, 0.0), plain(0.15, stats.lognorm(1.2, scale=1097))),
    of("60 % zeros", (0.5, 0.62, 0.9), atom(0.6, 0.0), plain(0.4, stats.expon(scale=10))),
    of("salaries", (0.5, 0.8), rounded(0.5, PAY, 5000), rounded(0.3, PAY, 1000), plain(0.2, PAY)),
    of("ages", (0.5,), ending(1, stats.truncnorm(-30 / 18, 47 / 18, 48, 18), 0.0)),
    of("truth values", (0.5,), whole([35, 65])),
    of("waits, 40 % to five minutes", (0.5, 0.9), rounded(0.4, WAIT, 5), plain(0.6, WAIT)),
)

GRADE, INCOME, PRESSURE = NORMAL(58, 17), stats.lognorm(0.7, scale=28_000), NORMAL(128, 17)
SPEND, AGE, LAB = stats.lognorm(1.1, scale=35), stats.truncnorm(-2.0, 2.6, 44, 17), stats.lognorm(0.4, scale=5.2)

# those by which it was not
UNSEEN: tuple[OrdinaryPopulation, ...] = (
    of("stars 1 to 5", (0.5, 0.2), whole([12, 5, 8, 21, 54], 1)),
    of("answers 1 to 7", (0.5, 0.75), whole([4, 9, 14, 25, 23, 16, 9], 1)),
    of("children", (0.5, 0.9), whole([32, 22, 27, 12, 5, 2])),
    of("visits, negative binomial", (0.5, 0.95), counted(stats.nbinom(1, 1 / 9))),
    of("claims, 80 % none", (0.75, 0.9), atom(0.8, 0.0), counted(stats.poisson(2), 0.2)),
    of(
        "prices ending in .49, .95, .99",
        (0.5, 0.9),
        ending(0.25, SPEND, 0.49),
        ending(0.25, SPEND, 0.95),
        ending(0.5, SPEND, 0.99),
    ),
    of("fares to a half", (0.5, 0.9), rounded(1, stats.lognorm(0.6, scale=11), 0.5)),
    of("grades with a heap at 50", (0.25, 0.5), atom(0.07, 50.0), rounded(0.93, GRADE, 1)),
    of("reported ages", (0.5, 0.75), rounded(0.25, AGE, 5), rounded(0.15, AGE, 10), ending(0.6, AGE, 0.0)),
    of("incomes", (0.5, 0.9), rounded(0.35, INCOME, 10_000), rounded(0.45, INCOME, 1000), rounded(0.2, INCOME, 100)),
    of("blood pressure", (0.5, 0.9), rounded(0.35, PRESSURE, 10), rounded(0.65, PRESSURE, 2)),
    of("laboratory values to a tenth", (0.5, 0.1), rounded(1, LAB, 0.1)),
    of("detection limit, 45 %", (0.4, 0.47, 0.6), within(1, stats.lognorm(1.3), math.exp(1.3 * -0.12566))),
    of("top code at 90 %", (0.5, 0.88, 0.95), within(1, stats.lognorm(0.6), 0.0, math.exp(0.6 * 1.28155))),
    of("spike of 7 %", (0.45, 0.5), atom(0.07, 40.0), plain(0.93, GAMMA(4, scale=11))),
    of("spike of 20 %", (0.3, 0.75), atom(0.2, 100.0), plain(0.8, stats.lognorm(1.0, scale=100))),
    of("half a default of 25", (0.5, 0.8), atom(0.5, 25.0), plain(0.5, GAMMA(2, scale=20))),
    of("two kinds of sessions", (0.5, 0.3), plain(0.31, stats.expon(scale=3)), plain(0.69, NORMAL(300, 60))),
    of(
        "three modes",
        (0.35, 0.5),
        plain(0.34, NORMAL(0)),
        plain(0.33, NORMAL(12)),
        plain(0.33, NORMAL(40, 2)),
    ),
    of("valley between gammas", (0.55,), plain(0.55, GAMMA(4)), plain(0.45, GAMMA(2, loc=14, scale=3))),
    of("70 % zeros", (0.5, 0.75, 0.9), atom(0.7, 0.0), plain(0.3, GAMMA(0.8, scale=240))),
    of("zeros and losses", (0.25, 0.5, 0.9), atom(0.45, 0.0), plain(0.3, stats.t(3)), plain(0.25, stats.lognorm(1))),
    of("Pareto 1.6", (0.9, 0.97), plain(1, stats.pareto(1.6, scale=20))),
    of("Cauchy", (0.5, 0.9), plain(1, stats.cauchy())),
    of(
        "times to a quarter of an hour",
        (0.5, 0.9),
        rounded(0.7, GAMMA(3, scale=25), 15),
        plain(0.3, GAMMA(3, scale=25)),
    ),
    of("delays", (0.2, 0.5), atom(0.3, 0.0), plain(0.2, stats.uniform(-15, 15)), plain(0.5, stats.expon(scale=20))),
)

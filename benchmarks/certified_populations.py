"""Eight populations with public bounds: smooth, two modes, atoms, zeros and a gap; where intervals are compared."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats
from sottovoce_papers.simulation.families import Generator
from sottovoce_papers.simulation.populations import Population, blend, population


class Case(NamedTuple):
    """A population and the level asked; without a density at the quantile, lengths are in units of the data."""

    name: str
    tau: float
    cdf: Callable[[npt.ArrayLike], Floats]
    quantile: Callable[[npt.ArrayLike], Floats]
    density: Callable[[npt.ArrayLike], Floats] | None
    sample: Callable[[Generator, int], Floats]
    bounds: tuple[float, float]

    @property
    def truth(self) -> float:
        """Return the quantile, the smallest where the distribution function is flat."""
        return float(self.quantile(self.tau))

    def unit(self, records: int, rate: float) -> float:
        """Return the length of an interval by somebody who knows the density and asks at the quantile, or 1."""
        if self.density is None:
            return 1.0
        s = (1 - rate) / 2 + rate * self.tau
        spread = np.sqrt(s * (1 - s) / records) / (rate * float(self.density(self.truth)))
        return float(2 * 1.959964 * spread)

    def covers(self, low: npt.ArrayLike, high: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Tell which of the sets (low, high] hold the quantile; a low end at the public bound belongs to it."""
        truth, start = self.truth, np.asarray(low)
        return np.asarray(((start < truth) | (start == self.bounds[0])) & (truth <= np.asarray(high)))


def smooth(name: str, tau: float, distribution: Population, bounds: tuple[float, float]) -> Case:
    return Case(name, tau, distribution.cdf, distribution.quantile, distribution.density, distribution.sample, bounds)


def scores() -> Case:
    """Return scores from 0 to 10 with their mode at 7."""
    weights = np.array([1, 1, 2, 3, 5, 9, 14, 20, 21, 15, 9], dtype=np.float64)
    steps = np.cumsum(weights / weights.sum())
    return discrete("scores 0 to 10", 0.5, steps, (0.0, 10.0))


def discrete(name: str, tau: float, steps: Floats, bounds: tuple[float, float]) -> Case:
    """Return whole numbers from zero on, from their distribution function."""

    def cdf(x: npt.ArrayLike) -> Floats:
        at = np.floor(np.asarray(x, dtype=np.float64)).astype(np.int64)
        return np.where(at < 0, 0.0, steps[np.clip(at, 0, len(steps) - 1)])

    def quantile(u: npt.ArrayLike) -> Floats:
        return np.asarray(np.searchsorted(steps, np.asarray(u) - 1e-12), dtype=np.float64)

    return Case(name, tau, cdf, quantile, None, lambda draw, n: quantile(draw.random(n)), bounds)


def zeros(tau: float, share: float = 0.6) -> Case:
    """Return amounts of which a share is zero and the others are exponential with mean 100."""

    def cdf(x: npt.ArrayLike) -> Floats:
        at = np.asarray(x, dtype=np.float64)
        return np.where(at < 0, 0.0, share - (1 - share) * np.expm1(-np.maximum(at, 0.0) / 100))

    def quantile(u: npt.ArrayLike) -> Floats:
        rest = np.maximum((np.asarray(u, dtype=np.float64) - share) / (1 - share), 0.0)
        return np.asarray(-100 * np.log1p(-rest))

    def density(x: npt.ArrayLike) -> Floats:
        return np.asarray((1 - share) * np.exp(-np.asarray(x) / 100) / 100)

    known = density if tau > share else None
    return Case("60 % zeros", tau, cdf, quantile, known, lambda draw, n: quantile(draw.random(n)), (0.0, 10_000.0))


def gap() -> Case:
    """Return half of the records in (0, 1) and half in (2, 3): every point of [1, 2] is a median, the smallest is 1."""

    def cdf(x: npt.ArrayLike) -> Floats:
        at = np.asarray(x, dtype=np.float64)
        return np.asarray((np.clip(at, 0, 1) + np.clip(at - 2, 0, 1)) / 2)

    def quantile(u: npt.ArrayLike) -> Floats:
        twice = 2 * np.asarray(u, dtype=np.float64)
        return np.where(twice <= 1, twice, twice + 1)

    return Case("gap at the median", 0.5, cdf, quantile, None, lambda draw, n: quantile(draw.random(n)), (-20.0, 20.0))


CASES: tuple[Case, ...] = (
    smooth("normal", 0.5, population("normal"), (-50.0, 50.0)),
    smooth("lognormal", 0.8, population("lognormal", 0.8).moved(0, 48_000), (0.0, 1e6)),
    smooth("exponential", 0.9, population("exponential").moved(0, 30), (0.0, 1_000.0)),
    smooth(
        "N(-2) | N(2)",
        0.5,
        blend([population("normal").moved(-2), population("normal").moved(2)], [0.5, 0.5]),
        (-50, 50),
    ),
    scores(),
    zeros(0.5),
    zeros(0.9),
    gap(),
)
SIZES = (20_000, 200_000)
RATES = (0.46, 0.76)  # epsilon 1 and 2

"""Shapes that a population may be guessed to have, and how wide an interval between two levels then is in values.

A width in levels becomes one in values by the quantile function. Nobody knows it before a study, so a public guess
stands in: a shape, and one public number that says how far it is stretched. What other shapes with the same number
would make of it is told beside it, as in a tail they differ by more than any budget does.
"""

import math
from collections.abc import Callable, Mapping
from statistics import NormalDist
from types import MappingProxyType
from typing import NamedTuple

_NORMAL = NormalDist()
HEAVY = 0.8  # standard deviation of the logarithm of the heavy-tailed shape: incomes, durations, claims


class KnownShape(NamedTuple):
    """A distribution up to location and scale: quantile function, density at a quantile, standard deviation."""

    quantile: Callable[[float], float]
    density: Callable[[float], float]
    sd: float

    @property
    def iqr(self) -> float:
        """Return the distance between the quartiles."""
        return self.quantile(0.75) - self.quantile(0.25)

    def between(self, low: float, high: float) -> float:
        """Return the distance between two quantiles; infinite where an end is."""
        return self.quantile(high) - self.quantile(low)

    @property
    def mirrored(self) -> "KnownShape":
        """Return the shape whose other tail is the long one."""
        return KnownShape(lambda u: -self.quantile(1 - u), lambda u: self.density(1 - u), self.sd)


def _normal(level: float) -> float:
    return _NORMAL.inv_cdf(level) if 0 < level < 1 else math.copysign(math.inf, level - 0.5)


def _normal_density(level: float) -> float:
    return _NORMAL.pdf(_NORMAL.inv_cdf(level))


def _heavy(level: float) -> float:
    return 0.0 if level <= 0 else math.exp(HEAVY * _normal(level))


SHAPES: Mapping[str, KnownShape] = MappingProxyType(
    {
        "normal": KnownShape(_normal, _normal_density, 1.0),
        "uniform": KnownShape(lambda u: min(max(u, 0.0), 1.0), lambda _: 1.0, 12**-0.5),
        "exponential": KnownShape(
            lambda u: -math.log1p(-u) if 0 < u < 1 else 0.0 if u <= 0 else math.inf, lambda u: 1 - u, 1.0
        ),
        "lognormal": KnownShape(
            _heavy,
            lambda u: _normal_density(u) / (HEAVY * _heavy(u)),
            math.sqrt(math.expm1(HEAVY**2) * math.exp(HEAVY**2)),
        ),
    }
)
PLAUSIBLE = (*SHAPES.values(), SHAPES["exponential"].mirrored)  # among which a guess without a shape may be wrong

"""Populations with known quantiles, and the papers' ways to spread them over sites (Cai, Hu and Wu, section 4.1)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce_papers.simulation import families as f
from sottovoce_papers.simulation.families import Generator


@dataclass(frozen=True, eq=False)
class Population:
    """A distribution that records are drawn from: distribution function, density, quantile function and sampler."""

    name: str
    cdf: Callable[[npt.ArrayLike], Floats]
    density: Callable[[npt.ArrayLike], Floats]
    quantile: Callable[[npt.ArrayLike], Floats]
    sample: Callable[[Generator, int], Floats]

    def moved(self, location: float = 0.0, scale: float = 1.0) -> "Population":
        """Return the distribution of location + scale x.

        Examples
        --------
        >>> float(population("normal").moved(3.0, 2.0).quantile(0.5))
        3.0
        """
        if location == 0 and scale == 1:
            return self
        return Population(
            f"{location:g} + {scale:g} {self.name}",
            lambda x: self.cdf((np.asarray(x) - location) / scale),
            lambda x: self.density((np.asarray(x) - location) / scale) / scale,
            lambda u: location + scale * self.quantile(u),
            lambda generator, n: location + scale * self.sample(generator, n),
        )


def population(name: str, *shape: float) -> Population:
    """Return a standard population by name: normal, cauchy, uniform, lognormal, exponential, gamma, student, ...

    Parameters
    ----------
    name
        One of `families.FAMILIES`.
    shape
        Its shape, where it has one: degrees of freedom, index, or standard deviation of the logarithm.

    Examples
    --------
    >>> round(float(population("lomax", 2.0).quantile(0.75)), 6)
    1.0
    """
    if name not in f.FAMILIES:
        raise BadInput(f"population {name!r} is not known; choose one of {', '.join(sorted(f.FAMILIES))}.")
    functions = [partial(function, *shape) for function in f.FAMILIES[name]]
    label = name + "".join(f"({', '.join(f'{s:g}' for s in shape)})" for _ in shape[:1])
    return Population(label, *functions)


def blend(parts: Sequence[Population], shares: Sequence[float]) -> Population:
    """Return the mixture of some populations.

    Examples
    --------
    >>> bimodal = blend([population("normal").moved(-2), population("normal").moved(2)], [0.5, 0.5])
    >>> round(float(bimodal.cdf(0.0)), 12), abs(float(bimodal.quantile(0.5))) < 1e-12
    (0.5, True)
    """
    weights = np.asarray(shares, dtype=np.float64)

    def mixed(function: str) -> Callable[[npt.ArrayLike], Floats]:
        def total(x: npt.ArrayLike) -> Floats:
            terms = [w * getattr(part, function)(x) for w, part in zip(weights, parts, strict=True)]
            return np.asarray(sum(terms), dtype=np.float64)

        return total

    def quantile(u: npt.ArrayLike) -> Floats:
        ends = np.array([part.quantile(u) for part in parts])
        return f.inverted(mixed("cdf"), ends.min(axis=0), ends.max(axis=0), u)

    def sample(generator: Generator, n: int) -> Floats:
        which = generator.choice(len(parts), size=n, p=weights)
        drawn = np.empty(n)
        for i, part in enumerate(parts):
            drawn[which == i] = part.sample(generator, int(np.count_nonzero(which == i)))
        return drawn

    name = " | ".join(part.name for part in parts)
    return Population(name, mixed("cdf"), mixed("density"), quantile, sample)


def rounded(distribution: Population, unit: float) -> Population:
    """Return a population rounded to multiples of a unit; it has atoms, so its density is that before rounding.

    Examples
    --------
    >>> float(rounded(population("normal"), 0.5).quantile(0.9))
    1.5
    """
    return Population(
        f"{distribution.name} to {unit:g}",
        lambda x: distribution.cdf((np.floor(np.asarray(x) / unit) + 0.5) * unit),
        distribution.density,
        lambda u: np.round(distribution.quantile(u) / unit) * unit,
        lambda generator, n: np.round(distribution.sample(generator, n) / unit) * unit,
    )


@dataclass(frozen=True, eq=False)
class Mixture:
    """One population a site, and the sites' shares in the estimand."""

    populations: tuple[Population, ...]
    shares: Floats

    def probabilities(self, point: float) -> Floats:
        """Return each site's probability below a point."""
        return np.array([float(distribution.cdf(point)) for distribution in self.populations])

    def densities(self, point: float) -> Floats:
        """Return each site's density at a point."""
        return np.array([float(distribution.density(point)) for distribution in self.populations])

    def quantile(self, tau: float, shares: npt.ArrayLike | None = None) -> float:
        """Return where the weighted sum of the distribution functions crosses tau.

        Examples
        --------
        >>> round(hete_d().quantile(0.5), 9)
        0.0
        """
        weights = self.shares if shares is None else np.asarray(shares, dtype=np.float64)
        ends = [float(distribution.quantile(tau)) for distribution in self.populations]
        total = lambda x: np.sum(weights * np.array([float(distribution.cdf(x)) for distribution in self.populations]))  # noqa: E731
        return float(f.inverted(np.vectorize(total), np.array(min(ends)), np.array(max(ends)), tau))

    def sample(self, generator: Generator, sizes: int | Sequence[int]) -> list[Floats]:
        """Draw the records of each site."""
        each = [sizes] * len(self.populations) if isinstance(sizes, int) else sizes
        return [distribution.sample(generator, n) for distribution, n in zip(self.populations, each, strict=True)]


def evenly(populations: Sequence[Population]) -> Mixture:
    """Return sites of equal shares."""
    return Mixture(tuple(populations), np.full(len(populations), 1 / len(populations)))


def homogeneous(distribution: Population, sites: int = 10) -> Mixture:
    """Return sites that all draw from one population."""
    return evenly([distribution] * sites)


def hete_l(distribution: Population, generator: Generator, sites: int = 10) -> Mixture:
    """Return sites at locations drawn once, standard normal; the papers' draw is not recoverable."""
    return evenly([distribution.moved(float(location)) for location in generator.standard_normal(sites)])


def hete_d() -> Mixture:
    """Return three normal, three uniform and four Cauchy sites."""
    normal, uniform, cauchy = population("normal"), population("uniform").moved(-1, 2), population("cauchy")
    return evenly([normal] * 3 + [uniform] * 3 + [cauchy] * 4)

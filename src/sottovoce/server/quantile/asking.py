"""Asking all sites at once: the same fraction of each site's records answers each query.

With shares ``p``, rates ``r`` and sizes ``N``, one query answered by a fraction ``f`` of every site gives the pooled
distribution function with variance ``unit_variance / f``, where ``unit_variance = sum p^2 / (4 r^2 N)``.
"""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Bools, Floats, Ints


@dataclass(frozen=True)
class SiteProfile:
    """What the server knows of the sites beforehand: shares, response rates and sizes."""

    shares: Floats
    rates: Floats
    sizes: Ints

    def thinned(self, part: float) -> "SiteProfile":
        """Return the profile of a part of every site's records."""
        sizes = np.maximum((self.sizes * part).astype(np.int64), 1)
        return SiteProfile(self.shares, self.rates, sizes)

    @property
    def unit_variance(self) -> float:
        """Return the largest variance of the estimated distribution function if every record answered at one point."""
        return float(np.sum(self.shares**2 / (4 * self.rates**2 * self.sizes)))


class Ask(NamedTuple):
    """A query to all sites: points, and how many records of each site answer at each, (sites, points).

    Where a point has a positive period, records tell their phase (`client.quantile.encode`); None is none anywhere.
    """

    points: Floats
    counts: Ints
    periods: Floats | None = None


@dataclass(frozen=True)
class Decoded:
    """The decoded answers to one query: points, estimated probabilities below them, and what the variance needs.

    At a point with a period, ``below`` is the probability of the lower half of the period.
    """

    points: Floats
    below: Floats
    variances: Floats
    ones: Ints = field(repr=False)
    counts: Ints = field(repr=False)

    def at(self, some: Bools) -> "Decoded":
        """Return the answers at some of the points."""
        return Decoded(
            self.points[some], self.below[some], self.variances[some], self.ones[:, some], self.counts[:, some]
        )


def all_periods(points: Floats, periods: Floats | None) -> Floats:
    """Return a period a point; zero is a threshold."""
    return np.zeros(len(points)) if periods is None else periods


def spread_offsets(sites: int) -> Floats:
    """Return a rounding offset a site, by the golden ratio: neighbours in the list never speak one after the other.

    Were the offsets in the order of the sites, a query that asks less than one record a site would be answered by a
    block of neighbours, who may be alike.
    """
    return np.asarray((np.arange(sites) + 0.5) * 0.6180339887498949 % 1.0, dtype=np.float64)


def allot(crowd: SiteProfile, spent: float, fractions: Floats) -> Ints:
    """Return how many records of each site answer at each point, (sites, points).

    Cumulative rounding with a different offset a site: no coin, no record twice, and all records used when the
    fractions sum to one.
    """
    offsets = spread_offsets(len(crowd.sizes))
    edges = np.minimum(spent + np.concatenate(([0.0], np.cumsum(fractions))), 1.0)
    edges[edges > 1 - 1e-12] = 1.0
    # a point's counts side by side in memory: with ten thousand sites, sums over them are twice as fast
    reached = np.floor(np.outer(edges, crowd.sizes) + offsets).astype(np.int64)
    return np.diff(np.minimum(reached, crowd.sizes), axis=0).T


def present_shares(crowd: SiteProfile, counts: Ints) -> Floats:
    """Return the shares at each point, (sites, points): a site without answers leaves its share to the others."""
    present = np.asarray(crowd.shares[:, None] * (counts > 0))
    present /= np.maximum(present.sum(axis=0), 1e-300)
    return present


def decode(crowd: SiteProfile, points: Floats, counts: Ints, ones: Ints) -> Decoded:
    """Decode letters into the pooled distribution function; a site without answers leaves its share to the others."""
    asked = np.maximum(counts, 1)
    weights = present_shares(crowd, counts)
    rates = crowd.rates[:, None]
    above = ones / asked  # in place from here on: with ten thousand sites, new arrays cost more than sums
    above -= (1 - rates) / 2
    above /= rates
    above *= weights
    weights *= weights
    weights /= 4 * rates**2 * asked
    return Decoded(points, 1 - above.sum(axis=0), weights.sum(axis=0), ones, counts)


@dataclass
class QueryAllocator:
    """Asks on behalf of a procedure and remembers what was spent and heard: of the distribution function, of phases."""

    crowd: SiteProfile
    spent: float = 0.0
    rounds: int = 0
    heard: list[Decoded] = field(default_factory=list)
    phases: list[Decoded] = field(default_factory=list)

    def ask(
        self, points: npt.ArrayLike, fractions: npt.ArrayLike, periods: npt.ArrayLike | None = None
    ) -> Generator[Ask, Ints, Decoded]:
        """Ask a fraction of every site at each point; answers where the period is positive are kept with the phases."""
        at, parts = np.asarray(points, dtype=np.float64), np.asarray(fractions, dtype=np.float64)
        counts = allot(self.crowd, self.spent, parts)
        self.spent = min(1.0, self.spent + float(parts.sum()))
        ask = Ask(at, counts, None if periods is None else np.asarray(periods, dtype=np.float64))
        ones = np.asfortranarray((yield ask))  # laid out as the counts, so that sums have the same bits
        answer, phase = decode(self.crowd, at, counts, ones), all_periods(at, ask.periods) > 0
        self.rounds += 1
        if not phase.all():
            self.heard.append(answer.at(~phase) if phase.any() else answer)
        if phase.any():
            self.phases.append(answer.at(phase))
        return answer

    @property
    def asked(self) -> Ints:
        """Return how many records of each site have answered."""
        every = [each.counts.sum(axis=1) for each in (*self.heard, *self.phases)]
        return np.asarray(np.sum([np.zeros_like(self.crowd.sizes), *every], axis=0), dtype=np.int64)

    @property
    def reports(self) -> int:
        """Return how many records have answered."""
        return int(self.asked.sum())

    @property
    def left(self) -> float:
        """Return the fraction of the records not yet asked."""
        return 1.0 - self.spent

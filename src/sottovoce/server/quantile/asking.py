"""Asking all sites at once: the same fraction of each site's records answers each query.

With shares ``p``, rates ``r`` and sizes ``N``, one query answered by a fraction ``f`` of every site gives the pooled
distribution function with variance ``unit_variance / f``, where ``unit_variance = sum p^2 / (4 r^2 N)``.
"""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats, Ints


@dataclass(frozen=True)
class SiteProfile:
    """What the server knows of the sites beforehand: shares, response rates and sizes."""

    shares: Floats
    rates: Floats
    sizes: Ints

    @property
    def unit_variance(self) -> float:
        """Return the largest variance of the estimated distribution function if every record answered at one point."""
        return float(np.sum(self.shares**2 / (4 * self.rates**2 * self.sizes)))


class Ask(NamedTuple):
    """A query to all sites: points, and how many records of each site answer at each, (sites, points)."""

    points: Floats
    counts: Ints


@dataclass(frozen=True)
class Decoded:
    """The decoded answers to one query: points, estimated probabilities below them, and what the variance needs."""

    points: Floats
    below: Floats
    variances: Floats
    ones: Ints = field(repr=False)
    counts: Ints = field(repr=False)


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
    """Asks on behalf of a procedure and remembers what was spent and heard."""

    crowd: SiteProfile
    spent: float = 0.0
    heard: list[Decoded] = field(default_factory=list)

    def ask(self, points: npt.ArrayLike, fractions: npt.ArrayLike) -> Generator[Ask, Ints, Decoded]:
        """Ask a fraction of every site at each point."""
        at, parts = np.asarray(points, dtype=np.float64), np.asarray(fractions, dtype=np.float64)
        counts = allot(self.crowd, self.spent, parts)
        self.spent = min(1.0, self.spent + float(parts.sum()))
        ones = np.asfortranarray((yield Ask(at, counts)))  # laid out as the counts, so that sums have the same bits
        answer = decode(self.crowd, at, counts, ones)
        self.heard.append(answer)
        return answer

    @property
    def reports(self) -> int:
        """Return how many records have answered."""
        return int(sum(int(heard.counts.sum()) for heard in self.heard))

    @property
    def left(self) -> float:
        """Return the fraction of the records not yet asked."""
        return 1.0 - self.spent

"""The exact distribution of a pooled count: binomials with integer votes, plus two-sided geometric noise.

The distribution function is a sum over the characteristic function on a window outside of which the distribution has
less than 1e-16 (Bernstein's inequality for the binomials, Chernoff's for the noise); frequencies at which the product
is nothing are left out, so a million records cost no more than a thousand.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats

OUTSIDE = 38.0  # minus the logarithm of the mass outside the window
NOTHING = -40.0  # logarithm of a characteristic function that adds nothing
PIECE = 1 << 20  # entries of the characteristic function held at once
GROUP = 32  # tail probabilities treated together


class RecordGroup(NamedTuple):
    """Records that answer alike: how many, the votes of a yes, and the chance of a yes at tail zero and its slope."""

    number: int
    votes: int
    low: float
    rate: float


class PooledCount(NamedTuple):
    """All that is counted: groups, and ``terms[b]`` two-sided geometric variables of a ratio at comparison b."""

    groups: tuple[RecordGroup, ...]
    ratio: float
    terms: tuple[int, ...]

    def mean(self, tail: npt.ArrayLike) -> Floats:
        """Return the mean of the count at the tail probability of a score."""
        tail = np.asarray(tail, dtype=np.float64)
        return np.asarray(sum(c.votes * c.number * (c.low + c.rate * tail) for c in self.groups))

    def variance(self, tail: npt.ArrayLike) -> Floats:
        """Return the variance of the binomials at the tail probability of a score."""
        chances = [c.low + c.rate * np.asarray(tail, dtype=np.float64) for c in self.groups]
        return np.asarray(sum(c.votes**2 * c.number * p * (1 - p) for c, p in zip(self.groups, chances, strict=True)))

    @property
    def most(self) -> int:
        """Return the largest count without noise."""
        return sum(c.votes * c.number for c in self.groups)


def failures(count: PooledCount, thresholds: Sequence[int], tails: Floats) -> Floats:
    """Return P(count + noise <= threshold) of each comparison at each tail probability (B, tails).

    There is one threshold for each comparison; a tail is the probability that a score lies above the edge.

    >>> coins = PooledCount((RecordGroup(2, 1, 0.0, 1.0),), 0.0, (0, 0))
    >>> failures(coins, (0, 1), np.array([0.5, 1.0])).round(12) + 0.0
    array([[0.25, 0.  ],
           [0.75, 0.  ]])
    """
    if len(tails) > GROUP:  # where counts hardly vary they need all frequencies, which elsewhere are nothing
        groups = np.array_split(tails, math.ceil(len(tails) / GROUP))
        return np.hstack([failures(count, thresholds, group) for group in groups])
    spread, noise = binomial_reach(count, tails), noise_reach(count.ratio, max(count.terms))
    middles = count.mean(tails)
    first = max(math.floor(np.min(middles) - spread), 0) - noise
    last = min(math.ceil(np.max(middles) + spread), count.most) + noise
    size = last - first + 1 | 1  # odd, so that every frequency but zero has a partner
    wanted = np.clip(np.asarray(thresholds, dtype=np.int64) - first + 1, 0, size)
    angles = _angles(count, tails, size)
    total = np.tile(wanted[:, None] / size, (1, len(tails)))
    step = max(1, PIECE // len(tails))
    for start in range(0, len(angles), step):
        angle = angles[start : start + step]
        # the sum of exp(-i angle x) over x = first, ..., threshold
        half = angle[None, :] * wanted[:, None] / 2
        shrink = _noise_factor(count.ratio, angle)[None, :] ** np.array(count.terms)[:, None]
        height = 2 / size * shrink * np.sin(half) / np.sin(angle / 2)
        back = half + angle * (first - 0.5)
        cosine, sine = _spectrum(count, tails, angle)
        total += (height * np.cos(back)) @ cosine + (height * np.sin(back)) @ sine
    return np.clip(total, 0.0, 1.0)


def binomial_reach(count: PooledCount, tails: Floats, outside: float = OUTSIDE) -> float:
    """Return how far the binomials stray from their mean, but for a chance of exp(-outside)."""
    # the variance is concave in the tail: its largest value lies at an end or where a chance passes one half
    ends = np.linspace(np.min(tails), np.max(tails), 33)
    variance = float(np.max(count.variance(ends))) * 1.01 + 1e-9
    jump = max(c.votes for c in count.groups) * outside / 3
    return jump + math.sqrt(jump**2 + 2 * variance * outside)


def noise_reach(ratio: float, terms: int, outside: float = OUTSIDE) -> int:
    """Return how far a sum of two-sided geometric variables strays from zero, but for a chance of exp(-outside)."""
    if ratio == 0 or terms == 0:
        return 0
    tilt = -math.log(ratio) * np.linspace(0.01, 0.99, 99)
    moment = 2 * math.log1p(-ratio) - np.log1p(-ratio * np.exp(tilt)) - np.log1p(-ratio * np.exp(-tilt))
    return math.ceil(np.min((terms * moment + outside) / tilt))


def _noise_factor(ratio: float, angle: Floats) -> Floats:
    """Return the characteristic function of one two-sided geometric variable."""
    away = (1 - ratio) ** 2
    return away / (away + 4 * ratio * np.sin(angle / 2) ** 2)


def _angles(count: PooledCount, tails: Floats, size: int) -> Floats:
    """Return the frequencies, but for zero, at which some characteristic function is not nothing."""
    angles = 2 * math.pi / size * np.arange(1, (size + 1) // 2, dtype=np.float64)
    largest = min(count.terms) * np.log(_noise_factor(count.ratio, angles))
    for group in count.groups:
        chances = group.low + group.rate * np.array([np.min(tails), np.max(tails)])
        least = max(0.0, float(np.min(chances * (1 - chances))))
        turn = np.sin(group.votes * angles / 2) ** 2
        largest += group.number / 2 * np.log1p(-np.minimum(4 * least * turn, 1 - 1e-16))
    return angles[largest > NOTHING]


def _spectrum(count: PooledCount, tails: Floats, angles: Floats) -> tuple[Floats, Floats]:
    """Return the mean cosine and sine of angle times binomials (angles, tails)."""
    size = np.zeros((len(angles), len(tails)))
    phase = np.zeros_like(size)
    for group in count.groups:
        chance = np.clip(group.low + group.rate * tails, 0.0, 1.0)[None, :]
        turn = (group.votes * angles)[:, None]
        inner = 4 * chance * (1 - chance) * np.sin(turn / 2) ** 2
        size += group.number / 2 * np.log1p(-np.minimum(inner, 1 - 1e-16))
        phase += group.number * np.arctan2(chance * np.sin(turn), 1 - chance + chance * np.cos(turn))
    height = np.exp(size)
    return height * np.cos(phase), height * np.sin(phase)

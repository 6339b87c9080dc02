"""The exact distribution of weighted votes: how many votes fall below a level, when sites vote independently.

A site has one or several values, each worth ``votes``; at a level of the scores, ``below[x]`` is the probability that x
of its values lie below it. The sum over sites is found from its characteristic function on a window that holds all but
1e-16 of the distribution, whatever the number of sites and however different they are: the product of the sites'
factors is left as soon as it is nothing, which at most frequencies a hundred sites bring about.

*The coverage to expect where sites differ*, calibration after calibration. A score s is covered if at most ``rank - 1``
votes fall below it. Site j, with calibration size n and F_j(s) of its scores below s, has its l-th smallest below s
with probability P(Bin(n, F_j(s)) >= l); so given s the votes below it are a sum over independent sites. Averaged over
the scores of a site, this is what that site can expect; with one distribution for all sites it is the coverage that was
promised. Only shares F_j(s) are needed.

The probability falls as s rises. It is computed at about a hundred of the scores and interpolated in their rank.
Neighbours stand closer where it falls faster: between two it falls by ``STEP`` at most, and by less the more scores lie
between them (``AREA``). So averages over sites err by 1e-5 or so, and never by more than ``STEP``.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.kernels import njit

NOTHING = 1e-40  # of the square of a product
REACH, JUMPS = 9.0, 25.0  # of the window: in standard deviations, and in votes of the largest voter (Bernstein)

STEP = 1 / 50
AREA = 1e-5
FIRST = 17  # ranks at which the search for the fall begins


class Voters(NamedTuple):
    """Kinds of sites: how many of its values lie below each level (kinds, levels, values + 1), votes and number."""

    below: Floats
    votes: Ints
    number: Ints

    @property
    def total(self) -> int:
        """Return the number of all votes."""
        return int(np.sum(self.votes * self.number)) * int(self.below.shape[2] - 1)


class VoteDistribution(NamedTuple):
    """P(votes below = first + i) at each level, modulo the window; ``first`` is where the window begins."""

    first: Ints
    mass: Floats

    def at_most(self, votes: Ints) -> Floats:
        """Return P(votes below <= v), levels along the first axis and v along the second."""
        cumulated = np.cumsum(self.mass, axis=1)
        place = votes[None, :] - self.first[:, None]
        inside = np.clip(place, 0, self.mass.shape[1] - 1)
        value = np.take_along_axis(cumulated, inside, axis=1)
        return np.clip(np.where(place < 0, 0.0, np.where(place >= self.mass.shape[1], 1.0, value)), 0.0, 1.0)


def mean_and_variance(voters: Voters) -> tuple[Floats, Floats]:
    """Return mean and variance of the votes below each level."""
    values = np.arange(voters.below.shape[2], dtype=np.float64)
    mean = voters.below @ values
    variance = np.maximum(voters.below @ values**2 - mean**2, 0.0)
    votes = voters.votes.astype(np.float64)
    return (voters.number * votes) @ mean, (voters.number * votes**2) @ variance


def vote_distribution(voters: Voters) -> VoteDistribution:
    """Return the distribution of the votes below each level.

    >>> coins = Voters(np.array([[[0.5, 0.5]]]), np.array([1]), np.array([4]))
    >>> vote_distribution(coins).mass.round(4).tolist()
    [[0.0625, 0.25, 0.375, 0.25, 0.0625]]
    """
    mean, variance = mean_and_variance(voters)
    largest = int(voters.votes.max()) * (voters.below.shape[2] - 1)
    half = math.ceil(REACH * math.sqrt(float(variance.max(initial=0.0))) + JUMPS * largest) + 1
    window = min(2 * half + 1, voters.total + 1)
    first = np.zeros(len(mean), dtype=np.int64)
    if window <= voters.total:
        first = np.clip(np.rint(mean).astype(np.int64) - half, 0, voters.total + 1 - window)
    # kinds with most variance first, so that a product that vanishes does so early
    weight = voters.number * (voters.below * (1 - voters.below)).sum(axis=(1, 2))
    order = np.argsort(-weight, kind="stable")
    angle = 2 * np.pi * np.arange(window) / window
    spectrum = np.zeros((len(mean), window // 2 + 1), dtype=np.complex128)
    _spectrum(
        np.ascontiguousarray(voters.below[order].transpose(1, 0, 2)),
        voters.votes[order],
        voters.number[order],
        np.cos(angle),
        -np.sin(angle),
        spectrum,
    )
    residues = np.fft.irfft(spectrum, n=window, axis=1)
    places = (first[:, None] + np.arange(window)) % window
    return VoteDistribution(first, np.maximum(np.take_along_axis(residues, places, axis=1), 0.0))


@njit(cache=True)
def _spectrum(below, votes, number, cosine, sine, spectrum):  # type: ignore[no-untyped-def] # pragma: no cover
    """Multiply the characteristic functions of all voters at the frequencies of a window."""
    levels, kinds, values = below.shape
    window = len(cosine)
    for level in range(levels):
        for frequency in range(spectrum.shape[1]):
            real, imaginary = 1.0, 0.0
            for kind in range(kinds):
                # angles are multiples of one turn over the window: sines and cosines come from a table
                step = (frequency * votes[kind]) % window
                place = 0
                a, b = below[level, kind, 0], 0.0
                for value in range(1, values):
                    place += step
                    if place >= window:
                        place -= window
                    a += below[level, kind, value] * cosine[place]
                    b += below[level, kind, value] * sine[place]
                count = number[kind]
                while count > 0:  # a power by squaring
                    if count & 1:
                        real, imaginary = real * a - imaginary * b, real * b + imaginary * a
                    count >>= 1
                    if count > 0:
                        a, b = a * a - b * b, 2.0 * a * b
                # a factor never exceeds one in size, so a product that is nothing stays so
                if real * real + imaginary * imaginary < NOTHING:
                    real, imaginary = 0.0, 0.0
                    break
            spectrum[level, frequency] = complex(real, imaginary)


class AskedVotes(NamedTuple):
    """What a design asks: of each site its size, the orders of its values and the votes of each; and the rank taken."""

    sizes: tuple[int, ...]
    orders: tuple[tuple[int, ...], ...]
    votes: tuple[int, ...]
    rank: int


def covered(asked: AskedVotes, shares: Floats) -> Floats:
    """Return the probability that a score is covered.

    ``shares`` (sites, scores) is the part of each site's scores that lies below the score.

    >>> asked = AskedVotes((9, 9), ((9,), (9,)), (1, 1), 2)  # the larger of the two maxima
    >>> covered(asked, np.array([[0.5, 0.9, 1.0], [0.5, 0.9, 1.0]])).round(6).tolist()
    [0.999996, 0.849905, 0.0]
    """
    from scipy.special import betainc

    most = max(len(orders) for orders in asked.orders)
    # a value beyond a site's scores is infinite: none below
    orders = np.array([[*sorted(each), *[math.inf] * (most - len(each))] for each in asked.orders])
    held = orders <= np.array(asked.sizes)[:, None]
    first, above = np.where(held, orders, 1.0), np.where(held, np.array(asked.sizes)[:, None] - orders + 1, 1.0)
    reached = np.where(held[:, None, :], betainc(first[:, None, :], above[:, None, :], shares[:, :, None]), 0.0)
    # at least x values lie below a score if the x-th does
    distribution = -np.diff(reached, axis=2, prepend=1.0, append=0.0)
    voters = Voters(np.maximum(distribution, 0.0), np.array(asked.votes), np.ones(len(asked.sizes), dtype=np.int64))
    return np.asarray(vote_distribution(voters).at_most(np.array([asked.rank - 1]))[:, 0])


def curve(asked: AskedVotes, shares_at: Callable[[Ints], Floats], count: int) -> tuple[Ints, Floats]:
    """Return some ranks among the distinct scores of all sites, and the probability that such a score is covered.

    ``shares_at`` gives the part of each site's scores below the score of each rank, from 0; ``count`` is the number of
    distinct scores.

    >>> asked = AskedVotes((99, 99), ((90,), (90,)), (1, 1), 1)
    >>> ranks, chance = curve(asked, lambda ranks: np.array([ranks, ranks]) / 1000, 1000)
    >>> len(ranks) < 150, bool(np.max(np.abs(np.diff(chance))) <= STEP)
    (True, True)
    """
    ranks = np.unique(np.linspace(0, count - 1, FIRST).astype(np.int64))
    chance = covered(asked, shares_at(ranks))
    while True:
        fall, gap = -np.diff(chance), np.diff(ranks)
        steep = (gap > 1) & ((fall > STEP) | (fall * gap > AREA * count))
        between = (ranks[:-1][steep] + ranks[1:][steep]) // 2
        if not len(between):
            return ranks, chance
        both = np.concatenate([ranks, between])
        order = np.argsort(both, kind="stable")
        ranks, chance = both[order], np.concatenate([chance, covered(asked, shares_at(between))])[order]

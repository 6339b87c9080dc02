"""Which site counts at which edge of a public grid, and up to which noisy count an edge passes.

Every site counts its scores above *one* edge, and its whole budget goes to the two-sided geometric noise of that one
count. Sites are dealt to the edges in public. The counts of an edge are added, each with whole-number votes, and a scan
goes from the highest edge down to the first whose sum exceeds its threshold, as in `pooled`.

*What it promises.* The sums of different edges are about different scores, so they are independent, and the worst
distribution of the scores is known exactly (`pooled.worst_of_each`). With a part t of all scores above its edge, a sum
is distributed as the sum over its sites of ``votes (Bin(size, t) + noise)``: that is computed on a window outside of
which there is less than 1e-13 (Bernstein's inequality for the binomials, Chernoff's for the noise). Thresholds are
found in two steps, from public numbers alone: the highest at which every sum fails with one common chance; then, from
the highest edge down, one count more wherever the worst distribution still allows it. For a training-conditional
guarantee the common chance is ``delta``, and there is no second step.

*How many edges.* More edges have fewer sites each. As many are taken as can be told apart: each is to know the part of
the scores above it with a standard deviation of a part of ``alpha``.
"""

import functools
import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.protocol.selection.geometric import WORD, noisy_count
from sottovoce.server.conformal.coverage.pooled import (
    FLAT,
    OFTEN,
    ROUNDING,
    SMOOTH,
    Guarantee,
    PooledChoice,
    Promise,
    worst_of_each,
)

FEWEST, MOST = 10, 48  # edges: fewer make sets far too long, more hardly shorten them
APART = 0.4  # of alpha: the standard deviation with which each edge is to know the part of the scores above it
MOST_VOTES, EFFICIENT = 16, 0.99  # of a site's count; of the information that the best weights would keep
OUTSIDE = 32.0  # minus the logarithm of the mass outside the window of a sum
POINTS = 1 << 11  # levels at which the worst distribution is sought
NODES, CLOSE, MOST_NODES = 48, 5.0, 1024  # where sums are computed: at some levels, and so many more a deviation
TRIES = 20  # halvings of the logit of the common chance, from -14 to 14
HELD = 1 << 22  # numbers of a distribution at once


class Counters(NamedTuple):
    """Sites of an edge that are alike: how many, scores of each, votes of a count, and how its noise falls off."""

    number: int
    size: int
    votes: int
    fall: float


Crowd = tuple[Counters, ...]  # the sites of one edge


class SumDistribution(NamedTuple):
    """P(sum <= first + i) of the counts of an edge, levels along the first axis."""

    first: int
    at_most: Floats

    def failure(self, threshold: int) -> Floats:
        """Return the chance that the sum does not exceed a threshold, at each level."""
        place = threshold - self.first
        if place < 0:
            return np.zeros(len(self.at_most))
        return np.asarray(self.at_most[:, min(place, self.at_most.shape[1] - 1)])


def edges_for(sizes: Sequence[int], epsilons: Sequence[float], alpha: float) -> int:
    """Return at how many edges sites like these had best count.

    >>> [edges_for([20] * sites, [epsilon] * sites, 0.1) for sites, epsilon in ((50, 2.0), (50, 0.5), (4, 2.0))]
    [14, 10, 4]
    """
    told = float(np.sum(_information(sizes, _falls(epsilons), alpha)))
    return min(max(int(told * (APART * alpha) ** 2), FEWEST), MOST, len(sizes))


def choose_counts(
    sizes: Sequence[int],
    epsilons: Sequence[float],
    edges: int,
    alpha: float = 0.1,
    guarantee: Guarantee = "marginal",
    delta: float = 0.1,
    study: bytes = b"",
) -> PooledChoice:
    """Return which edge each site counts at, with which votes, and the thresholds, from public numbers alone.

    ``study`` decides in public who counts where (`dealt`); ``epsilons`` may be ``math.inf``, for exact counts;
    ``delta`` is the chance that a training-conditional guarantee fails.

    >>> choice = choose_counts([20] * 50, [2.0] * 50, edges=16)
    >>> choice.edge_of.count(0), set(choice.votes), choice.coverage >= 0.9
    (3, {1}, True)
    """
    if not 1 <= edges <= len(sizes) or len(sizes) != len(epsilons):
        raise BadInput(
            f"{len(sizes)} sites with {len(epsilons)} budgets cannot count at {edges} edges; give one budget a site, "
            "and no more edges than sites."
        )
    noises = [None if math.isinf(epsilon) else noisy_count(epsilon) for epsilon in epsilons]
    falls = [0.0 if noise is None else noise.fall for noise in noises]
    votes = _votes(sizes, falls, alpha)
    edge_of = dealt(_information(sizes, falls, alpha), edges, study)
    crowds = _crowds(sizes, falls, votes, edge_of, edges)
    promise = _promised(crowds, alpha, guarantee, delta)
    if promise is None or promise.infinite > OFTEN:
        raise Infeasible(
            f"{sum(sizes):,} scores at {len(sizes):,} sites cannot give a finite set by counts at this alpha and "
            "budget: noise would drown the few that may be missed; bring more scores or a larger budget."
        )
    return PooledChoice(
        cells=edges,
        thresholds=promise.thresholds,
        coverage=promise.coverage,
        confidence=promise.confidence,
        infinite=promise.infinite,
        alpha=alpha,
        epsilons=tuple(math.inf if noise is None else noise.epsilon for noise in noises),
        votes=votes,
        edge_of=edge_of,
        numerators=tuple(0 if noise is None else noise.numerator for noise in noises),
    )


def dealt(told: Floats, edges: int, study: bytes = b"") -> tuple[int, ...]:
    """Return the edge of each site: those that tell most first, as many at a time as there are edges, one each.

    Edges that have heard least come first; ties are decided by a digest of the study, so that nobody decides them.

    >>> dealt(np.ones(6), 2).count(0), max(dealt(np.ones(50), 12))
    (3, 11)
    """

    def drawn(*what: int) -> bytes:
        return hashlib.sha256(study + msgspec.msgpack.encode(what)).digest()

    order = sorted(range(len(told)), key=lambda place: (-round(float(told[place]), 9), drawn(place)))
    found, heard = [0] * len(told), [0.0] * edges
    for start in range(0, len(order), edges):
        poorest = sorted(range(edges), key=lambda edge: (round(heard[edge], 9), drawn(start, edge)))
        for place, edge in zip(order[start : start + edges], poorest, strict=False):
            found[place] = edge
            heard[edge] += float(told[place])
    return tuple(found)


def crowds_of(sizes: Sequence[int], choice: PooledChoice) -> tuple[Crowd, ...]:
    """Return the sites of each edge of a choice."""
    falls = [numerator / WORD for numerator in choice.numerators]
    return _crowds(sizes, falls, choice.votes, choice.edge_of, choice.cells)


def _falls(epsilons: Sequence[float]) -> list[float]:
    """Return how the noise of a count falls off, a step, at each budget."""
    return [math.exp(-epsilon) for epsilon in epsilons]


def _information(sizes: Sequence[int], falls: Sequence[float], alpha: float) -> Floats:
    """Return what the count of each site tells of the part of the scores above an edge of level 1 - alpha."""
    size, fall = np.array(sizes, dtype=np.float64), np.array(falls)
    return np.asarray(size**2 / (size * alpha * (1 - alpha) + 2 * fall / (1 - fall) ** 2))


def _votes(sizes: Sequence[int], falls: Sequence[float], alpha: float) -> tuple[int, ...]:
    """Return the smallest whole numbers that keep nearly all of what the best weights of the counts would tell."""
    size, told = np.array(sizes, dtype=np.float64), _information(sizes, falls, alpha)
    best = told / size / np.max(told / size)
    for most in range(1, MOST_VOTES + 1):
        votes = np.maximum(np.rint(most * best), 1.0)
        if float(votes @ size) ** 2 >= EFFICIENT * float(np.sum(told)) * float(np.sum((votes * size) ** 2 / told)):
            break
    divisor = math.gcd(*(int(vote) for vote in votes))
    return tuple(int(vote) // divisor for vote in votes)


def _crowds(
    sizes: Sequence[int], falls: Sequence[float], votes: Sequence[int], edge_of: Sequence[int], edges: int
) -> tuple[Crowd, ...]:
    """Return the sites of each edge, those alike together."""
    held: list[Counter[tuple[int, int, float]]] = [Counter() for _ in range(edges)]
    for edge, size, vote, fall in zip(edge_of, sizes, votes, falls, strict=True):
        held[edge][size, vote, fall] += 1
    return tuple(tuple(Counters(n, *alike) for alike, n in sorted(each.items())) for each in held)


@functools.lru_cache(maxsize=32)
def _promised(crowds: tuple[Crowd, ...], alpha: float, guarantee: Guarantee, delta: float) -> Promise | None:
    """Return the highest thresholds that keep a guarantee, and what they are sure to reach; None if there are none."""
    held = EdgeSums(crowds, alpha)
    thresholds = held.at(delta) if guarantee == "training-conditional" else held.raised(held.largest())
    missed = held.missed(thresholds)
    if guarantee == "marginal" and missed > alpha:
        return None
    fails = max(held.chance(edge, threshold, alpha) for edge, threshold in enumerate(thresholds))
    nothing_above = held.chance(len(crowds) - 1, thresholds[-1], 0.0)
    return Promise(thresholds, 1 - missed, 1 - fails, 1 - nothing_above)


class EdgeSums:
    """The sums of all edges at many levels of the scores, and what thresholds would miss."""

    def __init__(self, crowds: tuple[Crowd, ...], alpha: float) -> None:
        self._alpha = alpha
        kinds = sorted(set(crowds))
        self._kind = [kinds.index(crowd) for crowd in crowds]
        ends = [_window(crowd, alpha) for crowd in kinds]
        # tails are the squares of sines, of whose angles a binomial has the same deviation everywhere
        first = math.asin(math.sqrt(max(high for _, high in ends)))
        last = math.asin(math.sqrt(min(low for low, _ in ends)))
        close = CLOSE / min(_deviation(crowd, alpha) for crowd in kinds)
        nodes = np.linspace(first, last, min(NODES + math.ceil(close * (first - last)), MOST_NODES))
        fine = np.linspace(first, last, POINTS)
        self._nodes, self._fine, self._levels = -nodes, -fine, np.cos(fine) ** 2
        self._sums = [sum_distribution(crowd, np.sin(nodes) ** 2) for crowd in kinds]
        self._known = {tail: [sum_distribution(crowd, np.array([tail])) for crowd in kinds] for tail in (0.0, alpha)}
        self._curves: dict[tuple[int, int], Floats] = {}

    def chance(self, edge: int, threshold: int, tail: float) -> float:
        """Return the chance that the sum of an edge does not exceed a threshold where the tail is alpha, or nothing."""
        return float(self._known[tail][self._kind[edge]].failure(threshold)[0])

    def at(self, chance: float) -> tuple[int, ...]:
        """Return the highest thresholds that fail with a chance at most at level 1 - alpha."""
        known = self._known[self._alpha]
        found = [each.first - 1 + int(np.searchsorted(each.at_most[0], chance, side="right")) for each in known]
        return tuple(found[kind] for kind in self._kind)

    def largest(self) -> tuple[int, ...]:
        """Return the highest thresholds of one common chance that miss with alpha at most in the worst case."""
        low, high = -14.0, 14.0
        kept, above = (self.at(1 / (1 + math.exp(-logit))) for logit in (low, high))
        for _ in range(TRIES):
            middle = (low + high) / 2
            tried = self.at(1 / (1 + math.exp(-middle)))
            if tried == kept or (tried != above and self.missed(tried) <= self._alpha):
                low, kept = middle, tried
            else:
                high, above = middle, tried
        return kept

    def raised(self, thresholds: tuple[int, ...]) -> tuple[int, ...]:
        """Return thresholds with one count more where the worst distribution allows it, the highest edge first."""
        found = thresholds
        for edge in reversed(range(len(thresholds))):
            tried = (*found[:edge], found[edge] + 1, *found[edge + 1 :])
            found = tried if self.missed(tried) <= self._alpha else found
        return found

    def missed(self, thresholds: tuple[int, ...]) -> float:
        """Return the largest miss probability over all distributions of the scores."""
        curves = [self._curve(kind, each) for kind, each in zip(self._kind, thresholds, strict=True)]
        return min(1.0, worst_of_each(np.array(curves), self._levels) + ROUNDING)

    def _curve(self, kind: int, threshold: int) -> Floats:
        """Return the chance that a sum does not exceed a threshold at all levels, by a spline through some."""
        from scipy.interpolate import make_interp_spline

        if (kind, threshold) not in self._curves:
            through = make_interp_spline(self._nodes, self._sums[kind].failure(threshold), k=SMOOTH)
            self._curves[kind, threshold] = np.maximum.accumulate(np.clip(through(self._fine), 0.0, 1.0))
        return self._curves[kind, threshold]


def sum_distribution(crowd: Crowd, tails: Floats) -> SumDistribution:
    """Return the distribution of the sum of an edge at each part of the scores above it.

    >>> coins = sum_distribution((Counters(2, 1, 1, 0.0),), np.array([0.5]))
    >>> [round(float(coins.failure(threshold)[0]), 12) for threshold in (-1, 0, 1, 2)]
    [0.0, 0.25, 0.75, 1.0]
    """
    slope = _slope(crowd)
    reach = _binomial_reach(crowd, float(np.min(tails)), float(np.max(tails)), OUTSIDE) + _noise_reach(crowd, OUTSIDE)
    first = math.floor(slope * float(np.min(tails)) - reach)
    size = math.ceil(slope * float(np.max(tails)) + reach) - first + 1
    angle = 2 * np.pi / size * np.arange(size // 2 + 1)
    at_most = np.empty((len(tails), size))
    step = max(1, HELD // size)
    for start in range(0, len(tails), step):
        tail = tails[start : start + step, None]
        spectrum = np.exp(1j * angle * first) * np.ones_like(tail)
        for number, scores, votes, fall in crowd:
            turn = votes * angle
            noise = (1 - fall) ** 2 / ((1 - fall) ** 2 + 4 * fall * np.sin(turn / 2) ** 2)
            spectrum = spectrum * noise**number * (1 - tail + tail * np.exp(-1j * turn)) ** (number * scores)
        at_most[start : start + step] = np.cumsum(np.fft.irfft(spectrum, n=size, axis=1), axis=1)
    return SumDistribution(first, np.clip(at_most, 0.0, 1.0))


def _slope(crowd: Crowd) -> float:
    """Return how the mean of a sum grows with the part of the scores above the edge."""
    return float(sum(each.number * each.votes * each.size for each in crowd))


def _deviation(crowd: Crowd, alpha: float) -> float:
    """Return the standard deviation of a sum at level 1 - alpha, as an angle whose squared sine is the tail."""
    noise = sum(each.number * each.votes**2 * 2 * each.fall / (1 - each.fall) ** 2 for each in crowd)
    variance = sum(each.number * each.votes**2 * each.size for each in crowd) * alpha * (1 - alpha) + noise
    return math.sqrt(variance) / _slope(crowd) / (2 * math.sqrt(alpha * (1 - alpha)))


def _binomial_reach(crowd: Crowd, low: float, high: float, outside: float) -> float:
    """Return how far binomials of tails between two ends stray from their means, but for a chance exp(-outside)."""
    tail = min(max(0.5, low), high)  # where the variance is largest
    variance = sum(each.number * each.votes**2 * each.size for each in crowd) * tail * (1 - tail)
    jump = max(each.votes for each in crowd) * outside / 3
    return jump + math.sqrt(jump**2 + 2 * variance * outside)


def _noise_reach(crowd: Crowd, outside: float) -> float:
    """Return how far the noise of a sum strays from zero, but for a chance of exp(-outside)."""
    noisy = [each for each in crowd if each.fall > 0]
    if not noisy:
        return 0.0
    tilt = min(-math.log(each.fall) / each.votes for each in noisy) * np.linspace(0.01, 0.99, 99)
    moment = np.zeros_like(tilt)
    for number, _, votes, fall in noisy:
        turned = votes * tilt
        both = np.log1p(-fall * np.exp(turned)) + np.log1p(-fall * np.exp(-turned))
        moment += number * (2 * math.log1p(-fall) - both)
    return float(np.min((moment + outside) / tilt))


def _window(crowd: Crowd, alpha: float) -> tuple[float, float]:
    """Return the parts of the scores above an edge between which a sum turns from sure failure to sure success."""
    slope, noise = _slope(crowd), _noise_reach(crowd, FLAT)
    low, high = 0.0, 1.0
    for _ in range(6):  # each window holds the turn, for a threshold as far off as chance goes; its variance narrows it
        reach = 2 * (_binomial_reach(crowd, low, high, FLAT) + noise) / slope
        low, high = max(alpha - reach, 0.0), min(alpha + reach, 1.0)
    return low, high

"""How long sets will be by each mechanism, for scores of a common shape: a forecast, on which no promise rests.

Scores are taken to fall off exponentially above the lowest edge, with their 1 - alpha quantile at one edge of the grid
or another. The chance of every answer is then computed: of counts exactly; of a sparse vector, for sites of equal size,
from the top cell down, as a chain over how many scores of a site lie above (each score below an edge moves on to the
next with one chance) and the noise of its threshold.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.selection.geometric import cost
from sottovoce.protocol.selection.sparse_vector import SparseVector
from sottovoce.server.conformal.coverage.counted import crowds_of, sum_distribution
from sottovoce.server.conformal.coverage.pooled import PooledChoice

PLACES = (0.85, 0.6, 0.35)  # of the quantile among the edges, from the lowest
BEYOND = 2.0  # times the distance of the highest edge: what an infinite set counts as
SURE, MOST_NOISE = 8.0, 96  # minus the logarithm of noise that is left out; units of it


def tails_of(edges: Floats, alpha: float, place: float) -> tuple[Floats, Floats]:
    """Return the part of the scores above each edge, and how many times as far each edge lies as the quantile.

    >>> tails, lengths = tails_of(np.array([1.0, 2.0, 4.0, 8.0]), 0.1, 0.5)
    >>> tails.round(3).tolist(), lengths.round(3).tolist()
    ([0.464, 0.215, 0.046, 0.002], [0.333, 0.667, 1.333, 2.667])
    """
    start = 0.0 if edges[0] > 0 else float(edges[0] - (edges[-1] - edges[0]) / len(edges))
    middle = float(np.interp(place * (len(edges) - 1), np.arange(len(edges)), edges))
    lengths = (edges - start) / (middle - start)
    return alpha**lengths, lengths


class Forecast(NamedTuple):
    """What is to be expected of calibrations: mean and spread of the coverage, and the length of a set.

    ``length`` is the geometric mean of the threshold over the quantile; ``distance`` the root mean square of coverage
    from 1 - alpha.
    """

    coverage: float
    spread: float
    distance: float
    length: float


def forecast(reached: Callable[[Floats], Floats], edges: Floats, alpha: float) -> Forecast:
    """Return what to expect, over several places of the quantile.

    ``reached`` returns from the part of the scores above each edge the chance that the threshold is there or lower.

    >>> certain = forecast(lambda tails: (tails <= 0.1).astype(float), np.geomspace(0.1, 10.0, 50), 0.1)
    >>> round(certain.coverage, 3), round(certain.length, 3)  # the first edge that covers enough
    (0.912, 1.057)
    """
    chances, levels, logs = [], [], []
    for place in PLACES:
        tails, lengths = tails_of(edges, alpha, place)
        chances.append(np.diff(reached(tails), prepend=0.0, append=1.0) / len(PLACES))
        levels.append(np.append(1 - tails, 1.0))
        logs.append(np.log(np.append(lengths, BEYOND * lengths[-1])))
    chance, level = np.concatenate(chances), np.concatenate(levels)
    mean = float(chance @ level)
    spread, distance = (math.sqrt(float(chance @ (level - middle) ** 2)) for middle in (mean, 1 - alpha))
    return Forecast(mean, spread, distance, math.exp(float(chance @ np.concatenate(logs))))


def reached_by_counts(choice: PooledChoice, sizes: Sequence[int], tails: Floats) -> Floats:
    """Return the chance that counts find each edge or a lower one: that all sums from there upwards pass."""
    crowds = crowds_of(sizes, choice)
    passed = [
        float(sum_distribution(crowd, tails[edge : edge + 1]).failure(threshold)[0])
        for edge, (crowd, threshold) in enumerate(zip(crowds, choice.thresholds, strict=True))
    ]
    return np.asarray(np.cumprod(passed[::-1])[::-1])


def expected_range(
    reached: Callable[[Floats], Floats], edges: Floats, alpha: float, part: float, places: int
) -> tuple[float, float]:
    """Return between which levels of the scores a threshold lies in a part of all calibrations, on average over places.

    ``reached`` is as in `forecast`; the level of an infinite threshold is one.

    >>> edges = np.geomspace(0.1, 10.0, 50)
    >>> low, high = expected_range(lambda tails: (tails <= 0.1).astype(float), edges, 0.1, 0.95, 9)
    >>> round(low, 3) == round(high, 3)
    True
    """
    ends = []
    for place in np.linspace(PLACES[-1], PLACES[0], places):
        tails, _ = tails_of(edges, alpha, float(place))
        levels, chances = np.append(1 - tails, 1.0), reached(tails)
        ends.append([levels[np.searchsorted(chances, each)] for each in ((1 - part) / 2, (1 + part) / 2)])
    low, high = np.mean(ends, axis=0)
    return float(low), float(high)


def reached_by_cells(mechanism: SparseVector, sites: int, rank: int, tails: Floats) -> Floats:
    """Return the chance that a rank of equal sites' cells is at each edge or lower."""
    from scipy.special import bdtrc

    one = np.cumsum(named(mechanism, tails))[:-1]
    return np.asarray(bdtrc(rank - 1, sites, np.clip(one, 0.0, 1.0)))


def named(mechanism: SparseVector, tails: Floats) -> Floats:
    """Return the chance of each cell that a site names, the lowest first, for independent scores.

    >>> from sottovoce.protocol.selection.sparse_vector import sparse_vector
    >>> second_of_20 = sparse_vector(20, 19, 4, 50.0)
    >>> named(second_of_20, np.array([0.5, 0.1, 0.0])).round(3).tolist()
    [0.0, 0.392, 0.608, 0.0]
    """
    wanted, query, threshold = mechanism.size - mechanism.order, cost(mechanism.query), cost(mechanism.threshold)
    noise = np.arange(min(math.ceil(SURE / threshold), MOST_NOISE) + 1)
    most = int(min(mechanism.size, max(wanted, 0) + noise[-1] + 1))  # so many scores above an edge surely stop a scan
    count = np.arange(most + 1)
    stops = np.exp(-query * np.maximum(wanted + noise[None, :] - count[:, None] + 1, 0))
    alive = np.zeros((most + 1, len(noise)))
    alive[0] = np.exp(-threshold * noise) / np.exp(-threshold * noise).sum()
    found, above = np.zeros(len(tails) + 1), 0.0
    for cell in range(len(tails), 0, -1):
        tail = float(tails[cell - 1])
        moved = _moves(mechanism.size, most, (tail - above) / (1 - above) if above < 1 else 0.0) @ alive
        found[cell] = float(np.sum(moved * stops)) + max(float(alive.sum() - moved.sum()), 0.0)
        alive, above = moved * (1 - stops), tail
    found[0] = float(alive.sum())
    return found


def _moves(size: int, most: int, chance: float) -> Floats:
    """Return the chance that so many scores (rows) lie above an edge if as many (columns) lie above the next."""
    from scipy.special import gammaln, xlog1py, xlogy

    before = np.arange(most + 1)[None, :]
    more = np.arange(most + 1)[:, None] - before
    left = size - before
    kept = np.clip(more, 0, left)
    logs = gammaln(left + 1) - gammaln(kept + 1) - gammaln(left - kept + 1) + xlogy(kept, chance)
    return np.asarray(np.where(more >= 0, np.exp(logs + xlog1py(left - kept, -chance)), 0.0))

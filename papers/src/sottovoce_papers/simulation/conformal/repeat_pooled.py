"""Many calibrations whose counts are summed over sites before any is read: one edge a site or record, and secure sums.

What is counted and compared is decided by the code that ships (`server.conformal.coverage`). Locally every edge has
records of its own, so the yeses of a site are independent binomial counts; in a secure sum the sites' shares of noise
add up to one two-sided geometric variable a cell (`protocol.selection.geometric`).
"""

from collections.abc import Sequence

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.protocol.randomised_response import binary, rate_of
from sottovoce.server.conformal.coverage.pooled import PooledChoice
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.conformal.repeat import Repeated, covered
from sottovoce_papers.simulation.conformal.score_distributions import ScoreDistribution
from sottovoce_papers.simulation.conformal.selections import geometric


def repeat_local(
    choice: PooledChoice, distribution: ScoreDistribution, edges: Floats, replications: int, seed: int
) -> Repeated:
    """Let every record answer one question, again and again.

    Examples
    --------
    >>> from sottovoce.server.conformal.coverage.pooled_modes import choose_local
    >>> from sottovoce_papers.simulation.conformal.score_distributions import score_distribution
    >>> scores = score_distribution("exponential")
    >>> found = repeat_local(choose_local([900] * 2, [4.0] * 2, bins=8), scores, scores.edges(8), 400, seed=1)
    >>> found.mean > 0.9
    True
    """
    generator, tails = dice(seed).generator(), 1 - distribution.cdf(edges)
    total = np.zeros((replications, len(edges)), dtype=np.int64)
    for asked, votes, epsilon in zip(choice.asked, choice.votes, choice.epsilons, strict=True):
        channel = binary(epsilon)
        chances = channel.distribution[0, 1] + rate_of(channel) * tails
        total += votes * generator.binomial(asked, chances, total.shape)
    return _read(total, choice, distribution, edges)


def repeat_aggregate(
    choice: PooledChoice, records: int, distribution: ScoreDistribution, edges: Floats, replications: int, seed: int
) -> Repeated:
    """Add the noisy counts of all sites, again and again.

    Examples
    --------
    >>> from sottovoce.server.conformal.coverage.pooled_modes import choose_aggregate
    >>> from sottovoce_papers.simulation.conformal.score_distributions import score_distribution
    >>> scores = score_distribution("exponential")
    >>> found = repeat_aggregate(choose_aggregate(1000, 5, 1.0, bins=8), 1000, scores, scores.edges(8), 400, seed=1)
    >>> found.mean > 0.9
    True
    """
    generator = dice(seed).generator()
    chances = np.diff(distribution.cdf(edges), prepend=0.0, append=1.0)
    cells = generator.multinomial(records, chances, replications)[:, 1:]
    if choice.noise is not None and choice.noise.numerator:
        up, down = (geometric(choice.noise.numerator, cells.shape, generator) for _ in range(2))
        cells = cells + up - down
    return _read(np.cumsum(cells[:, ::-1], axis=1)[:, ::-1], choice, distribution, edges)


def repeat_counts(
    choice: PooledChoice,
    sizes: Sequence[int],
    distribution: ScoreDistribution,
    edges: Floats,
    replications: int,
    seed: int,
) -> Repeated:
    """Let every site count at its own edge, again and again.

    Examples
    --------
    >>> from sottovoce.server.conformal.coverage.counted import choose_counts
    >>> from sottovoce_papers.simulation.conformal.score_distributions import score_distribution
    >>> scores = score_distribution("exponential")
    >>> choice = choose_counts([20] * 50, [2.0] * 50, edges=10)
    >>> found = repeat_counts(choice, [20] * 50, scores, scores.edges(10), 400, seed=1)
    >>> found.mean > 0.9
    True
    """
    generator, tails = dice(seed).generator(), 1 - distribution.cdf(edges)
    total = np.zeros((replications, len(edges)), dtype=np.int64)
    for edge, votes, size, numerator in zip(choice.edge_of, choice.votes, sizes, choice.numerators, strict=True):
        counts = generator.binomial(size, tails[edge], replications)
        if numerator:
            up, down = (geometric(numerator, (replications,), generator) for _ in range(2))
            counts = counts + up - down
        total[:, edge] += votes * counts
    return _read(total, choice, distribution, edges)


def _read(counts: Ints, choice: PooledChoice, distribution: ScoreDistribution, edges: Floats) -> Repeated:
    """Scan the counts from the highest edge down to the first that exceeds its threshold."""
    stops = (counts > np.array(choice.thresholds))[:, ::-1]
    cells = np.where(stops.any(axis=1), choice.cells - stops.argmax(axis=1), 0)
    thresholds = np.append(edges, np.inf)[cells]
    return Repeated(thresholds, covered(distribution, thresholds))

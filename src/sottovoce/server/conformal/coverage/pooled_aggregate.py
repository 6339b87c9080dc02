"""Secure aggregation: the server learns the sum of all sites' tail histograms with noise, and nothing else.

The tail count at edge b is the sum of the noisy cells above it, so it carries ``B - b + 1`` two-sided geometric
variables; the thresholds are set so that all comparisons fail equally often at level ``1 - alpha``. The comparisons
share records and noise, so the worst law uses that a scan misses only if each single comparison fails.
"""

import math

from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.protocol.selection.polya import polya
from sottovoce.server.conformal.coverage.pooled import Guarantee, PooledChoice, grown, promised, refuse_infinite
from sottovoce.server.conformal.coverage.pooled_distribution import PooledCount, RecordGroup, noise_reach
from sottovoce.server.conformal.coverage.pooled_worst import worst_of_any

DROWNED = 1.5  # times the records that may be missed: noise of so many leaves no finite set
FARTHEST = 400_000  # counts that noise may reach; the time to compute its law grows with it
LARGEST = 1 << 30  # records: their counts and the noise must fit signed integers of 32 bits


def choose_aggregate(
    total: int,
    sites: int,
    epsilon: float,
    bins: int = 32,
    alpha: float = 0.1,
    guarantee: Guarantee = "marginal",
    delta: float = 0.1,
) -> PooledChoice:
    """Return each site's noise and the thresholds of the summed histogram, from public numbers alone.

    The privacy is that of the central model: epsilon holds for whoever sees the sum over *all* sites and nothing else.
    It takes a secure aggregation of the messages, and every site must take part.

    Parameters
    ----------
    total
        The number of records of all sites together.
    sites
        The number of sites.
    epsilon
        The budget of a record; ``math.inf`` for no noise.
    bins
        The number of edges; the noise of a tail count grows with the cells in it.
    alpha
        The part of new scores that may be missed.
    guarantee
        ``"marginal"`` or ``"training-conditional"``.
    delta
        The chance that the coverage falls short of ``1 - alpha`` (training-conditional).

    Returns
    -------
    PooledChoice
        The noise and the thresholds, of the lowest edge first.

    Examples
    --------
    >>> choice = choose_aggregate(1_000, sites=5, epsilon=1.0, bins=8)
    >>> choice.thresholds[0], choice.thresholds[-1], choice.coverage >= 0.9
    (102, 101, True)
    """
    if bins < 1 or not 1 <= total < LARGEST:
        raise BadInput(
            f"{total:,} records on {bins} edges make no sum; give at least one record and one edge, and fewer than "
            f"{LARGEST:,} records."
        )
    noise = polya(epsilon, sites)
    if math.sqrt(noise.variance) > DROWNED * alpha * total:
        needed = math.ceil(math.sqrt(noise.variance * bins) / alpha)
        digits = int(10 ** max(0, len(str(needed)) - 2))
        raise Infeasible(
            f"{total:,} records cannot give a finite set at this alpha and budget: noise would drown the few that may "
            f"be missed; bring about {math.ceil(needed / digits) * digits:,} records, or a larger budget."
        )
    if noise_reach(float(noise.ratio), bins) > FARTHEST:
        raise BadInput(
            f"epsilon {epsilon!r} adds too much noise to {bins} cells for its law to be computed; give a larger "
            "budget, fewer bins, or choose mechanism 'sparse-vector'."
        )
    count = PooledCount((RecordGroup(total, 1, 0.0, 1.0),), float(noise.ratio), tuple(range(bins, 0, -1)))
    promise = promised(count, worst_of_any, alpha, guarantee, delta)
    refuse_infinite(
        promise,
        total,
        lambda factor: promised(grown(count, factor), worst_of_any, alpha, guarantee, delta),
        "or a larger budget",
    )
    return PooledChoice(
        cells=bins,
        thresholds=promise.thresholds,
        coverage=promise.coverage,
        confidence=promise.confidence,
        infinite=promise.infinite,
        alpha=alpha,
        epsilons=(noise.epsilon,) * sites,
        votes=(1,) * sites,
        noise=noise,
    )

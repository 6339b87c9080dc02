"""What pooled counts ask of the sites in the two modes: one-record local privacy, and secure aggregation.

*Local*: each record answers one question about one edge through randomised response. Every site gives each question
equally many records, so all comparisons have one distribution; they are about different records, so they are
independent, and the worst distribution of the scores is known exactly. Sites of different budgets get votes near the
optimal weights of a linear test at level ``1 - alpha``: rate / (chance of a yes x chance of a no).

*Aggregate*: the server learns the sum of all sites' tail histograms with noise, and nothing else. The tail count at
edge b is the sum of the noisy cells above it, so it carries ``B - b + 1`` two-sided geometric variables; the thresholds
are set so that all comparisons fail equally often at level ``1 - alpha``. The comparisons share records and noise, so
the worst distribution uses that a scan misses only if each single comparison fails.
"""

import math
from collections.abc import Sequence

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.protocol.randomised_response import binary, rate_of
from sottovoce.protocol.selection.geometric import polya
from sottovoce.server.conformal.coverage.pooled import (
    Guarantee,
    PooledChoice,
    grown,
    promised,
    refuse_infinite,
    worst_of_any,
    worst_of_independent,
)
from sottovoce.server.conformal.coverage.pooled_distribution import PooledCount, RecordGroup, noise_reach

MOST_VOTES = 32  # of the site that tells most; chosen by hand
EFFICIENT = 0.995  # of the information that the optimal weights would keep; chosen by hand

DROWNED = 1.5  # times the records that may be missed: noise of so many leaves no finite set
FARTHEST = 400_000  # counts that noise may reach; the time to compute its distribution grows with it
LARGEST = 1 << 30  # records: their counts and the noise must fit signed integers of 32 bits


def choose_local(
    sizes: Sequence[int],
    epsilons: Sequence[float],
    bins: int = 16,
    alpha: float = 0.1,
    guarantee: Guarantee = "marginal",
    delta: float = 0.1,
) -> PooledChoice:
    """Return what to ask of each record, and the threshold of the counts, from public numbers alone.

    Each of ``bins`` questions takes its own part of the records, so fewer are better. A budget may be ``math.inf``, for
    truthful answers. ``delta`` is the chance that a training-conditional guarantee fails.

    >>> choice = choose_local([5_000, 5_000], [1.0, 1.0], bins=8)
    >>> choice.thresholds[0], choice.votes, choice.asked, choice.coverage >= 0.9
    (404, (1, 1), (625, 625), True)
    """
    if bins < 1 or not sizes or len(sizes) != len(epsilons):
        raise BadInput(
            f"{len(sizes)} sizes, {len(epsilons)} budgets and {bins} questions make no study; give one budget "
            "per site, at least one site and at least one question."
        )
    asked = tuple(size // bins for size in sizes)
    if not any(asked):
        raise Infeasible(
            f"no site has {bins} records, one for each of {bins} questions: none would answer; "
            f"ask fewer questions, or bring at least {bins} records to a site."
        )
    channels = {epsilon: binary(epsilon) for epsilon in epsilons}
    lows = np.array([channels[epsilon].distribution[0, 1] for epsilon in epsilons])
    rates = np.array([rate_of(channels[epsilon]) for epsilon in epsilons])
    votes = _votes(np.array(asked), lows + rates * alpha, rates)
    groups: dict[tuple[int, float, float], int] = {}
    for number, vote, low, rate in zip(asked, votes, lows.tolist(), rates.tolist(), strict=True):
        if number and vote:
            groups[vote, low, rate] = groups.get((vote, low, rate), 0) + number
    count = PooledCount(tuple(RecordGroup(n, v, low, rate) for (v, low, rate), n in groups.items()), 0.0, (0,))

    def worst(failure: Floats, levels: Floats) -> float:
        return worst_of_independent(failure[0], levels, bins)

    promise = promised(count, worst, alpha, guarantee, delta)
    refuse_infinite(
        promise,
        sum(sizes),
        lambda factor: promised(grown(count, factor), worst, alpha, guarantee, delta),
        "a larger budget, or fewer questions",
    )
    return PooledChoice(
        cells=bins,
        thresholds=promise.thresholds * bins,
        coverage=promise.coverage,
        confidence=promise.confidence,
        infinite=promise.infinite,
        alpha=alpha,
        epsilons=tuple(channels[epsilon].epsilon for epsilon in epsilons),
        votes=votes,
        asked=asked,
    )


def _votes(asked: Ints, chances: Floats, rates: Floats) -> tuple[int, ...]:
    """Return the smallest integers that keep nearly all information of the optimal weights."""
    noise = chances * (1 - chances)
    optimal = np.where(asked > 0, rates / noise, 0.0)
    optimal /= np.max(optimal)
    best = float(np.sum(asked * rates**2 / noise))
    for most in range(1, MOST_VOTES + 1):
        votes = np.rint(most * optimal)
        kept = float(np.sum(votes * asked * rates)) ** 2 / float(np.sum(votes**2 * asked * noise))
        if kept >= EFFICIENT * best:
            break
    divisor = math.gcd(*(int(vote) for vote in votes))
    return tuple(int(vote) // divisor for vote in votes)


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

    ``epsilon`` may be ``math.inf``, for no noise; the noise of a tail count grows with the cells in it. ``delta`` is
    the chance that a training-conditional guarantee fails.
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
            f"epsilon {epsilon!r} adds too much noise to {bins} cells for its distribution to be computed; give a "
            "larger budget, fewer bins, or choose mechanism 'sparse-vector'."
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

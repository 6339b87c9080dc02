"""Choosing the thresholds of a top-down scan over pooled counts, so that it covers whatever the scores' distribution.

The scan goes through the edges of a public grid from the highest down and stops at the first one above which the noisy
pooled count of scores exceeds its threshold; the answer is the upper edge of the cell above it. All thresholds are made
from one number: the chance that a comparison fails at an edge of level ``1 - alpha``. For a training-conditional
guarantee it is ``delta``: the coverage is below ``1 - alpha`` only if the comparison at the last edge below that level
failed. For a marginal one it is the largest for which the worst distribution is covered.

*The worst mean coverage* over all distributions of the scores (our own, by dynamic programming). Write ``q_1 <= ... <=
q_B`` for the levels ``F(e_b)`` of the edges, ``q_(B+1) = 1``. A scan that answers cell ``a`` covers a new score with
probability ``q_(a+1)``, ties or not, so it misses with

    sum over b of (q_(b+1) - q_b) P(answer < b).

The distribution of the scores enters by the levels alone, so the worst distribution is a maximum over them. The answer
is below ``b`` only if every comparison from ``b`` upwards failed. If the comparisons are independent that is a product
of failures:

    miss_b(x) = max over q <= x of failure(q) (x - q + miss_(b-1)(q)),         worst = miss_B(1).

In general it is at most ``failure_b(q_b)``, and ``miss_b(x) = max of failure_b(q) (x - q) + miss_(b-1)(q)``. Both
maxima run over straight lines in ``x`` whose slopes grow with ``q``: one pass along their upper envelope.

On a grid the maximum is taken over grid levels only. Rounding all levels up to the grid lowers no P(answer < b) and,
because these probabilities grow with ``b``, takes at most one spacing off the sum (summation by parts); so the grid's
maximum plus one spacing is a bound for every distribution. Levels outside the grid cost at most the failure at its
lower end and, for each cell, the success at its upper end.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.core.kernels import COMPILED, njit
from sottovoce.protocol.selection.geometric import Polya
from sottovoce.server.conformal.coverage.pooled_distribution import PooledCount, binomial_reach, failures, noise_reach

Guarantee = Literal["marginal", "training-conditional"]

# Levels at which the distribution is computed: some, and so many more per standard deviation, up to a limit.
NODES, CLOSE, MOST_NODES = 256, 4.0, 1024
SMOOTH = 7  # degree of the spline between them, whose error is below 1e-9
POINTS = 1 << 14  # levels of the grid on which the worst distribution is sought
ROUNDING = 1e-8  # added to the miss probability for the errors of the spline and of the sums
FLAT = 24.0  # minus the logarithm of what a comparison may still fail or succeed at the ends of the window
TRIES, NEAR = 30, 1e-5  # tries at most, and how near the mean coverage comes to 1 - alpha if thresholds let it
LEAP, HALVINGS = 8.0, 2  # steps of the search for a sufficient number of records, and how often the last is halved
MOST_RECORDS = 100_000_000  # where the search for a sufficient number gives up
OFTEN = (
    0.5  # of infinite sets although no score lies above the grid: beyond it, by our judgement, no answer is worth it
)


@dataclass(frozen=True)
class PooledChoice:
    """What the sites are asked and how the server reads it; nothing of it depends on a score.

    ``thresholds[b - 1]`` belongs to the b-th edge: the scan stops there when the count of scores above it exceeds the
    threshold. ``coverage`` is at most the mean coverage, and ``confidence`` at most the chance that the coverage
    reaches ``1 - alpha``, whatever the distribution of the scores. ``infinite`` is the share of infinite sets when no
    score lies above the grid. Locally each question goes to ``asked`` records of a site, and a yes has ``votes``; for a
    secure sum ``noise`` is what each site adds. A site that counts does so above one edge, ``edge_of`` from 0, and the
    noise of its count has the integer of ``numerators``, zero for none.
    """

    cells: int
    thresholds: tuple[int, ...]
    coverage: float
    confidence: float
    infinite: float
    alpha: float
    epsilons: tuple[float, ...]
    votes: tuple[int, ...]
    asked: tuple[int, ...] = ()
    noise: Polya | None = None
    edge_of: tuple[int, ...] = ()
    numerators: tuple[int, ...] = ()


class Promise(NamedTuple):
    """What a choice of thresholds is sure to reach."""

    thresholds: tuple[int, ...]
    coverage: float
    confidence: float
    infinite: float


def promised(
    count: PooledCount, worst: Callable[[Floats, Floats], float], alpha: float, guarantee: Guarantee, delta: float
) -> Promise:
    """Return the highest thresholds that keep a guarantee.

    ``worst`` returns the largest miss probability from the failures (B, levels) and the levels; ``delta`` is the chance
    that a training-conditional guarantee fails.

    >>> from sottovoce.server.conformal.coverage.pooled_distribution import RecordGroup
    >>> from sottovoce.server.conformal.coverage.pooled import worst_of_any
    >>> count = PooledCount((RecordGroup(999, 1, 0.0, 1.0),), 0.0, (0,) * 8)
    >>> promise = promised(count, worst_of_any, 0.1, "marginal", 0.1)
    >>> promise.thresholds[0], promise.coverage >= 0.9
    (101, True)
    """
    if not 0 < alpha < 1:
        raise BadInput(f"alpha lies between 0 and 1, not {alpha!r}; give the part of scores that may be missed.")
    if guarantee == "training-conditional":
        if not 0 < delta < 1:
            raise BadInput(f"delta lies between 0 and 1, not {delta!r}; give the chance that the guarantee may fail.")
        thresholds = thresholds_at(count, alpha, delta)
        missed = _missed(count, worst, thresholds)
    elif guarantee == "marginal":
        thresholds, missed = _largest(count, worst, alpha)
    else:
        raise BadInput(f'the guarantee is "marginal" or "training-conditional", not {guarantee!r}.')
    fails = failures(count, thresholds, np.array([alpha]))
    nothing_above = failures(count, thresholds, np.array([0.0]))
    return Promise(thresholds, 1 - missed, 1 - float(fails.max()), 1 - float(nothing_above[-1, 0]))


def grown(count: PooledCount, factor: float) -> PooledCount:
    """Return what would be counted with so many times the records."""
    return count._replace(groups=tuple(c._replace(number=math.ceil(c.number * factor)) for c in count.groups))


def thresholds_at(count: PooledCount, alpha: float, chance: float) -> tuple[int, ...]:
    """Return the largest thresholds at which each comparison fails at most with a chance, the tail being alpha."""
    tail = np.array([alpha])
    reach = math.ceil(binomial_reach(count, tail)) + noise_reach(count.ratio, max(count.terms))
    middle = int(count.mean(alpha))
    low = np.full(len(count.terms), middle - reach - 2)
    high = np.full(len(count.terms), middle + reach + 2)
    while np.max(high - low) > 1:
        between = (low + high) // 2
        good = failures(count, between.tolist(), tail)[:, 0] <= chance
        low, high = np.where(good, between, low), np.where(good, high, between)
    return tuple(low.tolist())


def refuse_infinite(promise: Promise, records: int, grown: Callable[[float], Promise], advice: str) -> None:
    """Refuse thresholds that noise alone would exceed in every second study; say how many records it takes.

    ``grown(factor)`` is the promise that so many times the records would allow.
    """
    if promise.infinite <= OFTEN:
        return
    enough, factor = None, LEAP
    while enough is None and records * factor < MOST_RECORDS:
        enough = factor if grown(factor).infinite <= OFTEN else None
        factor *= LEAP
    if enough is None:
        needed = f"more than {MOST_RECORDS:,}"
    else:
        low = enough / LEAP
        for _ in range(HALVINGS):
            middle = math.sqrt(low * enough)
            low, enough = (low, middle) if grown(middle).infinite <= OFTEN else (middle, enough)
        digits = int(10 ** max(0, len(str(math.ceil(records * enough))) - 2))
        needed = f"about {math.ceil(records * enough / digits) * digits:,}"
    raise Infeasible(
        f"{records:,} records cannot give a finite set at this alpha and budget: noise alone would exceed the "
        f"threshold in {promise.infinite:.0%} of the studies; bring {needed} records, {advice}."
    )


def _largest(
    count: PooledCount, worst: Callable[[Floats, Floats], float], alpha: float
) -> tuple[tuple[int, ...], float]:
    """Return the highest thresholds that miss with alpha at most in the worst case, and how often they do."""
    low, high = -20.0, 20.0  # logits of the chance that a comparison fails at level 1 - alpha
    kept, missed = (-noise_reach(count.ratio, max(count.terms)) - 1,) * len(count.terms), 0.0
    above, excess = (count.most,) * len(count.terms), 1 - alpha
    short, logit = alpha, 0.0
    for _ in range(TRIES):
        tried = thresholds_at(count, alpha, 1 / (1 + math.exp(-logit)))
        risk = missed if tried == kept else _missed(count, worst, tried)
        if risk <= alpha:
            # the other end counts half when one end moves twice (the Illinois rule)
            excess, low, kept, missed, short = excess / 2, logit, tried, risk, alpha - risk
        else:
            short, high, above, excess = short / 2, logit, tried, risk - alpha
        if short < NEAR or sum(above) - sum(kept) <= 1 or high - low < 1e-2:
            break
        part = short / (short + excess)
        logit = low + min(max(part, 0.02), 0.98) * (high - low)
    return kept, missed


def _missed(count: PooledCount, worst: Callable[[Floats, Floats], float], thresholds: tuple[int, ...]) -> float:
    """Return the largest miss probability over all distributions of the scores."""
    levels = np.linspace(*_window(count, thresholds), POINTS)
    return min(1.0, worst(_curves(count, thresholds, levels), levels) + ROUNDING)


def _curves(count: PooledCount, thresholds: tuple[int, ...], levels: Floats) -> Floats:
    """Return the failures of all comparisons at many levels, by a spline through those at fewer."""
    from scipy.interpolate import make_interp_spline

    slope = float(count.mean(1.0) - count.mean(0.0))
    turn = min(max((max(thresholds) - float(count.mean(0.0))) / slope, 0.01), 0.99)
    narrow = math.sqrt(float(count.variance(turn))) / slope
    number = min(MOST_NODES, NODES + math.ceil(CLOSE * (levels[-1] - levels[0]) / narrow))
    nodes = np.linspace(levels[0], levels[-1], number)
    between = make_interp_spline(nodes, failures(count, thresholds, 1 - nodes), k=SMOOTH, axis=1)(levels)
    return np.maximum.accumulate(np.clip(np.ascontiguousarray(between), 0.0, 1.0), axis=1)


def _window(count: PooledCount, thresholds: tuple[int, ...]) -> tuple[float, float]:
    """Return the levels between which the comparisons turn from sure success to sure failure."""
    base = float(count.mean(0.0))
    slope, noise = float(count.mean(1.0)) - base, noise_reach(count.ratio, max(count.terms), FLAT)
    if not slope > 0:
        raise BadInput("epsilon is so small that no count of scores would tell anything; give a larger budget.")
    least, most = 0.0, 1.0
    for _ in range(6):  # each window holds the turn; its own smaller variance then gives a narrower one
        reach = binomial_reach(count, np.array([least, most]), FLAT) + noise
        least = max(least, min((min(thresholds) - reach - base) / slope, 1 - 1e-6))
        most = min(most, max((max(thresholds) + reach - base) / slope, least + 1e-6))
    return 1 - most, 1 - least


def worst_of_independent(failure: Floats, levels: Floats, cells: int) -> float:
    """Return the largest miss probability when the comparisons of a scan are independent and of one distribution.

    ``failure`` is the nondecreasing probability that a comparison fails at each of equally spaced levels, outside of
    which it must be nearly zero or nearly one; the scan makes ``cells`` comparisons.

    >>> levels = np.linspace(0, 1, 10_001)
    >>> round(worst_of_independent(levels**20, levels, 1), 3)
    0.018
    >>> round(worst_of_independent(levels**20, levels, 16), 3)
    0.022
    """
    return worst_of_each(np.broadcast_to(failure, (cells, len(levels))), levels)


def worst_of_each(failures: Floats, levels: Floats) -> float:
    """Return the largest miss probability of independent comparisons, each with a failure of its own.

    ``failures`` (B, levels) has the lowest edge first; levels are as in `worst_of_independent`, and may be unequally
    spaced.
    """
    missed = np.zeros_like(levels)
    for failure in failures[:-1]:
        missed = _envelope(failure, failure * (missed - levels), levels)
    worst = float(np.max(failures[-1] * (1 - levels + missed)))
    return min(1.0, worst + max(_slack(failure, levels, len(failures)) for failure in failures))


def worst_of_any(failures: Floats, levels: Floats) -> float:
    """Return a bound of the miss probability for comparisons that may depend on each other.

    ``failures`` (B, levels) has the lowest edge first; levels are as in `worst_of_independent`.
    """
    missed = np.zeros_like(levels)
    for failure in failures[:-1]:
        missed = _envelope(failure, missed - failure * levels, levels)
    worst = float(np.max(failures[-1] * (1 - levels) + missed))
    return min(1.0, worst + max(_slack(failure, levels, len(failures)) for failure in failures))


def _slack(failure: Floats, levels: Floats, cells: int) -> float:
    """Return what the levels between and beyond those of the grid can add."""
    below = failure[0] if levels[0] > 0 else 0.0
    above = cells * (1 - failure[-1]) if levels[-1] < 1 else 0.0
    return float(np.max(np.diff(levels)) + below + above)


def _envelope(slopes: Floats, offsets: Floats, levels: Floats) -> Floats:
    """Return at each level the highest of the lines of all levels up to it; the slopes do not fall."""
    highest, kept = np.empty(len(levels)), np.zeros(len(levels), dtype=np.int64)
    if COMPILED:
        _climb(slopes, offsets, levels, kept, highest)
        return highest
    lists = [array.tolist() for array in (slopes, offsets, levels, kept, highest)]  # quicker to interpret than arrays
    _climb(*lists)
    return np.array(lists[-1])


@njit(cache=True)
def _climb(slopes: Any, offsets: Any, levels: Any, kept: Any, highest: Any) -> None:
    """Fill the highest line at each level, with room for the lines that are kept on the way."""
    first = last = 0  # the lines that are or may become the highest stand in kept[first:last]
    for i in range(len(levels)):
        # drop lines that the new one, the steepest so far, will always beat
        while last > first:
            top = kept[last - 1]
            if slopes[top] == slopes[i]:
                if offsets[top] >= offsets[i]:
                    break
            elif last - first == 1:
                break
            else:
                under = kept[last - 2]
                # the newest line overtakes the one before the last no later than the last does
                if (offsets[under] - offsets[i]) * (slopes[top] - slopes[under]) > (offsets[under] - offsets[top]) * (
                    slopes[i] - slopes[under]
                ):
                    break
            last -= 1
        if last == first or slopes[kept[last - 1]] != slopes[i]:
            kept[last] = i
            last += 1
        # levels only grow, so a line that has been overtaken never comes back
        while last - first > 1:
            now, later = kept[first], kept[first + 1]
            if slopes[later] * levels[i] + offsets[later] < slopes[now] * levels[i] + offsets[now]:
                break
            first += 1
        highest[i] = slopes[kept[first]] * levels[i] + offsets[kept[first]]

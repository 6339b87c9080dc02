"""The worst mean coverage of a top-down scan over all distributions of the scores (our own, by dynamic programming).

Write ``q_1 <= ... <= q_B`` for the levels ``F(e_b)`` of the edges, ``q_(B+1) = 1``. A scan that answers cell ``a``
covers a new score with probability ``q_(a+1)``, ties or not, so it misses with

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

import numpy as np
from numba import njit

from sottovoce.core.arrays import Floats


def worst_of_independent(failure: Floats, levels: Floats, cells: int) -> float:
    """Return the largest miss probability when the comparisons of a scan are independent and of one distribution.

    Parameters
    ----------
    failure
        The probability that a comparison fails at each level; nondecreasing.
    levels
        Equally spaced levels; outside of them the failure must be nearly zero or nearly one.
    cells
        How many comparisons the scan makes.

    Examples
    --------
    >>> levels = np.linspace(0, 1, 10_001)
    >>> round(worst_of_independent(levels**20, levels, 1), 3)
    0.018
    >>> round(worst_of_independent(levels**20, levels, 16), 3)
    0.022
    """
    missed = np.zeros_like(levels)
    for _ in range(cells - 1):
        missed = _envelope(failure, failure * (missed - levels), levels)
    worst = float(np.max(failure * (1 - levels + missed)))
    return min(1.0, worst + _slack(failure, levels, cells))


def worst_of_any(failures: Floats, levels: Floats) -> float:
    """Return a bound of the miss probability for comparisons that may depend on each other.

    Parameters
    ----------
    failures
        The probability that each comparison fails, of the lowest edge first (B, levels).
    levels
        Equally spaced levels; outside of them all failures must be nearly zero or nearly one.

    Examples
    --------
    >>> levels = np.linspace(0, 1, 10_001)
    >>> round(worst_of_any(np.tile(levels**20, (16, 1)), levels), 3)
    0.043
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


@njit(cache=True)
def _envelope(slopes: Floats, offsets: Floats, levels: Floats) -> Floats:
    """Return at each level the highest of the lines of all levels up to it; the slopes do not fall."""
    highest = np.empty_like(levels)
    kept = np.empty(len(levels), dtype=np.int64)
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
    return highest

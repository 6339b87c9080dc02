"""A site that is not private, read off its sorted records: estimate, standard error, and the exact rank interval.

How many of n records lie at or below the tau-quantile is binomial, whatever the distribution. So the interval between
the records of two binomial ranks covers with at least its level, ties or not; that is exact, and not symmetric about
the estimate. Where one standard error is needed, it is half the 95 % rank interval over z, with as many degrees of
freedom as half the ranks between its ends. Three corrections, all measured (decision 0025):

* an end that several records share stands for its cell: it reaches half the way on to the next value seen;
* the longer half counts, less one standard error of its own, where the two halves differ by more than chance;
* the error is at least that of rounding itself, a cell over the root of 12.

What leaves a site are values of its records, as the word "not private" says; nothing is kept for a later question.
"""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from sottovoce.client.quantile.encode import WORD
from sottovoce.client.record import Records
from sottovoce.core.arrays import Floats
from sottovoce.core.random_source import RandomSource
from sottovoce.protocol.summaries import LEVEL, ROUNDING

Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
PIECE = 1 << 16


class RankSummary(NamedTuple):
    """An estimate with its standard error: 0 where all records are equal, infinite where they are too few."""

    estimate: float
    error: float
    df: float


def ranks(n: int, tau: float, level: float) -> tuple[int, int]:
    """Find the ranks, from 1, of the two records between which the quantile lies; 0 or ``n + 1`` where no record does.

    >>> ranks(100, 0.5, 0.95), ranks(20, 0.9, 0.95)
    ((40, 61), (15, 21))
    """
    from scipy.special import betainc

    share = (1 - level) / 2 * (1 + ROUNDING)
    least, lower = 0, n
    while least < lower:
        middle = (least + lower + 1) // 2
        if betainc(n - middle + 1, middle, 1 - tau) <= share:  # fewer than `middle` records at or below the quantile
            least = middle
        else:
            lower = middle - 1
    upper, most = 1, n + 1
    while upper < most:
        middle = (upper + most) // 2
        if betainc(middle, n - middle + 1, tau) <= share:  # at least `middle` records below it
            most = middle
        else:
            upper = middle + 1
    return lower, upper


def rank_interval(records: Records, tau: float, level: float) -> tuple[float, float]:
    """Return the exact interval of a level, infinite on a side where no record is far enough out.

    >>> rank_interval(Records(np.arange(101.0)), 0.5, 0.95), rank_interval(Records(np.arange(20.0)), 0.9, 0.95)
    ((40.0, 60.0), (14.0, inf))
    """
    return summarise(records, tau, level)[1]


def rank_summary(records: Records, tau: float) -> RankSummary:
    """Return the record of rank ``ceil(n tau)`` and its standard error, in time proportional to n.

    >>> rank_summary(Records(np.arange(10_001.0)), 0.5)  # a flat density by formula: 50.0
    RankSummary(estimate=5000.0, error=50.51113223554076, df=99.0)
    >>> rank_summary(Records(np.full(50, 7.0)), 0.5).error, rank_summary(Records(np.arange(5.0)), 0.5).error
    (0.0, inf)
    """
    return summarise(records, tau, LEVEL)[0]


def summarise(records: Records, tau: float, level: float) -> tuple[RankSummary, tuple[float, float]]:
    """Return both, the summary and the interval of a level, from one partition of the records."""
    n = records.size
    inner = ranks(n, tau, LEVEL)
    outer = inner if level == LEVEL else ranks(n, tau, level)
    middle = max(math.ceil(n * tau * (1 - ROUNDING)), 1)
    values = np.partition(records.values(), sorted({rank - 1 for rank in (*inner, middle, *outer) if 1 <= rank <= n}))
    (lower, upper), estimate, df = inner, float(values[middle - 1]), (inner[1] - inner[0]) / 2
    ends = (
        float(values[outer[0] - 1]) if outer[0] >= 1 else -math.inf,
        float(values[outer[1] - 1]) if outer[1] <= n else math.inf,
    )
    if lower < 1 or upper > n:
        return RankSummary(estimate, math.inf, df), ends
    low, high = float(values[lower - 1]), float(values[upper - 1])
    left, right = _half_a_cell(values, low, -1), _half_a_cell(values, high, 1)
    below, above = estimate - low + left, high - estimate + right
    # each half is a sum of about df spacings: its relative standard error is 1 / sqrt(df)
    half = max((below + above) / 2, max(below, above) / (1 + 1 / math.sqrt(df)))
    return RankSummary(estimate, max(half / Z, (left + right) / math.sqrt(12)), df), ends


def dithered(records: Records, resolution: float, dice: RandomSource) -> Records:
    """Spread each record evenly over its public step, as a private site does: all sites have one estimand.

    >>> from sottovoce.sim.randomness import dice
    >>> dithered(Records(np.arange(3.0)), 1.0, dice(1))
    Records(3 records, values hidden)
    """
    if resolution == 0:
        return records
    values = records.values().copy()
    for start in range(0, len(values), PIECE):
        piece = values[start : start + PIECE]
        piece += resolution * ((dice.words(len(piece)) >> np.uint64(11)) * WORD - 0.5)
    return Records(values, records.unit)


def shared(records: Records, ends: tuple[float, float]) -> bool:
    """Tell whether several records lie at one of two ends.

    >>> shared(Records(np.array([1.0, 2.0, 2.0])), (1.0, 2.0)), shared(Records(np.array([1.0, 2.0])), (1.0, 2.0))
    (True, False)
    """
    return any(np.count_nonzero(records.values() == end) > 1 for end in ends)


def _half_a_cell(values: Floats, end: float, side: int) -> float:
    """Return half the way from a shared value to the next one outwards, or inwards where none is; else 0."""
    if np.count_nonzero(values == end) == 1:
        return 0.0
    smaller = end - float(np.max(values, where=values < end, initial=-math.inf))
    larger = float(np.min(values, where=values > end, initial=math.inf)) - end
    outward, inward = (smaller, larger) if side < 0 else (larger, smaller)
    gap = outward if outward < math.inf else inward
    return gap / 2 if gap < math.inf else 0.0

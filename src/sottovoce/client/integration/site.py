"""A site whose records may be read as they are: it answers one query, once, with its order statistics.

Nothing is randomised, so a record's epsilon is infinite; a site that sets itself a finite limit refuses such a study
before anything is read.

Estimate, standard error and the exact rank interval are read off the sorted records. How many of n records lie at or
below the tau-quantile is binomial, whatever the distribution. So the interval between the records of two binomial ranks
covers with at least its level, ties or not; that is exact, and not symmetric about the estimate. Where one standard
error is needed, it is half the 95 % rank interval over z, with as many degrees of freedom as half the ranks between its
ends. Three corrections, all measured (decision 0025):

* an end that several records share stands for its cell: it reaches half the way on to the next value seen;
* the longer half counts, less one standard error of its own, where the two halves differ by more than chance;
* the error is at least that of rounding itself, a cell over the root of 12.

What leaves a site are values of its records, as the word "not private" says; nothing is kept for a later question.
"""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from sottovoce.client.door import SiteLimits
from sottovoce.client.ledger import Ledger, Storage
from sottovoce.client.mapped import blocks, is_mapped
from sottovoce.client.order_statistics import count_equal, order_statistics
from sottovoce.client.quantile.encode import WORD
from sottovoce.client.record import Records
from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource, SystemEntropy
from sottovoce.protocol.messages import Message, Study
from sottovoce.protocol.summaries import LEVEL, ROUNDING, SummaryQuery, SummaryReport

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
    share = (1 - level) / 2 * (1 + ROUNDING)
    reach = 30 * math.sqrt(n * tau * (1 - tau)) + 400  # what lies beyond has a chance below exp(-400)
    counts = np.arange(max(math.floor(n * tau - reach), 0), min(math.ceil(n * tau + reach), n) + 1)
    rises = np.log((n - counts[:-1]) * tau / ((counts[:-1] + 1) * (1 - tau)))  # of the logarithm of a count's chance
    heights = np.concatenate(([0.0], np.cumsum(rises)))
    chances = np.exp(heights - heights.max())
    chances /= chances.sum()
    below, above = np.cumsum(chances), np.cumsum(chances[::-1])
    return int(counts[0] + np.count_nonzero(below <= share)), int(counts[-1] + 1 - np.count_nonzero(above <= share))


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
    values = records.values()
    found = order_statistics(values, [rank for rank in (*inner, middle, *outer) if 1 <= rank <= n])
    (lower, upper), estimate, df = inner, found[middle], (inner[1] - inner[0]) / 2
    ends = found.get(outer[0], -math.inf), found.get(outer[1], math.inf)
    if lower < 1 or upper > n:
        return RankSummary(estimate, math.inf, df), ends
    low, high = found[lower], found[upper]
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
    if is_mapped(records.values()):
        raise BadInput("a site larger than memory cannot spread its records over a step; open it without a resolution.")
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
    return any(count_equal(records.values(), end) > 1 for end in ends)


def _half_a_cell(values: Floats, end: float, side: int) -> float:
    """Return half the way from a shared value to the next one outwards, or inwards where none is; else 0."""
    if count_equal(values, end) == 1:
        return 0.0
    below, above = -math.inf, math.inf
    for block in blocks(values):
        below = float(np.max(block, where=block < end, initial=below))
        above = float(np.min(block, where=block > end, initial=above))
    smaller, larger = end - below, above - end
    outward, inward = (smaller, larger) if side < 0 else (larger, smaller)
    gap = outward if outward < math.inf else inward
    return gap / 2 if gap < math.inf else 0.0


class OpenSite:
    """A place that holds records and opens their order statistics.

    The study's epsilon is infinite; dice (None: the operating system's) are thrown only where it has a resolution. The
    ledger keeps its entry in ``storage``, in memory if None.

    >>> import numpy as np
    >>> site = OpenSite(Records(np.arange(101.0)), Study(0.5, math.inf))
    >>> said = site.reply(1, SummaryQuery(1, 0.5, 0.95))
    >>> said.estimate, said.low, said.high, said.tied
    (50.0, 40.0, 60.0, False)
    """

    __slots__ = ("_dice", "_ledger", "_limits", "_records", "_study")

    kinds: tuple[type[Message], ...] = (SummaryQuery,)
    private = False

    def __init__(
        self,
        records: Records,
        study: Study,
        dice: RandomSource | None = None,
        *,
        storage: Storage | None = None,
        limits: SiteLimits | None = None,
    ) -> None:
        self._limits = SiteLimits() if limits is None else limits
        self._limits.check_budget(study.epsilon)
        if not math.isinf(study.epsilon):
            raise BadInput("order statistics have no finite epsilon; open a private site for a study with a budget.")
        if not (0 < study.tau < 1 and 0 <= study.resolution < math.inf):
            raise BadInput("the study's tau lies between 0 and 1, its resolution is 0 or more; correct the study.")
        if records.size == 0:
            raise BadInput("the site holds no record; leave it out of the study.")
        self._records, self._study = records, study
        self._dice = SystemEntropy() if dice is None else dice
        self._ledger = Ledger(records.size, storage)

    def __repr__(self) -> str:
        return f"OpenSite({self._records.size:,} records, {self._ledger.spent:,} answered)"

    @property
    def size(self) -> int:
        """Return how many records the site holds."""
        return self._records.size

    @property
    def spent(self) -> int:
        """Return how many records have answered: none, or all."""
        return self._ledger.spent

    def reply(self, round: int, query: Message) -> SummaryReport:
        """Answer the one query, from all records at once; a retry gets the same."""
        if not isinstance(query, SummaryQuery) or query.round != round:
            raise BadInput(f"round {round} asks nothing that this site understands; correct the query.")
        self._limits.check_round(round)
        if query.tau != self._study.tau or not 0 < query.level < 1:
            raise BadInput("the query asks for another quantile than the study, or for no interval; correct it.")

        def draw(_: int) -> SummaryReport:
            records = dithered(self._records, self._study.resolution, self._dice)
            (estimate, std_error, df), ends = summarise(records, query.tau, query.level)
            return SummaryReport(round, records.size, estimate, std_error, df, *ends, shared(records, ends))

        return self._ledger.transaction(round, query, self._records.size, SummaryReport, draw)

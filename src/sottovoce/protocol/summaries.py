"""What an open site is asked and says of its quantile: order statistics, as they are, and so at an infinite epsilon."""

import math

from sottovoce.protocol.messages import Message

LEVEL = 0.95  # of the rank interval from which a site takes its standard error

# 0.07 * 100 is a little more than 7, and 1 - 0.8 a little less than 0.2: what floats cannot tell apart counts as equal
ROUNDING = 1e-12


class SummaryQuery(Message, frozen=True):
    """The level of the quantile that is wanted, and that of the interval around it."""

    round: int
    tau: float
    level: float


class SummaryReport(Message, frozen=True):
    """All that leaves an open site: its estimate with an error, its exact interval, and whether records tie there."""

    round: int
    n: int
    estimate: float
    std_error: float
    df: float
    low: float
    high: float
    tied: bool


def records_needed(tau: float, level: float = LEVEL) -> int:
    """Return how many records a rank interval needs to have two ends.

    >>> records_needed(0.5), records_needed(0.9), records_needed(0.99)
    (6, 36, 368)
    """
    tail = min(tau, 1 - tau)
    return math.ceil(math.log((1 - level) / 2) / math.log1p(-tail) * (1 - ROUNDING))

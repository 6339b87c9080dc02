"""The exact interval of a share from a count to which two-sided geometric noise was added.

A site sends ``count + noise``, where the count out of ``n`` is binomial and the noise ``g`` has probability
``ratio^|g| (1 - ratio) / (1 + ratio)``. The sum's law is known, and grows with the share; each limit is the share at
which so extreme a sum has probability ``(1 - level) / 2``, as for Clopper and Pearson. A sum beyond 0 or ``n`` counts
as 0 or ``n``: that loses a little, and keeps an unlucky noise from refuting every share. With ``ratio`` 0 there is no
noise, and the interval is theirs.
"""

import functools
import math
from typing import Any

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.inference.conformal import clopper_pearson

REACH = 9.5  # standard deviations, and twice its square more of records: beyond lies less than 1e-15 of a binomial
HALVINGS = 60


@functools.lru_cache(maxsize=4096)  # many sites may have few records each, and so few different counts
def limits(count: int, n: int, level: float, ratio: float) -> tuple[float, float]:
    """Return the shares that a noisy count out of ``n`` does not refute.

    Parameters
    ----------
    count, n
        The noisy count, which may lie outside 0 to ``n``, and out of how many.
    level
        The confidence level.
    ratio
        How much less likely each further step of noise is: ``exp(-epsilon)``.

    Returns
    -------
    The lower and the upper limit.

    Examples
    --------
    >>> low, high = limits(90, 100, 0.95, 0.5)
    >>> round(low, 4), round(high, 4)
    (0.8114, 0.9621)
    """
    seen = min(max(count, 0), n)
    clopper_pearson.check(seen, n, level)
    if ratio == 0:
        return clopper_pearson.limits(seen, n, level)
    tail = (1 - level) / 2
    # so large a sum at a share is so small a sum at its complement
    return _refuted(n - seen, n, tail, ratio), 1 - _refuted(seen, n, tail, ratio)


def at_most(count: int, n: int, share: float, ratio: float) -> float:
    """Return the probability of a noisy count of at most this: the p-value of "the share is at least this".

    >>> round(at_most(80, 100, 0.9, 0.5), 5), round(at_most(0, 1, 0.0, 0.5), 5)
    (0.00712, 0.66667)
    """
    seen = min(max(count, 0), n)
    if seen == n:
        return 1.0
    if ratio == 0:
        return clopper_pearson.at_most(seen, n, share)
    first, distribution = _binomial(n, share)
    steps = seen - np.arange(first, first + distribution.size)
    far = np.power(ratio, np.abs(steps) + (steps >= 0)) / (1 + ratio)
    return float(distribution @ np.where(steps >= 0, 1 - far, far))


def _refuted(count: int, n: int, tail: float, ratio: float) -> float:
    """Return 1 less the largest share at which a sum of at most ``count`` has a probability above ``tail``."""
    if at_most(count, n, 1.0, ratio) > tail:
        return 0.0
    refuted, kept = 1.0, 0.0
    for _ in range(HALVINGS):
        middle = (refuted + kept) / 2
        if at_most(count, n, middle, ratio) > tail:
            kept = middle
        else:
            refuted = middle
    return 1 - refuted


def _binomial(n: int, share: float) -> tuple[int, Floats]:
    """Return the first count of a binomial law that matters, and the probabilities from there on."""
    from scipy.special import gammaln, xlog1py, xlogy

    wide = REACH * math.sqrt(n * share * (1 - share)) + 2 * REACH**2
    first, last = max(0, math.floor(n * share - wide)), min(n, math.ceil(n * share + wide))
    counts: Any = np.arange(first, last + 1)
    logs = xlogy(counts, share) + xlog1py(n - counts, -share) - gammaln(counts + 1) - gammaln(n - counts + 1)
    distribution = np.exp(logs - np.max(logs))
    return first, distribution / distribution.sum()

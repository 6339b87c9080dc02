"""Limits and tests of a share from a count, exact or with noise, and of many shares at once.

* *Clopper and Pearson* (1934, doi:10.1093/biomet/26.4.404). A count out of ``n`` is binomial. The lower limit is the
  share at which so large a count has probability ``(1 - level) / 2``, the upper limit the one at which so small a count
  has. So each limit errs at most that often, whatever the share.
* *With noise.* A site sends ``count + noise``, where the noise ``g`` has probability ``ratio^|g| (1 - ratio) / (1 +
  ratio)``. The distribution of the sum is known, and grows with the share; each limit is found as above. A sum beyond 0
  or ``n`` counts as 0 or ``n``: that loses a little, and keeps an unlucky noise from refuting every share. With
  ``ratio`` 0 there is no noise, and the interval is Clopper and Pearson's.
* *Holm's step-down rule* (1979, Scandinavian Journal of Statistics 6, 65-70). The smallest of ``m`` p-values is
  compared with ``error / m``, the next with ``error / (m - 1)``, and so on until one is too large. However the p-values
  depend on each other, a true hypothesis is rejected with probability ``error`` at most; and everything that Bonferroni
  rejects is rejected too.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput

REACH = 9.5  # standard deviations, and twice its square more of records: beyond lies less than 1e-15 of a binomial
HALVINGS = 60  # of a share, down to the last digit of a float


def exact_limits(count: int, n: int, level: float) -> tuple[float, float]:
    """Return the shares that a count out of ``n`` does not refute.

    Parameters
    ----------
    count, n
        How many there are, out of how many.
    level
        The confidence level.

    Returns
    -------
    The lower and the upper limit.

    Examples
    --------
    >>> low, high = exact_limits(90, 100, 0.95)
    >>> round(low, 4), round(high, 4)
    (0.8238, 0.951)
    """
    from scipy.special import betaincinv

    _check(count, n, level)
    tail = (1 - level) / 2
    low = float(betaincinv(count, n - count + 1, tail)) if count else 0.0
    high = 1 - float(betaincinv(n - count, count + 1, tail)) if count < n else 1.0
    return low, high


def exact_at_most(count: int, n: int, share: float) -> float:
    """Return the probability of at most so many out of ``n``: the p-value of "the share is at least this".

    >>> round(exact_at_most(80, 100, 0.9), 5)
    0.00198
    """
    from scipy.special import betainc

    return float(betainc(n - count, count + 1, 1 - share)) if count < n else 1.0


def _check(count: int, n: int, level: float) -> None:
    """Refuse what is no count or no level."""
    if not 0 <= count <= n or n < 1:
        raise BadInput(f"a count lies between 0 and n, not at {count!r} of {n!r}; correct it.")
    if not 0 < level < 1:
        raise BadInput(f"level lies strictly between 0 and 1, not {level!r}; give a confidence such as 0.95.")


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
    _check(seen, n, level)
    if ratio == 0:
        return exact_limits(seen, n, level)
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
        return exact_at_most(seen, n, share)
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
    """Return the first count of a binomial distribution that matters, and the probabilities from there on."""
    from scipy.special import gammaln, xlog1py, xlogy

    wide = REACH * math.sqrt(n * share * (1 - share)) + 2 * REACH**2
    first, last = max(0, math.floor(n * share - wide)), min(n, math.ceil(n * share + wide))
    counts: Any = np.arange(first, last + 1)
    logs = xlogy(counts, share) + xlog1py(n - counts, -share) - gammaln(counts + 1) - gammaln(n - counts + 1)
    distribution = np.exp(logs - np.max(logs))
    return first, distribution / distribution.sum()


def rejected(p_values: Sequence[float], error: float) -> tuple[bool, ...]:
    """Tell which hypotheses fall when all are tested at once.

    Parameters
    ----------
    p_values
        One for each hypothesis.
    error
        How likely one false rejection or more may be.

    Examples
    --------
    >>> rejected([0.02, 0.001, 0.03], 0.05)
    (True, True, True)
    >>> rejected([0.03, 0.001, 0.03], 0.05)
    (False, True, False)
    """
    fallen = [False] * len(p_values)
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[place] > error / (len(p_values) - rank):
            break
        fallen[place] = True
    return tuple(fallen)

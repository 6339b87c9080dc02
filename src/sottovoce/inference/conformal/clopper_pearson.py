"""The exact two-sided interval of a share (Clopper and Pearson, 1934), and the test of a share that it inverts.

A count out of ``n`` is binomial. The lower limit is the share at which so large a count has probability
``(1 - level) / 2``, the upper limit the one at which so small a count has. So each limit errs at most that often,
whatever the share.
"""

from sottovoce.core.errors import BadInput


def limits(count: int, n: int, level: float) -> tuple[float, float]:
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
    >>> low, high = limits(90, 100, 0.95)
    >>> round(low, 4), round(high, 4)
    (0.8238, 0.951)
    """
    from scipy.special import betaincinv

    check(count, n, level)
    tail = (1 - level) / 2
    low = float(betaincinv(count, n - count + 1, tail)) if count else 0.0
    high = 1 - float(betaincinv(n - count, count + 1, tail)) if count < n else 1.0
    return low, high


def at_most(count: int, n: int, share: float) -> float:
    """Return the probability of at most so many out of ``n``: the p-value of "the share is at least this".

    >>> round(at_most(80, 100, 0.9), 5)
    0.00198
    """
    from scipy.special import betainc

    return float(betainc(n - count, count + 1, 1 - share)) if count < n else 1.0


def check(count: int, n: int, level: float) -> None:
    """Refuse what is no count or no level."""
    if not 0 <= count <= n or n < 1:
        raise BadInput(f"a count lies between 0 and n, not at {count!r} of {n!r}; correct it.")
    if not 0 < level < 1:
        raise BadInput(f"level lies strictly between 0 and 1, not {level!r}; give a confidence such as 0.95.")

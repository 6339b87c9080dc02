"""The standard normal distribution, without the second it takes to import scipy.stats."""

import math
from statistics import NormalDist


def two_sided(level: float) -> float:
    """Return the z of a two-sided interval.

    >>> round(two_sided(0.95), 4)
    1.96
    """
    return -NormalDist().inv_cdf((1 - level) / 2)


def below(z: float) -> float:
    """Return the probability below ``z``, accurate far into the tails."""
    return 0.5 * math.erfc(-z / math.sqrt(2))


def p_value(z: float, alternative: str) -> float:
    """Return the p-value of a standard normal statistic that grows with the estimate.

    >>> round(p_value(1.96, "two-sided"), 3), round(p_value(1.96, "greater"), 3), round(p_value(1.96, "less"), 3)
    (0.05, 0.025, 0.975)
    """
    if alternative == "two-sided":
        return min(1.0, 2 * below(-abs(z)))
    return below(-z) if alternative == "greater" else below(z)

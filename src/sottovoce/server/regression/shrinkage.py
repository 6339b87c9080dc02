"""Shrinking noisy entries towards a guess by as much as they themselves suggest (empirical Bayes, Morris 1983)."""

import numpy as np

from sottovoce.core.arrays import Floats

LEAST = 0.01  # of the prior variance: no group of entries is believed to agree with its guess better


def spread_about(
    deviations: Floats, variances: Floats, prior: float, extra: Floats | float = 0.0, trust: float = 1.0
) -> float:
    """Return the variance of a group of entries about their guess, beyond their noise and ``extra`` variance.

    ``prior`` is the standard deviation believed in without evidence; it weighs as much as ``trust`` noiseless entries.

    Examples
    --------
    >>> import numpy as np
    >>> round(spread_about(np.array([0.5, -0.5]), np.array([1e9, 1e9]), 0.1), 6)
    0.01
    """
    weights = prior**4 / (variances + extra + prior**2) ** 2
    beyond = float(np.sum(weights * (deviations**2 - variances - extra)))
    found = (trust * prior**2 + beyond) / (trust + float(np.sum(weights)))
    return max(found, LEAST * prior**2)


def pull(between: Floats | float, variances: Floats) -> Floats:
    """Return the weight of the data: entries vary by ``between`` about the guess, by ``variances`` about the truth."""
    return np.asarray(between / (between + variances))

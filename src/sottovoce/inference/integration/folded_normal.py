"""Quantiles of |N(t, 1)|: half the length of an interval, in standard errors, that allows for a bias of t of them."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from sottovoce.inference.common.normal import two_sided

Array = NDArray[np.float64]


def folded_value(bias: ArrayLike, level: float) -> Array:
    """Solve P(|N(bias, 1)| <= c) = level for c.

    Parameters
    ----------
    bias
        Sizes of the bias, in standard errors; 0 or more.
    level
        Confidence level, strictly between 0 and 1.

    Returns
    -------
    The quantiles, in the shape of ``bias``.

    Examples
    --------
    >>> [round(float(c), 4) for c in folded_value([0.0, 1.0, 100.0], 0.95)]
    [1.96, 2.6461, 101.6449]
    """
    size = np.asarray(bias, dtype=np.float64)
    two, one = two_sided(level), two_sided(2 * level - 1) if level > 0.5 else -two_sided(1 - 2 * level)
    # With no bias it is the first, with a large one the second; both are too short, the sum with the first too long.
    low, high = np.maximum(two, size + one), size + two
    value = low
    for _ in range(60):
        tails = ndtr(size - value) + ndtr(-size - value) - (1 - level)
        low, high = np.where(tails > 0, value, low), np.where(tails > 0, high, value)
        slope = (np.exp(-((value - size) ** 2) / 2) + np.exp(-((value + size) ** 2) / 2)) / np.sqrt(2 * np.pi)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = value + tails / slope
        inside = (newton >= low) & (newton <= high)
        step = np.where(inside, newton, (low + high) / 2)
        # Newton's next step would be the square of this one.
        done = bool((inside & (np.abs(step - value) <= 1e-9)).all())
        value = step
        if done:
            break
    return np.asarray(value)

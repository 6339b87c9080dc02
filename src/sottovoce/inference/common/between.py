"""How far groups lie apart: the mean and the variance of their true values, from estimates with known errors.

The variance is that of Paule and Mandel (1982): the one with which the weighted squares about the weighted mean are as
many as their degrees of freedom. It is zero where the estimates differ by no more than their errors.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri

from sottovoce.core.arrays import Floats

HALVINGS = 100  # of the variance between groups


class Between(NamedTuple):
    """The mean of the groups' true values, its standard error, and the variance of them."""

    mean: float
    error: float
    variance: float


def between(
    estimates: Sequence[float] | Floats, errors: Sequence[float] | Floats, doubt: float | None = None
) -> Between:
    """Return mean and variance of the values behind some estimates.

    With a ``doubt`` the variance is an upper limit, which is exceeded with that probability (Viechtbauer 2007).

    >>> found = between([1.0, 3.0, 5.0], [0.1, 0.1, 0.1])
    >>> round(found.mean, 6), round(found.variance, 6)
    (3.0, 3.99)
    """
    origin = float(np.median(estimates))
    values, variances = np.array(estimates, dtype=np.float64) - origin, np.array(errors, dtype=np.float64) ** 2
    if len(values) < 2:
        return Between(origin + float(values[0]), float(np.sqrt(variances[0])), 0.0)
    squares = len(values) - 1.0 if doubt is None else float(chdtri(len(values) - 1, 1 - doubt))
    low = 0.0
    high = float(np.sum((values - values.mean()) ** 2)) * max(1.0, 1 / squares) + float(variances.max())
    if _squares(values, variances, 0.0) <= squares:
        high = 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _squares(values, variances, middle) > squares else (low, middle)
    mean, error = _mean(values, variances + high)
    return Between(origin + mean, error, high)


def _squares(values: Floats, variances: Floats, between: float) -> float:
    """Return the sum of the weighted squares about the weighted mean."""
    total = variances + between
    mean, _ = _mean(values, total)
    return float(np.sum((values - mean) ** 2 / total))


def _mean(values: Floats, variances: Floats) -> tuple[float, float]:
    """Return the weighted mean and its standard error."""
    weights = 1 / variances
    return float(weights @ values / weights.sum()), float(weights.sum() ** -0.5)

"""How far groups lie apart: the mean and the variance of their true values, from estimates with known errors.

The variance is that of Paule and Mandel (1982): the one with which the weighted squares about the weighted mean are as
many as their degrees of freedom. It is zero where the estimates differ by no more than their errors.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats

HALVINGS = 100  # of the variance between groups


class Between(NamedTuple):
    """The mean of the groups' true values, its standard error, and the variance of them."""

    mean: float
    error: float
    variance: float


def between(estimates: Sequence[float] | Floats, errors: Sequence[float] | Floats) -> Between:
    """Return mean and variance of the values behind some estimates.

    >>> found = between([1.0, 3.0, 5.0], [0.1, 0.1, 0.1])
    >>> round(found.mean, 6), round(found.variance, 6)
    (3.0, 3.99)
    """
    origin = float(np.median(estimates))
    values, variances = np.array(estimates, dtype=np.float64) - origin, np.array(errors, dtype=np.float64) ** 2
    if len(values) < 2:
        return Between(origin + float(values[0]), float(np.sqrt(variances[0])), 0.0)
    low, high = 0.0, float(np.sum((values - values.mean()) ** 2)) + float(variances.max())
    if _excess(values, variances, 0.0) <= 0:
        high = 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _excess(values, variances, middle) > 0 else (low, middle)
    mean, error = _mean(values, variances + high)
    return Between(origin + mean, error, high)


def _excess(values: Floats, variances: Floats, between: float) -> float:
    """Return by how much the weighted squares about the weighted mean are more than their degrees of freedom."""
    total = variances + between
    mean, _ = _mean(values, total)
    return float(np.sum((values - mean) ** 2 / total)) - (len(values) - 1)


def _mean(values: Floats, variances: Floats) -> tuple[float, float]:
    """Return the weighted mean and its standard error."""
    weights = 1 / variances
    return float(weights @ values / weights.sum()), float(weights.sum() ** -0.5)

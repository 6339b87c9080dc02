"""A number measured by simulation, with its Monte-Carlo standard error."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Measure(NamedTuple):
    """A number, its standard error, and how many replications are behind it (0: computed, not simulated)."""

    value: float
    error: float = 0.0
    n: int = 0


def exact(value: float) -> Measure:
    """Return a number that was computed, not simulated."""
    return Measure(float(value))


def share(hits: npt.ArrayLike) -> Measure:
    """Measure how often something happened; the error stays above zero when it always or never did.

    Examples
    --------
    >>> share([True, False, True, True])  # doctest: +ELLIPSIS
    Measure(value=0.75, error=0.2357..., n=4)
    >>> share([True] * 100).error  # doctest: +ELLIPSIS
    0.0098...
    """
    happened = np.asarray(hits, dtype=bool)
    n = happened.size
    smoothed = (np.count_nonzero(happened) + 1) / (n + 2)
    return Measure(float(np.mean(happened)), math.sqrt(smoothed * (1 - smoothed) / n), n)


def mean(values: npt.ArrayLike) -> Measure:
    """Measure a mean.

    Examples
    --------
    >>> mean([1.0, 3.0])
    Measure(value=2.0, error=1.0, n=2)
    """
    numbers = np.asarray(values, dtype=np.float64)
    n = numbers.size
    spread = float(numbers.std(ddof=1)) / math.sqrt(n) if n > 1 else 0.0
    return Measure(float(numbers.mean()), spread, n)


def median(values: npt.ArrayLike) -> Measure:
    """Measure a median; its error is half the distance of the order statistics one standard error apart.

    Examples
    --------
    >>> median(range(101)).value
    50.0
    """
    numbers = np.sort(np.asarray(values, dtype=np.float64))
    n = numbers.size
    reach = math.sqrt(n) / 2
    low, high = max(int(n / 2 - reach), 0), min(math.ceil(n / 2 + reach), n - 1)
    return Measure(float(np.median(numbers)), float(numbers[high] - numbers[low]) / 2, n)


def log_mean_square(errors: npt.ArrayLike) -> Measure:
    """Measure the logarithm of a mean squared error, its own error by the delta method.

    Examples
    --------
    >>> log_mean_square([1.0, -1.0])
    Measure(value=0.0, error=0.0, n=2)
    """
    squares = mean(np.square(np.asarray(errors, dtype=np.float64)))
    return Measure(math.log(squares.value), squares.error / squares.value, squares.n)

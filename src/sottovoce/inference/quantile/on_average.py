"""Intervals of many groups that hold on average over the groups: robust empirical Bayes.

Armstrong, Kolesár and Plagborg-Møller (2022, doi:10.3982/ECTA18597). Each estimate is moved towards the mean of all by
the factor ``w = m / (m + v)``, where ``v`` is its variance and ``m`` the mean square of the true values about their
mean. The moved estimate has a bias; in units of its own error ``w sqrt(v)`` the mean square of the bias over the groups
is ``v / m``, and nothing else is assumed of it. The critical value is the one that fails least often enough under the
worst distribution with that mean square: the probability of a miss, as a function of the squared bias, is replaced by
its least concave majorant.

*Few groups.* The mean square is an estimate, and one that is too small moves too far and believes too much. So its
upper limit is taken, which is exceeded with the probability `DOUBT`, by the weighted squares about the weighted mean
(`inference.common.between`), and the variance of that mean is added. A group of great precision then counts little more
than others, and few groups move little. Of fewer than `FEWEST` groups nothing is promised.

*What is guaranteed.* With many groups, ``level`` of the intervals hold, on average over the groups, whatever the
distribution of the true values; it is assumed that the mean square does not depend on the groups' errors. A single
group is not promised anything: one far from the others is missed more often than that, others less. Nothing is said of
all groups together.
"""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from sottovoce.core.arrays import Floats
from sottovoce.inference.common.between import between
from sottovoce.inference.common.normal import two_sided

FEWEST, DOUBT = 10, 0.05
HALVINGS, GRID = 40, 1_025
LARGEST = 1e4  # mean square of a bias from which on the estimate itself is taken


class Moved(NamedTuple):
    """An estimate moved towards the mean of all, with its interval; ``weight`` is what its own answers count."""

    estimate: float
    low: float
    high: float
    weight: float


def moved(estimates: Sequence[float] | Floats, errors: Sequence[float] | Floats, level: float) -> tuple[Moved, ...]:
    """Return every estimate moved towards the mean, with an interval that holds on average.

    >>> [round(each.estimate, 2) for each in moved([1.0, 2.0, 2.0, 3.0] * 3, [1.0] * 12, 0.95)][:4]
    [1.7, 2.0, 2.0, 2.3]
    """
    origin = float(np.median(estimates))
    values, variances = np.array(estimates, dtype=np.float64) - origin, np.array(errors, dtype=np.float64) ** 2
    found = between(values, errors, DOUBT)
    mean, square = found.mean, found.variance + found.error**2
    weights = square / (square + variances)
    centres = mean + weights * (values - mean)
    halves = [
        weight * math.sqrt(variance) * critical_value(variance / square, level)
        for weight, variance in zip(weights.tolist(), variances.tolist(), strict=True)
    ]
    return tuple(
        Moved(origin + centre, origin + centre - half, origin + centre + half, weight)
        for centre, half, weight in zip(centres.tolist(), halves, weights.tolist(), strict=True)
    )


@functools.lru_cache(maxsize=4096)
def critical_value(square: float, level: float) -> float:
    """Return by how many errors to both sides an interval reaches, if biases have this mean square in errors.

    >>> round(critical_value(0.0, 0.95), 4), round(critical_value(1.0, 0.95), 4)
    (1.96, 3.2592)
    """
    low, high = two_sided(level), two_sided(level) + math.sqrt(min(square, LARGEST) / (1 - level)) + 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _worst(square, middle) > 1 - level else (low, middle)
    return high


def _worst(square: float, reach: float) -> float:
    """Return the largest probability of a miss over all distributions of the bias with a mean square."""
    # the probability rises in the squared bias, first faster and faster, then slower: the majorant is a line up to
    # the point where it touches, found on a grid about the reach, and the probability itself from there on
    biases = np.linspace(0.0, reach + 8.0, GRID)[1:]
    slopes = (_missed(biases, reach) - _missed(np.zeros(1), reach)[0]) / biases**2
    at = int(np.argmax(slopes))
    if square >= biases[at] ** 2:
        return float(_missed(np.array([math.sqrt(square)]), reach)[0])
    return float(_missed(np.zeros(1), reach)[0] + slopes[at] * square)


def _missed(biases: Floats, reach: float) -> Floats:
    """Return the probability that a normal variable with a bias is beyond the reach."""
    return np.asarray(ndtr(-reach - biases) + ndtr(biases - reach))

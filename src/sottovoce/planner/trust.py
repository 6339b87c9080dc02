r"""What local privacy costs: the width if one curator were trusted with all records, and with no privacy at all.

The central yardstick is the exponential mechanism on ranks (Smith, Privacy-preserving statistical estimation with
optimal convergence rates, STOC 2011; as the inverse sensitivity mechanism: Asi and Duchi, NeurIPS 2020): it draws a
value with density proportional to ``exp(-epsilon |k| / 2)``, where ``k`` is by how many records its rank misses. Where
records lie densely, ``k`` is a Laplace variable of scale ``2 / epsilon``, so the released level misses tau by the sum
of a normal variable with variance ``tau (1 - tau) / n``, of sampling, and a Laplace variable of scale
``2 / (epsilon n)``. With unequal shares ``p`` of sites of sizes ``N`` one record moves the level by ``max p / N``
instead of ``1 / n``. The width is that of the shortest symmetric interval that holds this sum, computed, not measured,
for somebody who knows the density: it is the least that a private interval from such an answer could have.
"""

import math

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.inference.common.normal import below, two_sided

CENTRAL = "one trusted curator, exponential mechanism on ranks (Smith 2011); computed"
OPEN = "order statistics of all records; computed"
BEST = "one randomised bit a record, all asked at the quantile, the density known; computed"


def sampling_error(tau: float, shares: Floats, sizes: Floats) -> float:
    """Return the error of the distribution function at a quantile when every record is seen."""
    return math.sqrt(tau * (1 - tau) * float(np.sum(shares**2 / sizes)))


def central_half(sampling: float, noise: float, level: float) -> float:
    """Return half the width of the interval that holds normal plus Laplace noise with a probability.

    >>> round(central_half(1.0, 1e-9, 0.95), 3), round(central_half(1e-9, 1.0, 0.95), 3)
    (1.96, 2.996)
    """
    low, high = 0.0, two_sided(level) * sampling - noise * math.log(1 - level)
    high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _held(middle, sampling, noise) < level else (low, middle)
    return high


def _held(half: float, sampling: float, noise: float) -> float:
    """Return the probability that normal plus Laplace noise is no larger than a half width."""
    x, ratio = half / sampling, sampling / noise
    if ratio > 1e6:  # the normal alone
        return 1 - 2 * below(-x)
    # P(N + L > h) = Phi(-x) + (e^{r^2/2 - h/b} Phi(x - r) - e^{r^2/2 + h/b} Phi(-x - r)) / 2, h/b = x r
    above = below(-x) + (_tilted(ratio, x, -1) - _tilted(ratio, x, 1)) / 2
    return 1 - 2 * above


def _tilted(ratio: float, x: float, sign: int) -> float:
    """Return ``exp(r^2 / 2 + sign x r) Phi(-sign x - r)`` without an overflow."""
    tail = below(-sign * x - ratio)
    if tail > 1e-290:
        power = ratio**2 / 2 + sign * x * ratio
        return math.exp(min(power + math.log(tail), 700.0))
    at = sign * x + ratio  # Mills' ratio far out
    return math.exp(-(x**2) / 2) / (at * math.sqrt(2 * math.pi))

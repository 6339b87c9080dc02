"""A count of scores with two-sided geometric noise, held as one integer p: P(noise = k) falls by p / 2^64 a step.

The noise is the difference of two independent one-sided ones (Ghosh, Roughgarden and Sundararajan 2009). A score
replaced moves the count by one at most, and so changes the probability of each answer by a factor of ``2^64 / p`` at
most: epsilon is ``log(2^64 / p)``, and attained.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from sottovoce.core.errors import BadInput
from sottovoce.protocol.exact import exponential, logarithm, within
from sottovoce.protocol.selection.geometric import SMALLEST, WORD, ratio

LARGEST = 1000.0  # no noise of 64 bits could spend a tenth of it


@dataclass(frozen=True)
class NoisyCount:
    """The law of the noise; ``numerator / 2^64`` is how much less likely each further step is."""

    numerator: int

    @property
    def ratio(self) -> Fraction:
        """Return the bound of every likelihood ratio, from the integer."""
        return ratio(self.numerator)

    @property
    def epsilon(self) -> float:
        """Return the realised epsilon, computed from the integer."""
        return logarithm(self.ratio)

    @property
    def fall(self) -> float:
        """Return how much less likely each further step of noise is."""
        return self.numerator / WORD


def noisy_count(epsilon: float) -> NoisyCount:
    """Return the noise that spends as much of a budget as an integer allows, and never more.

    Parameters
    ----------
    epsilon
        The budget of a record; finite.

    Examples
    --------
    >>> noise = noisy_count(1.0)
    >>> noise.epsilon <= 1.0 < noise.epsilon + 1e-12, round(noise.fall, 6)
    (True, 0.367879)
    """
    if not SMALLEST <= epsilon <= LARGEST:
        raise BadInput(
            f"epsilon {epsilon!r} makes no noisy count; give a finite budget of at least {SMALLEST:g} and at most "
            f"{LARGEST:g}."
        )
    noise = NoisyCount(math.ceil(WORD / exponential(epsilon)))
    if not within(noise.ratio, epsilon):
        raise BadInput(f"this noisy count costs {noise.epsilon!r}, more than its budget {epsilon!r}.")
    return noise

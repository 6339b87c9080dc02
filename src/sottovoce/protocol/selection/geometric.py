"""Geometric noise held as one integer p: one-sided, two-sided on a count, and in shares that add up over the sites.

*One-sided*: P(noise >= k) = (p / 2^64)^k for k = 0, 1, ... A 64-bit word is below p with probability p / 2^64, so the
noise is the number of words below p before one that is not, and one unit more of it costs a factor of 2^64 / p and no
more: epsilon is ``log(2^64 / p)``.

*Two-sided*: the difference of two independent one-sided ones (Ghosh, Roughgarden and Sundararajan 2009,
doi:10.1145/1536414.1536464). A score replaced moves a count by one at most, and so changes the probability of each
answer by a factor of ``2^64 / p`` at most: epsilon is ``log(2^64 / p)``, and attained.

*In shares*: each of ``m`` sites adds the difference of two Pólya variables (Goryczka and Xiong 2017,
doi:10.1109/TDSC.2015.2484326). A Pólya variable of index ``1 / m`` and ratio ``p`` has probabilities proportional to
``weight(k) = p^k (1/m)(1/m + 1)...(1/m + k - 1) / k!``. By the binomial series the sum of ``m`` of them is geometric,
``p^k``, and so the sum of all shares is exactly the two-sided geometric distribution ``p^|k| (1 - p) / (1 + p)``. The
weights are rational, so a share can be drawn without error. A replaced record takes one from a cell and gives one to
another: it costs ``2 log(1 / p)``. This is the privacy of the sum over *all* sites, seen by somebody who sees nothing
else: whoever also knows the shares of some sites, or a sum from which some are missing, faces less noise.
"""

import functools
import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce.protocol.exact import check_within, exponential, logarithm

WORD = 1 << 64
SMALLEST = 1e-6  # noise of a million needs a million words
_DIGITS = 80

LARGEST_COUNT = 1000.0  # no noise of 64 bits could spend a tenth of it

LARGEST_SHARED = 48.0  # beyond it too few words lie below the numerator to come within 1e-8 of the stated budget
SMALLEST_SHARED = 1e-6  # below it the noise might leave the 32-bit integers of a message


def numerators(epsilon: float, share: float) -> tuple[int, int]:
    """Return two numerators that cost a share of a budget and the rest, together never more than the whole."""
    if not 0 < share < 1:
        raise BadInput(f"a share of a budget lies between 0 and 1, not {share!r}; give one such as 0.5.")
    if not min(share, 1 - share) * epsilon >= SMALLEST or math.isinf(epsilon):
        raise BadInput(
            f"epsilon {epsilon!r} split {share!r} makes no selection; give a finite budget of which each part is at "
            f"least {SMALLEST:g}, or none for order statistics without privacy."
        )
    with localcontext() as context:
        context.prec = _DIGITS
        first = math.ceil(WORD / Fraction((Decimal(epsilon) * Decimal(share)).exp()))
    # what rounding up left over goes to the second
    return first, math.ceil(Fraction(WORD * WORD) / (first * exponential(epsilon)))


def ratio(*numerators: int) -> Fraction:
    """Return the likelihood ratio of one unit of each noise."""
    return Fraction(WORD ** len(numerators), math.prod(numerators))


@functools.lru_cache(maxsize=1024)
def cost(*numerators: int) -> float:
    """Return the epsilon of one unit of each noise."""
    return logarithm(ratio(*numerators))


def difference_cdf(distance: npt.ArrayLike, up: int, down: int) -> Floats:
    """Return P(a - b <= distance) for independent noises a with numerator ``up`` and b with numerator ``down``.

    For r and s their ratios it is ``(1 - r) s^-d / (1 - r s)`` below zero and ``1 - (1 - s) r^(d+1) / (1 - r s)`` from
    zero on; with r = s the cdf of a discrete Laplace variable.
    """
    place = np.asarray(distance, dtype=np.float64)
    rise, fall, both = cost(up), cost(down), cost(up, down)
    lower = math.expm1(-rise) / math.expm1(-both) * np.exp(fall * np.minimum(place, 0))
    upper = math.expm1(-fall) / math.expm1(-both) * np.exp(-rise * np.maximum(place + 1, 0))
    return np.where(place < 0, lower, 1 - upper)


@dataclass(frozen=True)
class NoisyCount:
    """The distribution of the noise; ``numerator / 2^64`` is how much less likely each further step is."""

    numerator: int

    def __post_init__(self) -> None:
        if not 0 < self.numerator < WORD:
            raise ValueError("the numerator of geometric noise lies between 0 and 2^64")

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
    """Return the noise that spends as much of a budget as an integer allows, and never more."""
    if not SMALLEST <= epsilon <= LARGEST_COUNT:
        raise BadInput(
            f"epsilon {epsilon!r} makes no noisy count; give a finite budget of at least {SMALLEST:g} and at most "
            f"{LARGEST_COUNT:g}."
        )
    noise = NoisyCount(math.ceil(WORD / exponential(epsilon)))
    check_within(noise.ratio, epsilon, "this noisy count")
    return noise


@dataclass(frozen=True)
class Polya:
    """The noise of one of ``sites`` sites, whose sum has ratio ``numerator / 2^64``; ``numerator`` zero is no noise."""

    numerator: int
    sites: int

    def __post_init__(self) -> None:
        if not 0 <= self.numerator < WORD:
            raise ValueError("the numerator of shared noise lies between 0 and 2^64")

    @property
    def ratio(self) -> Fraction:
        """Return the ratio of neighbouring probabilities of the summed noise."""
        return Fraction(self.numerator, WORD)

    @property
    def epsilon(self) -> float:
        """Return the realised epsilon of a replaced record, computed from the integers."""
        return math.inf if self.numerator == 0 else cost(self.numerator, self.numerator)

    @property
    def variance(self) -> float:
        """Return the variance of the summed noise in one cell."""
        return float(2 * self.ratio / (1 - self.ratio) ** 2)

    def odds(self, count: int) -> tuple[int, int]:
        """Return ``weight(count + 1) / (p weight(count))`` as a numerator and a denominator, the first not larger."""
        return count * self.sites + 1, (count + 1) * self.sites

    def weight(self, count: int) -> Fraction:
        """Return what the probability of a count is proportional to, exactly; ``weight(0)`` is one."""
        weight = self.ratio**count
        for i in range(count):
            weight *= Fraction(*self.odds(i))
        return weight


def polya(epsilon: float, sites: int) -> Polya:
    """Return the noise share whose sum over all sites spends as much of ``epsilon`` as integers allow, and never more.

    ``epsilon`` may be ``math.inf``, for no noise; all sites must take part.

    >>> noise = polya(1.0, sites=5)
    >>> noise.epsilon <= 1.0 < noise.epsilon + 1e-8
    True
    >>> round(noise.variance, 2)
    7.84
    """
    if sites < 1:
        raise BadInput(f"noise is shared by at least one site, not {sites}; give the number of sites.")
    if not epsilon >= SMALLEST_SHARED:
        raise BadInput(f"epsilon must be at least {SMALLEST_SHARED:g}, not {epsilon!r}; give a budget such as 1.")
    if math.isinf(epsilon):
        return Polya(0, sites)
    if epsilon > LARGEST_SHARED:
        raise BadInput(
            f"epsilon {epsilon!r} is above {LARGEST_SHARED:g}, the most this noise can express; "
            "give a smaller budget, or inf for no privacy."
        )
    with localcontext() as context:
        context.prec = 80
        share = Decimal(WORD) * (-Decimal(epsilon) / 2).exp()
        noise = Polya(int(share.to_integral_value(rounding=ROUND_CEILING)), sites)
    check_within(ratio(noise.numerator, noise.numerator), epsilon, "this shared noise")
    return noise

"""One-sided geometric noise held as one integer p: P(noise >= k) = (p / 2^64)^k for k = 0, 1, ...

A 64-bit word is below p with probability p / 2^64, so the noise is the number of words below p before one that is not,
and one unit more of it costs a factor of 2^64 / p and no more: epsilon is ``log(2^64 / p)``.
"""

import functools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce.protocol.exact import exponential, logarithm

WORD = 1 << 64
SMALLEST = 1e-6  # noise of a million needs a million words
_DIGITS = 80


def numerators(epsilon: float, share: float) -> tuple[int, int]:
    """Return two numerators that cost a share of a budget and the rest, together never more than the whole.

    Parameters
    ----------
    epsilon
        The budget; finite.
    share
        The part of it for the first, between 0 and 1.

    Examples
    --------
    >>> first, second = numerators(1.0, 0.25)
    >>> round(cost(first), 12), round(cost(second), 12), cost(first, second) <= 1.0
    (0.25, 0.75, True)
    """
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
    """Return the likelihood ratio of one unit of each noise.

    >>> ratio(1 << 63, 1 << 62)
    Fraction(8, 1)
    """
    return Fraction(WORD ** len(numerators), math.prod(numerators))


@functools.lru_cache(maxsize=1024)
def cost(*numerators: int) -> float:
    """Return the epsilon of one unit of each noise.

    >>> round(cost(1 << 63), 6)
    0.693147
    """
    return logarithm(ratio(*numerators))


def difference_cdf(distance: npt.ArrayLike, up: int, down: int) -> Floats:
    """Return P(a - b <= distance) for independent noises a with numerator ``up`` and b with numerator ``down``.

    For r and s their ratios it is ``(1 - r) s^-d / (1 - r s)`` below zero and ``1 - (1 - s) r^(d+1) / (1 - r s)`` from
    zero on; with r = s the cdf of a discrete Laplace variable.

    Parameters
    ----------
    distance
        Integers.
    up
        The numerator of the noise that is added.
    down
        The numerator of the noise that is taken off.

    Examples
    --------
    >>> difference_cdf([-1, 0], 1 << 63, 1 << 63).round(6)
    array([0.333333, 0.666667])
    """
    place = np.asarray(distance, dtype=np.float64)
    rise, fall, both = cost(up), cost(down), cost(up, down)
    lower = math.expm1(-rise) / math.expm1(-both) * np.exp(fall * np.minimum(place, 0))
    upper = math.expm1(-fall) / math.expm1(-both) * np.exp(-rise * np.maximum(place + 1, 0))
    return np.where(place < 0, lower, 1 - upper)

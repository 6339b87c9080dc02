"""Exact comparison of integer ratios with exponentials, so that epsilon is computed and never believed."""

import functools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

_DIGITS = 80  # far beyond the 2^62 outcomes of a die: no ratio of such integers comes this close to exp(epsilon)


@functools.lru_cache(maxsize=1024)
def exponential(epsilon: float) -> Fraction:
    """Return exp(epsilon) to 80 digits as a fraction."""
    with localcontext() as context:
        context.prec = _DIGITS
        return Fraction(Decimal(epsilon).exp())


@functools.lru_cache(maxsize=1024)
def logarithm(ratio: Fraction) -> float:
    """Return the float nearest to the logarithm of a ratio of integers."""
    with localcontext() as context:
        context.prec = _DIGITS
        return float((Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln())


def within(ratio: Fraction | None, epsilon: float) -> bool:
    """Tell whether a likelihood ratio (None: unbounded) stays within exp(epsilon)."""
    if math.isinf(epsilon):
        return True
    return ratio is not None and ratio <= exponential(epsilon)

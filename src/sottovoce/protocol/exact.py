"""Exact comparison of integer ratios with exponentials, so that epsilon is computed and never believed.

Whatever is rounded here is rounded to the side of privacy: ``exp`` down, ``log`` up. So a ratio is within a budget if
and only if the epsilon stated for it is not larger than the budget.
"""

import functools
import math
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

from sottovoce.core.errors import BadInput

_DIGITS = 80  # far beyond the 2^62 outcomes of a die: no ratio of such integers comes this close to exp(epsilon)
_ENOUGH = 1e5  # its exponential still fits a decimal number, and no ratio of a few 64-bit integers reaches it


@functools.lru_cache(maxsize=1024)
def exponential(epsilon: float) -> Fraction:
    """Return exp(epsilon), up to a size that no ratio here has, to 80 digits as a fraction; never more than it is."""
    with localcontext() as context:
        context.prec = _DIGITS
        below = Fraction(
            Decimal(min(epsilon, _ENOUGH)).exp().next_minus()
        )  # `exp` rounds to nearest, whatever the context says
    return below if epsilon < 0 else max(below, Fraction(1))


@functools.lru_cache(maxsize=1024)
def logarithm(ratio: Fraction) -> float:
    """Return the smallest float that is not below the logarithm of a ratio of integers."""
    if ratio == 1:
        return 0.0
    with localcontext() as context:
        context.prec, context.rounding = 2 * _DIGITS, ROUND_CEILING
        above = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln().next_plus()
        nearest = float(above)
        return nearest if Decimal(nearest) >= above else math.nextafter(nearest, math.inf)


def within(ratio: Fraction | None, epsilon: float) -> bool:
    """Tell whether a likelihood ratio (None: unbounded) stays within exp(epsilon)."""
    if math.isinf(epsilon):
        return epsilon > 0
    return ratio is not None and epsilon >= 0 and ratio <= exponential(epsilon)


def check_within(ratio: Fraction | None, epsilon: float, what: str) -> None:
    """Refuse what would cost more than it was asked to; every channel and mechanism is checked so when it is made."""
    if not within(ratio, epsilon):
        cost = math.inf if ratio is None else logarithm(ratio)
        raise BadInput(
            f"{what} would cost {cost!r}, more than its epsilon {float(epsilon)!r}; give a larger budget.",
            parameter="epsilon",
        )

"""Randomised response on one bit (Warner 1965): say the truth on most outcomes of the die, the opposite on the others.

doi:10.1080/01621459.1965.10480775.

With flip probability ``b / total`` the response rate of the papers is ``r = 1 - 2 b / total`` and
``epsilon = log((1 + r) / (1 - r))``, that is ``r = tanh(epsilon / 2)``.
"""

import math
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sottovoce.core.errors import BadInput
from sottovoce.protocol.channel import OUTCOMES, Channel
from sottovoce.protocol.exact import check_within

LARGEST = 24.0  # beyond it the flip weight is too small to come within 1e-8 of the stated budget


@lru_cache(maxsize=1024)
def binary(epsilon: float) -> Channel:
    """Return the binary channel that spends as much of ``epsilon`` as integers allow, and never more.

    ``math.inf`` sends the truth.

    >>> channel = binary(1.0)
    >>> channel.epsilon <= 1.0 < channel.epsilon + 1e-8
    True
    """
    channel = with_flips(_flips(epsilon))
    check_within(channel.ratio, epsilon, "the binary channel")
    return channel


@lru_cache(maxsize=1024)  # ten thousand sites have a few budgets
def with_flips(flips: int) -> Channel:
    """Return the binary channel of a flip weight: it says the opposite on so many of the 2^62 outcomes of the die.

    >>> with_flips(binary(1.0).weights[0][1]).epsilon == binary(1.0).epsilon
    True
    """
    if not 0 <= flips < OUTCOMES // 2:
        raise BadInput(
            "a flip weight lies between 0 and less than half of 2^62; make the channel with binary(epsilon)."
        )
    weights = ((OUTCOMES - flips, flips), (flips, OUTCOMES - flips))
    rate = Fraction(OUTCOMES - 2 * flips, OUTCOMES)
    flip = Fraction(flips, OUTCOMES)
    table = np.array([[float(-flip / rate)], [float((1 - flip) / rate)]])
    return Channel("binary", np.array([[0.0], [1.0]]), weights, table)


def response_rate(epsilon: float) -> float:
    """Return the truthful response rate of the papers for a budget.

    >>> round(response_rate(1.0), 4)
    0.4621
    """
    return math.tanh(epsilon / 2)


def epsilon_of_rate(rate: float) -> float:
    """Return the budget whose truthful response rate is ``rate``.

    >>> round(epsilon_of_rate(0.25), 4)
    0.5108
    """
    if not 0 < rate <= 1:
        raise BadInput(f"a response rate lies in (0, 1], not {rate!r}; give epsilon = math.inf for rate 1.")
    return math.inf if rate == 1 else 2 * math.atanh(rate)


@lru_cache(maxsize=1024)
def flips_of(channel: Channel) -> int:
    """Return the flip weight of a binary channel; refuse a matrix that the sampler would not sample.

    >>> flips_of(binary(1.0)) == binary(1.0).weights[0][1]
    True
    """
    flips = channel.weights[0][-1]
    if channel.weights != ((OUTCOMES - flips, flips), (flips, OUTCOMES - flips)):
        raise BadInput(f"channel {channel.name!r} is not a binary one on 2^62 outcomes; make it with binary(epsilon).")
    return flips


@lru_cache(maxsize=1024)
def rate_of(channel: Channel) -> float:
    """Return the response rate that a binary channel realises."""
    (keep, flip), _ = channel.weights
    return float(Fraction(keep - flip, keep + flip))


def _flips(epsilon: float) -> int:
    """Return the smallest flip weight whose likelihood ratio stays within exp(epsilon)."""
    if not epsilon > 0:
        raise BadInput(f"epsilon must be positive, not {epsilon!r}; give a budget such as 1, or inf for no privacy.")
    if math.isinf(epsilon):
        return 0
    if epsilon > LARGEST:
        raise BadInput(
            f"epsilon {epsilon!r} is above {LARGEST:g}, the most this channel can express; "
            "give a smaller budget, or inf for no privacy."
        )
    with localcontext() as context:
        context.prec = 80
        share = Decimal(OUTCOMES) / (1 + Decimal(epsilon).exp())
        flips = int(share.to_integral_value(rounding=ROUND_CEILING))
    if 2 * flips >= OUTCOMES:
        raise BadInput(f"epsilon {epsilon!r} is too small for a die of 2^62 outcomes; give at least 1e-18.")
    return flips


EXAMPLES = tuple(
    (epsilon, binary) for epsilon in (1e-6, 0.1, 0.5108256237659907, 1.0, 2.944, 8.0, 16.0, 24.0, math.inf)
)
"""Budgets on which the universal channel checks run."""

"""Intervals of one group that other groups make shorter, and that keep their level: "frequentist, assisted by Bayes".

Yu and Hoff (2018, doi:10.1093/biomet/asy009), after Pratt (1963). A value is refuted if the one-sided test of "the
truth is greater" has a p-value of at most ``a``, or that of "it is less" one of at most ``alpha - a``; usually ``a`` is
one half of ``alpha``. If the other groups let one expect the truth at ``mean``, with the variance ``spread^2``, and the
group's own error is ``error``, the interval is shortest on average over such truths where

    z(alpha - a) - z(a) = lean = 2 error (value - mean) / spread^2,        z the standard normal quantile:

a value below the mean is refuted sooner by a truth that is greater, one above it by a truth that is less. Both parts
grow with ``alpha``, so intervals are nested, and a value has a p-value (Hoff 2019, arXiv:1907.12589): with one-sided
ones ``g`` and ``l`` the smaller of ``g + Phi(z(g) + lean)`` and ``l + Phi(z(l) - lean)``. A tenth of ``alpha`` stays on
each side (`KEPT`): ``a`` is kept between ``.1 alpha`` and ``.9 alpha``, so that a group that lies where nobody expected
it loses little.

*What is guaranteed.* At the truth both tests together reject with probability ``alpha`` at most, whatever ``a`` is
there, if each holds its size and ``a`` does not depend on the group's own answers. So every group keeps its own level,
however the groups differ; what others told, right or wrong, changes the length alone. Where the groups are alike
(``spread`` small against ``error``) a 95 % interval gets up to 14 % shorter, near the mean; far from it, where the
expectation is wrong, up to 9 % longer.
"""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

from sottovoce.inference.common import normal

KEPT = 0.1  # of the error, on each side
LEAST = 1e-300  # a p-value as small as numbers go
CLOSE = 1e-9  # of the error: an edge is found so exactly


class Expected(NamedTuple):
    """What others let one expect of a group's truth, and the error that its own estimate will have."""

    mean: float
    spread: float
    error: float


def p_value(value: float, greater: float, less: float, expected: Expected) -> float:
    """Return the p-value of a supposed truth from those of "it is greater" and "it is less".

    >>> expected = Expected(mean=0.0, spread=1.0, error=1.0)
    >>> round(p_value(0.0, 0.025, 0.975, expected), 4), round(p_value(-1.0, 0.025, 0.975, expected), 4)
    (0.05, 0.0278)
    """
    mean, spread, error = expected
    lean = 2 * (value - mean) / error * (error / spread) ** 2 if spread > 0 else math.copysign(math.inf, value - mean)
    lean = 0.0 if value == mean else lean
    return min(_level(greater, lean), _level(less, -lean), 1.0)


def _level(one_sided: float, lean: float) -> float:
    """Return the error at which the part on one side is as large as a one-sided p-value."""
    shortest = one_sided + normal.below(_z(one_sided) + lean)
    return max(one_sided / (1 - KEPT), min(shortest, one_sided / KEPT))


def _z(p: float) -> float:
    return NormalDist().inv_cdf(min(max(p, LEAST), 1 - 1e-16))


def interval(
    point: float,
    own: Callable[[float], tuple[float, float]],
    one_sided: Callable[[float, str], float],
    expected: Expected,
    level: float,
) -> tuple[float, float]:
    """Return the interval around a point, from the group's own interval and its one-sided p-values.

    >>> def own(level): return -normal.two_sided(level), normal.two_sided(level)
    >>> def one_sided(value, alternative): return normal.p_value(-value, alternative)
    >>> low, high = interval(0.0, own, one_sided, Expected(0.0, 0.1, 1.0), 0.95)
    >>> round(low, 3), round(high, 3)
    (-1.695, 1.695)
    """
    low, high = own(level)

    def refuted(value: float) -> bool:
        greater, less = one_sided(value, "greater"), one_sided(value, "less")
        return p_value(value, greater, less, expected) <= 1 - level

    # beyond both its own end and the mean at least half of the error refutes a value from this side
    first = -math.inf if math.isinf(low) else _edge(refuted, point, min(low, expected.mean), expected.error)
    last = math.inf if math.isinf(high) else _edge(refuted, point, max(high, expected.mean), expected.error)
    return first, last


def _edge(refuted: Callable[[float], bool], inside: float, beyond: float, error: float) -> float:
    """Return where values begin to be refuted, between one that is not and one that is."""
    if not refuted(beyond):  # an end of its own is found to so many digits alone
        return beyond
    while abs(beyond - inside) > CLOSE * error + 4 * math.ulp(max(abs(inside), abs(beyond))):
        middle = inside + (beyond - inside) / 2
        inside, beyond = (inside, middle) if refuted(middle) else (middle, beyond)
    return beyond

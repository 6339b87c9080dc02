"""Intervals of one group that other groups make shorter, and that keep their level: "frequentist, assisted by Bayes".

Yu and Hoff (2018, doi:10.1093/biomet/asy009), after Pratt (1963). A value is refuted if the one-sided test of "the
truth is greater" has a p-value of at most ``a``, or that of "it is less" one of at most ``alpha - a``; usually ``a`` is
one half of ``alpha``. If the other groups let one expect the truth at ``mean``, with the variance ``spread^2``, and the
group's own error is ``error``, the interval is shortest on average over such truths where

    z(alpha - a) - z(a) = 2 error (value - mean) / spread^2,        z the standard normal quantile:

a value below the mean is refuted sooner by a truth that is greater, one above it by a truth that is less.

*What is guaranteed.* At the truth both tests together reject with probability ``alpha`` at most, whatever ``a`` is
there, if each holds its size and ``a`` does not depend on the group's own answers. So every group keeps its own level,
however the groups differ; what others told, right or wrong, changes the length alone. Where the groups are alike
(``spread`` small against ``error``) a 95 % interval gets up to 16 % shorter, near the mean; far from it, where the
expectation is wrong, longer.
"""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

HALVINGS = 60
FARTHEST = 37.0  # of a normal quantile: tails beyond are less than the smallest number
CLOSE = 1e-6  # of the error: an edge is found so exactly


class Expected(NamedTuple):
    """What others let one expect of a group's truth, and the error that its own estimate will have."""

    mean: float
    spread: float
    error: float


def part_greater(value: float, expected: Expected, alpha: float) -> float:
    """Return the part of an error that the test of "the truth is greater" has at a value.

    >>> expected = Expected(mean=0.0, spread=1.0, error=1.0)
    >>> [round(part_greater(value, expected, 0.05), 4) for value in (-1.0, 0.0, 1.0)]
    [0.0499, 0.025, 0.0001]
    """
    mean, spread, error = expected
    if value == mean:
        return alpha / 2
    lean = 2 * (value - mean) / error * (error / spread) ** 2 if spread > 0 else math.copysign(math.inf, value - mean)
    smaller = _smaller(abs(lean), alpha)
    return smaller if lean > 0 else alpha - smaller


def _smaller(lean: float, alpha: float) -> float:
    """Return the smaller part: the quantile of the rest, less that of the part, is ``lean``; zero if it is next to."""
    normal = NormalDist()
    low, high = -FARTHEST, normal.inv_cdf(alpha / 2)
    if normal.inv_cdf(alpha) - low <= lean:
        return 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        part = _below(middle)
        more = normal.inv_cdf(alpha - part) - middle > lean if part < alpha else False
        low, high = (middle, high) if more else (low, middle)
    return _below(low)


def _below(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


def interval(
    point: float,
    own: Callable[[float], tuple[float, float]],
    p_value: Callable[[float, str], float],
    expected: Expected,
    level: float,
) -> tuple[float, float]:
    """Return the interval around a point, from the group's own interval and its one-sided p-values.

    >>> from sottovoce.inference.common import normal
    >>> def own(level): return -normal.two_sided(level), normal.two_sided(level)
    >>> def p_value(value, alternative): return normal.p_value(-value, alternative)
    >>> low, high = interval(0.0, own, p_value, Expected(0.0, 0.1, 1.0), 0.95)
    >>> round(low, 3), round(high, 3)
    (-1.645, 1.645)
    """
    alpha, (low, high) = 1 - level, own(level)

    def refuted(value: float) -> bool:
        part = part_greater(value, expected, alpha)
        if value < point:
            return p_value(value, "greater") <= part
        return p_value(value, "less") <= alpha - part

    # beyond both its own end and the mean the part is at least one half, so that a value there is refuted
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

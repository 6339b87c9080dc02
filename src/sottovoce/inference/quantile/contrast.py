"""A weighted sum of independent quantiles, such as a difference: its interval, from the intervals of its parts.

By the method of variance estimates recovery (Zou and Donner 2008, doi:10.1002/sim.3095): with estimates ``q``, ends
``l, u`` and weights ``c``, the lower end is ``sum c q - sqrt(sum c^2 d^2)``, where ``d`` is ``q - l`` for a positive
weight and ``u - q`` for a negative one; likewise above. Where all parts hold for every distribution, the sum of the
worst ends of parts at ``level^(1/m)`` does so, too. What is rounded may be off by half a step: ``slack``.
"""

import math
from collections.abc import Sequence

from sottovoce.inference.common.several import each_of

Ends = tuple[float, float]


def combined(
    weights: Sequence[float], points: Sequence[float], ends: Sequence[Ends], slack: float = 0.0, exact: bool = False
) -> Ends:
    """Return the interval of a weighted sum, from estimates and intervals at the level that `own_level` says.

    >>> combined([1, -1], [5.0, 2.0], [(2.0, 9.0), (-2.0, 4.0)])
    (-0.6055512754639891, 8.65685424949238)
    """
    low = [each[0] if weight > 0 else each[1] for weight, each in zip(weights, ends, strict=True)]
    high = [each[1] if weight > 0 else each[0] for weight, each in zip(weights, ends, strict=True)]
    if exact:
        return _sum(weights, low) - slack, _sum(weights, high) + slack
    centre = _sum(weights, points)
    down, up = (
        math.hypot(*(weight * (end - point) for weight, end, point in zip(weights, side, points, strict=True)))
        for side in (low, high)
    )
    return centre - down - slack, centre + up + slack


def own_level(level: float, parts: int, exact: bool) -> float:
    """Return the level at which the parts are to be taken."""
    return each_of(level, parts) if exact else level


def _sum(weights: Sequence[float], values: Sequence[float]) -> float:
    return math.fsum(weight * value for weight, value in zip(weights, values, strict=True))

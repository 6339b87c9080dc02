"""What all answers say by monotonicity alone, for an interval whose smooth reading the last question contradicted.

Nobody is left to ask then. The interval goes on to the next asked points whose answers lie clearly beyond the level.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sottovoce.inference.common import normal
from sottovoce.server.description import Interval
from sottovoce.server.quantile.asking import Decoded
from sottovoce.server.quantile.certified.curves import Answers, bracket, pooled

FURTHEST = 8.0  # standard errors: what is more is nothing


@dataclass(frozen=True)
class Fence:
    """All answers of a study, the level, and what is public."""

    answers: Answers
    tau: float
    bounds: tuple[float, float] = (-math.inf, math.inf)

    def around(self, found: Interval, z: float) -> Interval:
        """Lengthen an interval to the points that lie ``z`` errors beyond the level."""
        first, last = bracket(self.answers, self.tau, z)
        points = self.answers.points
        low = float(points[first]) if first >= 0 else self.bounds[0]
        high = float(points[last]) if last < len(points) else self.bounds[1]
        return Interval(min(found.low, low), max(found.high, high))


def fence_of(heard: Sequence[Decoded], tau: float, bounds: tuple[float, float] | None) -> Fence:
    """Return what some answers say."""
    told = [
        (float(point), float(value), 1 / float(variance))
        for answer in heard
        for point, value, variance in zip(answer.points, answer.below, answer.variances, strict=True)
        if variance > 0  # else nobody was there to be asked
    ]
    points, values, precisions = map(list, zip(*told, strict=True))
    return Fence(pooled(points, values, precisions), tau, (-math.inf, math.inf) if bounds is None else bounds)


def touching(interval: Callable[[float], Interval], value: float, most: float) -> float:
    """Return the normal quantile, up to one, of the level at which an interval first touches a value."""
    low, high = 0.0, min(most, FURTHEST)
    for _ in range(40):
        middle = (low + high) / 2
        ends = interval(1 - 2 * normal.below(-max(middle, 1e-6)))
        low, high = (low, middle) if ends.low <= value <= ends.high else (middle, high)
    return high

"""Where a noisy line crosses zero: the interval of Fieller (1954), and the test that it inverts.

doi:10.1111/j.2517-6161.1954.tb00159.x.

The line is ``height - slope x`` at distance ``x`` from ``centre``; its variance there is ``floor + spread (x -
middle)^2``. A value is kept while ``|line| <= c sqrt(variance)``. Queries follow past reports, so the normal
distribution is only approximate, and worse the noisier the slope: with ``rho^2 = spread / slope^2`` the normal quantile
``z`` is widened to ``c = z (1 + rho^2)``. (To first order the inversion itself multiplies the length by ``1 + z^2 rho^2
/ 2``: widening ``z`` by that factor as well would count the noise of the slope twice.)
"""

import math
from typing import NamedTuple

from sottovoce.core.errors import BadInput
from sottovoce.inference.common import normal


class Line(NamedTuple):
    """A falling line seen through noise, and how its variance grows away from ``middle``."""

    centre: float
    height: float
    slope: float
    middle: float
    floor: float
    spread: float

    @property
    def relative_noise(self) -> float:
        """Return rho^2, the squared relative error of the slope; infinite for a line that does not fall."""
        return self.spread / self.slope**2 if self.slope > 0 else math.inf


def crossing(line: Line) -> float:
    """Return where the line crosses zero.

    >>> crossing(Line(10.0, 0.5, 0.25, 0.0, 0.01, 0.0))
    12.0
    """
    return line.centre + line.height / line.slope if line.slope > 0 else math.nan


def interval(line: Line, level: float) -> tuple[float, float]:
    """Return the values that the test keeps; the whole line if the slope drowns in noise.

    >>> low, high = interval(Line(0.0, 0.0, 1.0, 0.0, 0.01, 0.0), 0.95)
    >>> round(low, 3), round(high, 3)
    (-0.196, 0.196)
    """
    if not 0 < level < 1:
        raise BadInput(f"level lies strictly between 0 and 1, not {level!r}; give a confidence such as 0.95.")
    noise = line.relative_noise
    c = normal.two_sided(level) * (1 + noise)
    if c * c * noise >= 1:
        return -math.inf, math.inf
    root = line.height / line.slope
    away = root - line.middle
    steep = line.slope**2 - c**2 * line.spread
    shift = c**2 * line.spread * away / steep
    half = c * math.sqrt(steep * line.floor + line.slope**2 * line.spread * away**2) / steep
    return line.centre + (root + shift - half), line.centre + (root + shift + half)


def p_value(line: Line, value: float, alternative: str = "two-sided") -> float:
    """Return how surprising the line is if it crosses zero at a value.

    "greater" asks for evidence that it crosses above the value.

    >>> round(p_value(Line(0.0, 0.0, 1.0, 0.0, 0.01, 0.0), 0.196), 3)
    0.05
    """
    if alternative not in ("two-sided", "greater", "less"):
        raise BadInput(f'alternative {alternative!r} is not known; give "two-sided", "greater" or "less".')
    noise = line.relative_noise
    if math.isinf(noise):
        return 1.0
    x = value - line.centre
    ahead = line.height - line.slope * x
    ratio = ahead / math.sqrt(line.floor + line.spread * (x - line.middle) ** 2)
    c = abs(ratio) if noise == 0 else min(abs(ratio), 1 / math.sqrt(noise))  # beyond it the interval is the whole line
    z = c / (1 + noise)
    return normal.p_value(math.copysign(z, ahead), alternative)

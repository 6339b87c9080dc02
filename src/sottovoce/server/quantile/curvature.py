"""How the density changes around the quantile, as stages see it: dips between two modes, the slope of its logarithm.

Between two modes the density at the quantile is smaller than at its shoulders, so side points that are too wide
overestimate the slope and the interval comes out too short. The checks `steeper_pilot` and `steeper_shoulders` return
how much steeper the wide view is than the narrow one, relatively, and the standard error of that. `Bends` learns how
fast the density changes, for the lens.
"""

import math
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.server.quantile.asking import Decoded

PILOT_BEND = 0.25  # relative variance of what a wide pilot says of the density's slope at the quantile
SURE, LARGER = 3.0, 1.25  # standard errors and ratio from which a dip of the density is worth a warning
STEEPEST = 1.5  # the largest change of the logarithm of the density over the pilot's narrow side that a lens may have
LIMIT = 5.0  # the largest that is looked for


def steeper_pilot(pilot: Decoded, places: Floats, stage: Decoded, spacing: float) -> tuple[float, float]:
    """Compare the pilot's slope at the stage's middle with the stage's own, scaled to the stage's width.

    ``places`` are the pilot's points in the coordinate of the stage, whose middle is zero.
    """
    x, y = places, pilot.below
    first, second = (y[1] - y[0]) / (x[1] - x[0]), (y[2] - y[1]) / (x[2] - x[1])
    wide = float(x[2] - x[0]) / 2
    there = float(first - (second - first) / (x[2] - x[0]) * (x[0] + x[1]))
    here = float(stage.below[2] - stage.below[0]) / (2 * spacing)
    if there <= 0 or here <= 0:
        return 0.0, 0.0
    there_error = math.sqrt(float(pilot.variances[0] + pilot.variances[2])) / (2 * wide)
    here_error = math.sqrt(float(stage.variances[0] + stage.variances[2])) / (2 * spacing)
    # a cubic term bends a secant by its squared half-width
    part = (spacing / wide) ** 2
    factor = part / max(1 - part, 0.5)
    ratio = there / here
    return (ratio - 1) * factor, factor * ratio * math.hypot(there_error / there, here_error / here)


def log_slope(below: Floats, variances: Floats, places: Floats, unit: float = 1.0) -> tuple[float, float]:
    """Return how fast the logarithm of the density changes over three places, a unit, and the variance of that."""
    left, right = float(below[1] - below[0]), float(below[2] - below[1])
    if left + right < 2 * math.sqrt(float(variances[0] + variances[2])):
        return 0.0, math.inf
    floor = 0.1 * (left + right)
    left, right = max(left, floor), max(right, floor)
    behind, ahead = (float(gap) / unit for gap in np.diff(places))
    slope, steepness = _exponential(behind, ahead, math.log(right / left))
    # the middle value enters both differences
    variance = variances[0] / left**2 + variances[2] / right**2 + variances[1] * (1 / left + 1 / right) ** 2
    return slope, float(variance) / steepness**2


def _exponential(behind: float, ahead: float, odds: float) -> tuple[float, float]:
    """Return the ``b`` for which a density ``exp(b x)`` holds the given log odds of mass ahead over mass behind.

    The second value is how fast the log odds grow with ``b`` there.
    """

    def log_odds(b: float) -> float:
        return _log_mass(b, ahead) - _log_mass(-b, behind)

    low, high = -LIMIT / min(behind, ahead), LIMIT / min(behind, ahead)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if log_odds(middle) < odds else (low, middle)
    b, nudge = (low + high) / 2, 1e-4 / min(behind, ahead)
    return b, (log_odds(b + nudge) - log_odds(b - nudge)) / (2 * nudge)


def _log_mass(b: float, gap: float) -> float:
    """Return the logarithm of the mass of ``exp(b x)`` between 0 and a gap."""
    u = b * gap
    if abs(u) < 1e-6:
        return math.log(gap) + u / 2
    return math.log(math.expm1(u) / b) if u < 30 else u - math.log(b)


class Secants(NamedTuple):
    """The slopes between the inner and between the outer points of five, in units of the spacing, with errors."""

    inner: float
    inner_error: float
    outer: float
    outer_error: float


def secants(stage: Decoded) -> Secants:
    """Return the inner and outer secants of a stage of five points."""
    below, variances = stage.below, stage.variances
    return Secants(
        float(below[3] - below[1]) / 2,
        math.sqrt(float(variances[1] + variances[3])) / 2,
        float(below[4] - below[0]) / 4,
        math.sqrt(float(variances[0] + variances[4])) / 4,
    )


def steeper_shoulders(stage: Decoded) -> tuple[float, float]:
    """Compare the outer secant of five points with the inner one; certainly steeper where the inner one is noise."""
    inner, inner_error, outer, outer_error = secants(stage)
    if inner < 2 * inner_error:
        return 1.0, 0.0
    return outer / inner - 1, math.hypot(outer_error / inner, outer * inner_error / inner**2)


def dips_between_shoulders(stage: Decoded) -> bool:
    """Tell whether the density is clearly and much smaller between the inner points of five than beyond them."""
    inner, inner_error, outer, outer_error = secants(stage)
    return outer > LARGER * inner and outer - inner > SURE * math.hypot(inner_error, outer_error)


class Bends:
    """How fast the logarithm of the density changes at the quantile, as far as known; shrunk towards zero."""

    def __init__(self, pilot: Decoded) -> None:
        self._widest = float(pilot.points[2] - pilot.points[0]) / 2  # the unit: squares of raw ones may not exist
        self._steepest = STEEPEST * self._widest / float(np.min(np.diff(pilot.points)))
        self._estimate, variance = log_slope(pilot.below, pilot.variances, pilot.points, self._widest)
        # the pilot is wide: what it sees may be half of what is true at the quantile
        self._variance = variance + PILOT_BEND * self._estimate**2

    @property
    def best(self) -> float:
        """Return the estimate, shrunk by its own noise and kept moderate over the width of the pilot."""
        shrunk = self._estimate**3 / (self._estimate**2 + self._variance) if self._estimate else 0.0
        return min(max(shrunk, -self._steepest), self._steepest) / self._widest

    def hear(self, heard: Decoded, places: Floats, bend: float) -> None:
        """Learn from a stage: what its lens did not straighten."""
        n = len(places) // 2
        ends = [n - 1, n, n + 1]
        more, variance = log_slope(heard.below[ends], heard.variances[ends], places[ends], self._widest)
        weight = self._variance / (self._variance + variance)
        self._estimate += weight * (bend * self._widest + more - self._estimate)
        self._variance *= 1 - weight

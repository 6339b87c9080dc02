"""Is the distribution function bent where the stages take it for nearly straight?

Between two modes the density at the quantile is smaller than at its shoulders, so side points that are too wide
overestimate the slope and the interval comes out too short. Both checks return how much steeper the wide view is than
the narrow one, relatively, and the standard error of that.
"""

import math

import numpy as np

from sottovoce.estimators.asking import Floats, Heard


def steeper_pilot(pilot: Heard, places: Floats, stage: Heard, spacing: float) -> tuple[float, float]:
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
    factor = spacing**2 / max(wide**2 - spacing**2, wide**2 / 2)
    ratio = there / here
    return (ratio - 1) * factor, factor * ratio * math.hypot(there_error / there, here_error / here)


def log_slope(below: Floats, variances: Floats, places: Floats) -> tuple[float, float]:
    """Return how fast the logarithm of the density changes over three places, and the variance of that."""
    left, right = float(below[1] - below[0]), float(below[2] - below[1])
    if left + right < 2 * math.sqrt(float(variances[0] + variances[2])):
        return 0.0, math.inf
    gaps = np.diff(places)
    floor = 0.1 * (left + right)
    left, right = max(left, floor), max(right, floor)
    change = math.log(right / left * gaps[0] / gaps[1])
    # the middle value enters both differences
    variance = variances[0] / left**2 + variances[2] / right**2 + variances[1] * (1 / left + 1 / right) ** 2
    distance = float(places[2] - places[0]) / 2
    return change / distance, float(variance) / distance**2


def steeper_shoulders(stage: Heard) -> tuple[float, float]:
    """Compare the outer secant of five points with the inner one."""
    below, variances = stage.below, stage.variances
    inner, outer = float(below[3] - below[1]) / 2, float(below[4] - below[0]) / 4
    inner_error = math.sqrt(float(variances[1] + variances[3])) / 2
    outer_error = math.sqrt(float(variances[0] + variances[4])) / 4
    if inner < 2 * inner_error:
        return 1.0, 0.0
    return outer / inner - 1, math.hypot(outer_error / inner, outer * inner_error / inner**2)

"""Integrals over the level t of a new score, from the exact probabilities that the threshold is not below it.

The coverage C of a threshold has E C = int P(C >= t) dt and E C^2 = int 2 t P(C >= t) dt. In x = logit t the integrand
is smooth and falls off at both ends, so that the trapezoid rule is exact to rounding. Noise for privacy has a corner,
which a site's binomial distribution rounds off over a width of its own, however wide the noise: then panels of Gauss
and Legendre, small ones around the corners. Left of the grid P hardly changes: its value at the first level, which is
no larger, counts for all of them; right of the grid nothing is counted. So the integrals err, if at all, on the safe
side.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats

SPACING, NARROW = 0.25, 0.6  # between nodes: absolute, and in standard deviations of logit C
FINE = 1e-3  # spacing below which a sum of thousands of nodes is its integral and two corrections
NORMAL, EXPONENTIAL = 9.5, 27.0  # standard deviations beyond which a distribution is nothing
TAIL = 37.0  # exp(-37) is nothing beside 1; the logit of a Beta distribution falls off like its rate
NODES, WIDE, PANEL = 10, 2.0, 2.0  # of a panel: how many, and the largest width, absolute and in standard deviations
BODY, BROAD = 8.0, 2.5  # standard deviations beyond which panels are so many times as wide
CORNER = 6.0  # widths of a corner within which panels have half as many


class Corner(NamedTuple):
    """Where, in x, the noise of a site has its corner, and over what width it is rounded off."""

    place: float
    width: float


class LevelGrid(NamedTuple):
    """Levels at which P(C >= t) is to be computed, and what the lower ones contribute."""

    levels: Floats
    weights: Floats  # of P in E C
    mean_below: float
    square_below: float

    def mean(self, survival: Floats) -> Floats:
        """Return E C from P(C >= t), levels along the first axis."""
        return np.asarray(self.mean_below * survival[0] + np.tensordot(self.weights, survival, 1))

    def sd(self, survival: Floats) -> Floats:
        """Return the standard deviation of C."""
        square = self.square_below * survival[0] + np.tensordot(2 * self.levels * self.weights, survival, 1)
        return np.asarray(np.sqrt(np.maximum(square - self.mean(survival) ** 2, 0.0)))


def level_grid(level: float, deviation: float, reach: float = NORMAL, corners: Sequence[Corner] = ()) -> LevelGrid:
    """Return the levels for a coverage near ``level`` whose logit has about the standard deviation ``deviation``.

    >>> grid = level_grid(0.9, 0.1)
    >>> survival = (grid.levels <= 0.9).astype(float)  # a step instead of a smooth distribution: right to the spacing
    >>> abs(float(grid.mean(survival)) - 0.9) < 0.01
    True
    """
    centre = math.log(level) - math.log1p(-level)
    half = min(reach * deviation + TAIL * deviation * deviation, 2 * TAIL)
    if not corners:
        return _even(centre, half, min(SPACING, NARROW * deviation))
    return _panels(centre, half, deviation, corners)


def _even(centre: float, half: float, spacing: float) -> LevelGrid:
    """Return the nodes of the trapezoid rule."""
    from scipy.special import expit

    steps = math.ceil(half / spacing)
    x = centre + spacing * np.arange(-steps, steps + 1)
    levels, weights = expit(x), spacing * expit(x) * expit(-x)
    if spacing >= FINE:
        below = x[0] - spacing * np.arange(1, max(math.ceil((x[0] + TAIL + 4) / spacing), 1) + 1)
        known = spacing * expit(below) * expit(-below)
        return LevelGrid(levels, weights, float(known.sum()), float((2 * expit(below) * known).sum()))
    t = float(levels[0])
    slope = t * (1 - t)  # Euler and Maclaurin, for t and for t^2 as functions of x
    mean = t - spacing / 2 * slope + spacing**2 / 12 * slope * (1 - 2 * t)
    return LevelGrid(levels, weights, mean, t * t - spacing * t * slope + spacing**2 / 6 * slope * t * (2 - 3 * t))


def _panels(centre: float, half: float, deviation: float, corners: Sequence[Corner]) -> LevelGrid:
    """Return the nodes of panels that are small where an integrand may have a corner, and wide where it falls off."""
    from scipy.special import expit

    places, widths = np.array(corners).T
    edges = [centre - half]
    while edges[-1] < centre + half:
        away = np.abs(edges[-1] - places) / widths
        fine = float(np.min(widths * np.maximum(away - CORNER, CORNER / 2)))
        broad = PANEL * deviation * (1 if abs(edges[-1] - centre) < BODY * deviation else BROAD)
        edges.append(edges[-1] + min(WIDE, fine, broad))
    ends = np.array(edges)
    nodes, parts = np.polynomial.legendre.leggauss(NODES)
    middle, radius = (ends[1:] + ends[:-1])[:, None] / 2, np.diff(ends)[:, None] / 2
    x, spaced = (middle + radius * nodes).ravel(), (radius * parts).ravel()
    start = float(expit(ends[0]))
    return LevelGrid(expit(x), spaced * expit(x) * expit(-x), start, start**2)

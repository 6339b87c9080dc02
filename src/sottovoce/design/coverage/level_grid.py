"""Integrals over the level t of a new score, from the exact probabilities that the threshold is not below it.

The coverage C of a threshold has E C = int P(C >= t) dt and E C^2 = int 2 t P(C >= t) dt. In x = logit t the integrand
is smooth and falls off at both ends, so that the trapezoid rule is exact to rounding. Left of the grid P hardly
changes: its value at the first level, which is no larger, counts for all of them; right of the grid nothing is counted.
So the integrals err, if at all, on the safe side.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

SPACING, NARROW = 0.25, 0.6  # between nodes: absolute, and in standard deviations of logit C
NORMAL, EXPONENTIAL = 9.5, 27.0  # standard deviations beyond which a law is nothing
TAIL = 37.0  # exp(-37) is nothing beside 1; the logit of a Beta law falls off like its rate


class LevelGrid(NamedTuple):
    """Levels at which P(C >= t) is to be computed, and what the lower ones contribute."""

    levels: Floats
    weights: Floats  # of P in E C
    mean_below: float
    square_below: float

    def mean(self, survival: Floats) -> Floats:
        """Return E C from P(C >= t), levels along the first axis."""
        return np.asarray(self.mean_below * survival[0] + np.tensordot(self.weights, survival, 1))

    def spread(self, survival: Floats) -> Floats:
        """Return the standard deviation of C."""
        square = self.square_below * survival[0] + np.tensordot(2 * self.levels * self.weights, survival, 1)
        return np.asarray(np.sqrt(np.maximum(square - self.mean(survival) ** 2, 0.0)))


def level_grid(level: float, deviation: float, reach: float = NORMAL) -> LevelGrid:
    """Return the levels for a coverage near ``level`` whose logit has about the standard deviation ``deviation``.

    >>> grid = level_grid(0.9, 0.1)
    >>> survival = (grid.levels <= 0.9).astype(float)  # a step instead of a smooth law: right to the spacing
    >>> abs(float(grid.mean(survival)) - 0.9) < 0.01
    True
    """
    from scipy.special import expit

    centre = math.log(level) - math.log1p(-level)
    spacing = min(SPACING, NARROW * deviation)
    steps = math.ceil(min(reach * deviation + TAIL * deviation * deviation, 2 * TAIL) / spacing)
    x = centre + spacing * np.arange(-steps, steps + 1)
    levels = expit(x)
    below = x[0] - spacing * np.arange(1, max(math.ceil((x[0] + TAIL + 4) / spacing), 1) + 1)
    lower = expit(below)
    known = spacing * lower * expit(-below)
    weights = spacing * levels * expit(-x)
    return LevelGrid(levels, weights, float(known.sum()), float((2 * lower * known).sum()))

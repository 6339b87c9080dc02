"""Where a stage asks: a middle point that gets most records, and side points that keep the slope known.

With noise ``e`` (the error of the distribution function from all records so far) and a mass offset ``a``, side points
at ``a / slope`` make the slope's relative error ``e / (a sqrt(side))``. The offset falls like ``e^(1/3)``, which
balances that noise against the curvature; the side share ``2.5 e / a`` minimises the length of the interval.
"""

import math
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats

WIDEST = 0.4  # of the tail: the largest mass offset
FALL = 1.5  # offset = FALL * tail * (noise / tail)^(1/3)
CURVE = 1.0  # allowance for the cubic term: relative slope error CURVE * (offset / tail)^2, as in a hyperbolic tail
# five points: slope noise is three times that of three points with the same reach, so more records go to the sides
NARROWER, OUTER = 0.85, 0.12
SLOPE_ERROR = 0.2  # allowance for what five points still miss between two modes
BENT = 0.4  # more of it, for each unit by which the shoulders were seen to be steeper


class Layout(NamedTuple):
    """A stage to be asked: spacing, points in spacings, parts of the stage's records, allowance at one spacing."""

    spacing: float
    offsets: Floats
    parts: Floats
    allowance: float


def three(noise: float, tail: float, slope: float, widest: float) -> Layout:
    """Lay out three points."""
    offset = _offset(noise, tail)
    side = min(max(2.5 * noise / offset, 0.03), 0.4)
    parts = np.array([side, 2 - 2 * side, side]) / 2
    return Layout(min(offset / slope, widest), np.array([-1.0, 0.0, 1.0]), parts, CURVE * tail * (offset / tail) ** 3)


def five(noise: float, tail: float, slope: float, widest: float, shrink: float) -> Layout:
    """Lay out five points, whose polynomial sees a cubic term too; narrower where the shoulders are steep."""
    offset = NARROWER * shrink * _offset(noise, tail)
    side = min(max(5.0 * noise / offset, 0.05), 0.5)
    parts = np.array([side * OUTER, side * (1 - OUTER), 2 - 2 * side, side * (1 - OUTER), side * OUTER]) / 2
    spacing = min(offset / (2 * slope), widest)
    # four: the product of the distances to the other nodes, in spacings, at the middle node
    allowance = max(CURVE * tail * (offset / tail) ** 3, SLOPE_ERROR * slope * spacing) / 4
    return Layout(spacing, np.arange(-2.0, 3.0), parts, allowance)


def _offset(noise: float, tail: float) -> float:
    return tail * min(WIDEST, FALL * math.pow(noise / tail, 1 / 3))

"""Where the points of a stage lie, and how its records are divided between them.

A stage asks at a middle point, which gets most records, and at side points, which keep the slope known. With noise
``e`` (the error of the distribution function from all records so far) and a mass offset ``a``, side points at ``a /
slope`` make the slope's relative error ``e / (a sqrt(side))``. The offset falls like ``e^(1/3)``, which balances that
noise against the curvature; the side share ``2.5 e / a`` minimises the length of the interval. A pair lies closer, and
sees the slope next to the quantile.
"""

import math
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.server.quantile.asking import Decoded

WIDEST = 0.4  # of the tail: the largest mass offset
FALL = 1.5  # offset = FALL * tail * (noise / tail)^(1/3)
CURVE = 1.0  # allowance for the cubic term: relative slope error CURVE * (offset / tail)^2, as in a hyperbolic tail
# five points: slope noise is three times that of three points with the same reach, so more records go to the sides
NARROWER, OUTER = 0.85, 0.12
SLOPE_ERROR = 0.2  # allowance for what five points still miss between two modes
NEAR = 6.5  # errors of all records so far: offset of a pair that looks at the shape close to the quantile
CURVED = 0.6  # what a straight line may leave out of a bend that the lens has not straightened, of offset^2 / tail


class Layout(NamedTuple):
    """A stage to be asked: spacing, points in spacings, parts of the stage's records, allowance at one spacing."""

    spacing: float
    offsets: Floats
    parts: Floats
    allowance: float


def three(noise: float, tail: float, slope: float, widest: float) -> Layout:
    """Lay out three points."""
    offset = mass_offset(noise, tail)
    side = min(max(2.5 * noise / offset, 0.03), 0.4)
    parts = np.array([side, 2 - 2 * side, side]) / 2
    return Layout(min(offset / slope, widest), np.array([-1.0, 0.0, 1.0]), parts, CURVE * tail * (offset / tail) ** 3)


def five(noise: float, tail: float, slope: float, widest: float, shrink: float) -> Layout:
    """Lay out five points, whose polynomial sees a cubic term too; narrower where the shoulders are steep."""
    offset = NARROWER * shrink * mass_offset(noise, tail)
    side = min(max(5.0 * noise / offset, 0.05), 0.5)
    parts = np.array([side * OUTER, side * (1 - OUTER), 2 - 2 * side, side * (1 - OUTER), side * OUTER]) / 2
    spacing = min(offset / (2 * slope), widest)
    # four: the product of the distances to the other nodes, in spacings, at the middle node
    allowance = max(CURVE * tail * (offset / tail) ** 3, SLOPE_ERROR * slope * spacing) / 4
    return Layout(spacing, np.arange(-2.0, 3.0), parts, allowance)


def pair(noise: float, tail: float, slope: float, widest: float) -> Layout:
    """Lay out two points close to the quantile: all their records count, and they see the slope there."""
    offset = NEAR * noise
    spacing = min(offset / slope, widest)
    return Layout(spacing, np.array([-1.0, 1.0]), np.array([0.5, 0.5]), CURVED * (slope * spacing) ** 2 / tail)


def mass_offset(noise: float, tail: float) -> float:
    """Return the mass between the middle and a side point."""
    return tail * min(WIDEST, FALL * math.pow(noise / tail, 1 / 3))


class KeptStage(NamedTuple):
    """An answered stage: its points as the lens shows them, and its allowance."""

    heard: Decoded
    places: Floats
    spacing: float
    allowance: float
    origin: float
    bend: float

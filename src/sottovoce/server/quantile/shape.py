"""Does a stage contradict a smooth density? The alarms of the default, which then certifies with what is left.

Each compares what a stage saw with what the stages before it let one expect: its middle, its slope next to that of the
pilot and of the stages before the pairs, and the mass between its points. So atoms, edges, valleys and gaps show. A
stage that the last one contradicts is not thrown away but allowed a larger error of its own slope.
"""

import math
from collections.abc import Sequence

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.inference.quantile.inversion import STRAIGHT, Stage, information, through
from sottovoce.server.quantile.asking import Decoded
from sottovoce.server.quantile.layouts import KeptStage, Layout

SURPRISE, RATIO, DOUBT = 4.0, 2.7, 0.15  # alarms: errors of a middle, errors of a slope, and what a slope may change
LEANING = 0.45  # least ratio of the slopes on both sides of a pilot, after the lens
DIP, LATER_DIP = 0.6, 0.45  # of the pilot's slope: a first pair, a later one that is surely less steep is in a valley
UNEVEN, SURELY = 2.5, 3.5  # ratio of a side of three points to the other, or to what was meant, and errors
FAR_SIDE = 3.0  # times the mass that was meant to lie between two points, surely: an atom is between them
BEYOND = 1.25  # errors of a slope: what it is wrong beyond them, its stage is allowed
LOST = 0.4  # of the tail: a middle point further off than this (and four errors) means the pilot was mistaken


def is_lost(heard: Decoded, tau: float) -> bool:
    """Tell whether a stage's middle point lies far from the level."""
    value, variance = _middle(heard)
    return abs(value - tau) > LOST * min(tau, 1 - tau) + 4 * math.sqrt(variance)


def _middle(heard: Decoded) -> tuple[float, float]:
    """Return the value in the middle of a stage, and its variance."""
    half = len(heard.points) // 2
    if len(heard.points) % 2:
        return float(heard.below[half]), float(heard.variances[half])
    return float(heard.below[half - 1 : half + 1].mean()), float(heard.variances[half - 1 : half + 1].sum()) / 4


def is_odd(heard: Decoded, stages: Sequence[Stage], tau: float, centre: float, slope: float, plan: Layout) -> bool:
    """Tell whether a stage contradicts a smooth density: its middle surprises, or its slope is another one."""
    value, variance = _middle(heard)
    _, known = information(stages, centre)
    if abs(value - tau) > SURPRISE * math.sqrt(variance + 1 / known):
        return True
    half = len(heard.points) // 2
    sides = heard.below[[half - 1, -half]]  # the neighbours of the middle, on both sides
    seen = float(sides[1] - sides[0]) / (2 * plan.spacing)
    error = math.sqrt(float(heard.variances[[half - 1, -half]].sum())) / (2 * plan.spacing)
    wide = float(np.ptp(stages[0].mixed[[0, 2]])) / float(np.ptp(stages[0].places[[0, 2]]))
    if len(heard.points) > 2:
        dips, heaps = seen + error < LATER_DIP * wide, seen - 4 * error > FAR_SIDE * slope
        return dips or heaps or (len(heard.points) == 3 and _is_uneven(heard, tau, slope * plan.spacing, 1 / known))
    dip = DIP if all(len(stage.places) > 2 for stage in stages) else LATER_DIP
    return seen + error < dip * wide or abs(seen - slope) > RATIO * math.hypot(error, DOUBT * slope)


def _is_uneven(heard: Decoded, tau: float, meant: float, doubt: float) -> bool:
    """Tell whether one side of three points, alike through the lens, is much steeper, or further off than was meant."""
    off = np.abs(heard.below[[0, 2]] - tau)
    if np.any((off > UNEVEN * meant) & (off - meant > SURELY * np.sqrt(heard.variances[[0, 2]] + doubt))):
        return True
    less, more = sorted(float(mass) for mass in np.diff(heard.below))
    return more > UNEVEN * less and more - less > SURELY * math.sqrt(float(heard.variances @ np.array([1, 4, 1])))


def leans(pilot: Decoded, places: Floats) -> bool:
    """Tell whether a pilot is much steeper on one side than on the other, even through the lens."""
    left, right = (float(slope) for slope in np.diff(pilot.below) / np.diff(places))
    return min(left, right) < LEANING * max(left, right)


def reconsidered(kept: list[KeptStage], centre: float) -> list[KeptStage]:
    """Raise the allowance of stages whose slope at the quantile contradicts that of the last stage."""
    own = [_slope_at(stage, centre) for stage in kept]
    seen, error = own[-1]
    result = []
    for stage, (there, doubt) in zip(kept, own, strict=True):
        wrong = max(0.0, abs(there - seen) - BEYOND * math.hypot(error, doubt))
        part = stage.spacing / (4 if len(stage.places) == 5 else 1)
        result.append(stage._replace(allowance=max(stage.allowance, wrong * part)))
    return result


def _slope_at(stage: KeptStage, at: float) -> tuple[float, float]:
    """Return the slope of a stage's polynomial, seen through its lens, at a point, and the error of it."""
    place, gap = through(at, stage.origin, stage.bend), 1e-3 * stage.spacing
    stretch = math.exp(min(max(stage.bend * (at - stage.origin), -STRAIGHT), STRAIGHT))
    weights = stretch * (_weights(stage.places, place + gap) - _weights(stage.places, place - gap)) / (2 * gap)
    return float(weights @ stage.heard.below), math.sqrt(float(weights**2 @ stage.heard.variances))


def _weights(places: Floats, at: float) -> Floats:
    """Return the weights of Lagrange's polynomial at a point."""
    others = [np.delete(places, j) for j in range(len(places))]
    return np.array([np.prod((at - other) / (place - other)) for place, other in zip(places, others, strict=True)])

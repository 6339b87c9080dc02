"""What one-bit answers beside the point say: how the side of the response changes along the intercept, for whom.

A person asked up or down a step s for one bit about a product (a'x)(b'x), from -1 to 1 over its range of middle m and
half-length r, tells on average (a'x b'x - m) / r (2F - 1) at point +- s. Half the difference of both sides is
2 s (a' H b - m H_00) / r, so the step is the same for everybody, and no weak direction has to be walked along. Of the
ways about the side alone half the sum tells how the distribution function bends there.
"""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.dithered.segments import INTERCEPT_WAYS, Stacked
from sottovoce.protocol.regression.dithered.step import AT_POINT, DOWN, GRADIENT, UP
from sottovoce.protocol.regression.dithered.vech import product
from sottovoce.protocol.regression.questions import LEAST, MOST, STEP

EXACT_SQUARE = 0.5  # mean square of a product over its range, where exact scores are sent
SUREST = 0.05  # of the variance that a bit can have: means are never believed to be surer


class Turned(NamedTuple):
    """For each segment and way of one level, what is asked, and the slope that both sides together tell of it."""

    steps: Floats  # (segments, ways)
    combinations: Floats  # (segments, ways, entries): of the packed H
    values: Floats  # (segments, ways): what they come to, where the distribution function does not bend
    precisions: Floats  # zero where a side was not asked
    sums: Floats  # half the sum of both sides' means


def lines_of(ways: Floats, steps: Floats) -> Floats:
    """Return the combinations of the packed H, or of the moments, that ways ask about, before the step."""
    found = product(ways[..., 0, :], ways[..., 1, :])
    low, high = steps[..., LEAST], steps[..., MOST]
    found[..., 0] -= (low + high) / 2
    return np.asarray(2 * found / (high - low)[..., None])


def turned(told: Stacked, level: int, tau: float, rate: float, moments: Floats, exact: bool) -> Turned:
    """Return what the bits beside the point of one level say; ``moments`` are packed."""
    steps = told.steps[:, level]
    lines = lines_of(told.ways[:, level], steps)
    asked, ones = told.beside[:, 0, :, level], told.beside[:, 1, :, level]
    n = np.maximum(asked, 1e-300)
    means = np.where(asked > 0, (2 * ones / n - 1) / rate, 0.0)
    both = (asked > 0).all(axis=1)
    expected = np.clip((2 * tau - 1) * rate * (lines @ moments), -1.0, 1.0)
    whole = EXACT_SQUARE if exact else 1.0
    variance = np.maximum(whole - expected**2, SUREST * whole) / rate**2
    variance[:, :INTERCEPT_WAYS] = np.maximum(1 - expected[:, :INTERCEPT_WAYS] ** 2, SUREST) / rate**2
    pooled = asked.prod(axis=1) / np.maximum(asked.sum(axis=1), 1e-300)  # one over the sum of one over each side
    precisions = np.where(both, 16 * pooled / variance, 0.0)
    values, sums = (means[:, UP] - means[:, DOWN]) / 4, (means[:, UP] + means[:, DOWN]) / 2
    return Turned(steps[..., STEP], lines * steps[..., STEP, None], values, precisions, sums)


class Curve(NamedTuple):
    """What the intercept's ways tell of the curvature of the first coordinate: its value, and its precision."""

    value: float
    precision: float
    half: float  # mean half square of these ways


def curve_of(told: Stacked, found: Turned, level: int, tau: float, omega: Floats) -> Curve:
    """Return the curvature that the intercept's ways tell, beside people at the point in the same segments."""
    ways = slice(0, INTERCEPT_WAYS)
    people = told.counts[:, AT_POINT]
    gradient = told.vectors[:, GRADIENT, level, 0] / np.maximum(people, 1.0)
    halves = 0.5 * found.steps[:, ways] ** 2
    seen = (found.sums[:, ways] - (2 * tau - 1)) / 2 - gradient[:, None]
    # both sides' sum has four times the variance of a quarter of their difference; half of it is told
    known = found.precisions[:, ways]
    both = people[:, None] + known * float(omega[0, 0])  # in all: one over the sum of both variances
    weights = halves**2 * known * people[:, None] / np.where(both > 0, both, 1.0)
    total = float(weights.sum())
    if not total > 0:
        return Curve(0.0, 0.0, 0.0)
    value = float((weights * seen / np.maximum(halves, 1e-300)).sum()) / total
    return Curve(value, total, float((known * halves).sum() / known.sum()))

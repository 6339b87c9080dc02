"""What one-bit answers beside the point say: how the side of the response changes along a way, and how that bends.

A person asked up or down a way v for one bit about a combination a'x tells, on average, a'x (2F - 1) at point +- v.
Half the difference of both sides is 2 a' H v, and half their sum, beside what people at the point tell, 2 a'c times
half the way's square: c is what curvature adds to the mean gradient.
"""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.dithered.segments import INTERCEPT_WAYS, Stacked
from sottovoce.protocol.regression.dithered.step import AT_POINT, DOWN, GRADIENT, UP
from sottovoce.protocol.regression.questions import ABOUT, WAY

LEAST = 0.05  # of the variance that a bit can have: means are never believed to be surer


class Turned(NamedTuple):
    """For each segment and way of one level, what is asked, and the slope that both sides together tell of it."""

    ways: Floats  # (segments, ways, d)
    about: Floats  # (segments, ways, d)
    values: Floats  # (segments, ways): a' H v, where the distribution function does not bend
    precisions: Floats  # zero where a side was not asked
    sums: Floats  # half the sum of both sides' means


def turned(told: Stacked, level: int, tau: float, rate: float, moments: Floats, exact: bool) -> Turned:
    """Return what the bits beside the point of one level say."""
    ways, about = told.ways[:, level, :, WAY], told.ways[:, level, :, ABOUT]
    asked, ones = told.beside[:, 0, :, level], told.beside[:, 1, :, level]
    n = np.maximum(asked, 1e-300)
    means = np.where(asked > 0, (2 * ones / n - 1) / rate, 0.0)
    both = (asked > 0).all(axis=1)
    expected = np.clip((2 * tau - 1) * rate * (about @ moments[0]), -1.0, 1.0)
    whole = ((about @ moments) * about).sum(axis=2) if exact else 1.0
    variance = np.maximum(whole - expected**2, LEAST * whole) / rate**2
    precisions = np.where(both, 16 / (variance * (1 / n).sum(axis=1)), 0.0)
    values, sums = (means[:, UP] - means[:, DOWN]) / 4, (means[:, UP] + means[:, DOWN]) / 2
    return Turned(ways, about, values, precisions, sums)


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
    halves = 0.5 * found.ways[:, ways, 0] ** 2
    seen = (found.sums[:, ways] - (2 * tau - 1)) / 2 - gradient[:, None]
    # both sides' sum has four times the variance of a quarter of their difference; half of it is told
    known = found.precisions[:, ways]
    variance = 1 / np.maximum(known, 1e-300) + float(omega[0, 0]) / np.maximum(people, 1e-300)[:, None]
    weights = np.where((known > 0) & (people > 0)[:, None], halves**2 / variance, 0.0)
    total = float(weights.sum())
    if not total > 0:
        return Curve(0.0, 0.0, 0.0)
    value = float((weights * seen / np.maximum(halves, 1e-300)).sum()) / total
    return Curve(value, total, float((known * halves).sum() / known.sum()))

r"""Exact coverage and mean length of the Kabaila-Giri interval, for the script that solves its table and for tests.

With the target's variance as unit, `D = 1 + ratio` and `w = d / sqrt(D)`. Given the source, which errs by `t`, the
target errs by `t - sqrt(D) w`, and both edges of the interval are linear in `w` between knots: the errors that are
covered form intervals between exact crossings. Their normal probability is then averaged over the distribution of the
source (Kabaila and Giri 2009).
"""

import math

import numpy as np
from numpy.typing import NDArray

from sottovoce.inference.common.normal import two_sided
from sottovoce.inference.integration.kabaila_giri import PIECES, Row

Array = NDArray[np.float64]

# No difference of estimates that matters lies beyond, in its own standard errors.
BEYOND = 60.0


def coverage(row: Row, level: float, ratio: float, shifts: Array) -> Array:
    """Return the coverage at each shift of the source, in standard errors of the difference."""
    root, error = math.sqrt(1.0 + ratio), math.sqrt(ratio)
    if ratio == 0.0:
        return given_source(row, level, ratio, shifts)
    step = min(0.02, error / 12.0)
    half = np.arange(0.0, root * shifts.max() + 7.0 * error, step)
    values = given_source(row, level, ratio, half)
    source, values = np.concatenate([-half[:0:-1], half]), np.concatenate([values[:0:-1], values])
    weights = density((source - root * shifts[:, None]) / error)
    averages: Array = weights @ values / weights.sum(1)
    return averages


def given_source(row: Row, level: float, ratio: float, source: Array) -> Array:
    """Return the probability of covering when the source errs by the given numbers."""
    from scipy.special import ndtr

    root = math.sqrt(1.0 + ratio)
    knots, move, stretch = knots_to(row.last), np.array(row.move), np.array(row.stretch)
    w = np.concatenate([[-BEYOND], -knots[:0:-1], knots, [BEYOND]])
    move = np.concatenate([[0.0], -move[:0:-1], move, [0.0]]) / root
    half = two_sided(level) * np.concatenate([[1.0], stretch[:0:-1], stretch, [1.0]])
    error = source[:, None] - root * w
    first, last = np.zeros((source.size, w.size - 1)), np.ones((source.size, w.size - 1))
    for room in (half - error - move, half + error + move):
        left, right = room[:, :-1], room[:, 1:]
        crossing = left / np.where(left == right, 1.0, left - right)
        np.maximum(first, crossing, out=first, where=(left < 0) & (right >= 0))
        np.minimum(last, crossing, out=last, where=(left >= 0) & (right < 0))
        last[(left < 0) & (right < 0)] = 0.0
    start, widths = error[:, :-1], root * np.diff(w)
    parts = ndtr(start - widths * first) - ndtr(start - widths * np.maximum(first, last))
    chances: Array = parts.sum(1)
    return chances


def mean_length(row: Row, shifts: Array) -> Array:
    """Return the mean length over the target's own at each shift, in standard errors of the difference."""
    return 1.0 + hat_means(shifts, row.last) @ (np.array(row.stretch) - 1.0)


def hat_means(shifts: Array, last: float) -> Array:
    """Return the mean of each knot's hat function of |w|, for w normal around each shift."""
    from scipy.special import ndtr

    knots = knots_to(last)
    means = np.zeros((shifts.size, knots.size))
    for centre in (shifts, -shifts):
        z = knots - centre[:, None]
        mass = np.diff(ndtr(z))
        above = (-np.diff(density(z)) - z[:, :-1] * mass) / knots[1]
        means[:, 1:] += above
        means[:, :-1] += mass - above
    return means


def knots_to(last: float) -> Array:
    """Return the distances between which the interval's shape is linear."""
    return np.linspace(0.0, last, PIECES + 1)


def density(x: Array) -> Array:
    """Return the standard normal density."""
    values: Array = np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
    return values

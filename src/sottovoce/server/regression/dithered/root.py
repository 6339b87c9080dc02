"""Where the mean gradient of one level is zero: the middle of its intervals, with all that is not known of it.

The root is ``mean point - H^-1 (mean gradient - curvature)`` over all but the first people. Curvature is that which
people asked beside the point saw along the intercept, as if it were the same for all covariates or nearly so, times
half the mean of (x'(point - root))^2: points that swing see a bent distribution function. How many of the first people
are left out is chosen by what it costs: their points were far off, and what is not known of H then moves the root;
without them there are fewer people.
"""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.dithered.knowledge import Knowledge
from sottovoce.protocol.regression.dithered.segments import Tight
from sottovoce.protocol.regression.dithered.spread import moved
from sottovoce.protocol.regression.dithered.step import POINT, SPREAD
from sottovoce.protocol.regression.dithered.study import DitheredTerms

STEEPNESS = 1.5  # the density's slope, in units of density^2 / min(tau, 1 - tau), thought possible
UNLIKE = 0.4  # of that, by which it may differ between covariates
GAIN = 0.01  # of the logarithms of the variances: by so much a larger drop has to be better


class Root(NamedTuple):
    """Where the mean gradient of one level is zero, with the covariance of that place."""

    place: Floats
    covariance: Floats
    gradient: Floats  # what curvature adds to the mean gradient, per unit of square


def square_about(sums: Tight, level: int, place: Floats, moments: Floats) -> float:
    """Return half the mean square of x'(point - place) over the tight people; places are counted from the start."""
    spread = sums.squares[SPREAD, level] / max(sums.looked, 1.0)
    spread = spread + np.tril(spread, -1).T
    mean = sums.vectors[POINT, level] / max(sums.people, 1.0)
    about = spread - np.outer(mean, place) - np.outer(place, mean) + np.outer(place, place)
    return max(0.5 * float(np.trace(moments @ about)), 0.0)


def find_root(study: DitheredTerms, knowledge: Knowledge, level: int) -> Root:
    """Return the root of the regression, without as many of the first people as makes it known best."""
    best, least = None, np.inf
    for sums in knowledge.windows:
        found = _root_of(study, knowledge, level, sums)
        cost = float(np.sum(np.log(np.diag(found.covariance))))
        if cost < least - GAIN:
            best, least = found, cost
    return best if best is not None else _root_of(study, knowledge, level, knowledge.windows[0])


def _root_of(study: DitheredTerms, knowledge: Knowledge, level: int, sums: Tight) -> Root:
    """Return the root over some people, the curvature that the dithers saw taken out."""
    slope, omega, seen = knowledge.slopes[level], knowledge.omegas[level], knowledge.curves[level]
    moments, n = knowledge.moments.matrix, max(sums.people, 1.0)
    point, gradient = sums.vectors[:, level] / n
    inverse = np.asarray(np.linalg.inv(slope.matrix), dtype=np.float64)
    steep = STEEPNESS * slope.density.value**2 / float(study.tails[level])
    variance = 1 / (1 / steep**2 + seen.precision)
    curve = moments[0] * (variance * seen.precision * seen.value)
    left = variance * np.outer(moments[0], moments[0])
    left[1:, 1:] += np.diag((UNLIKE * steep) ** 2 * np.diag(moments)[1:])
    place, square = point - inverse @ gradient, 0.0
    for _ in range(3):
        square = square_about(sums, level, place, moments)
        place = point - inverse @ (gradient - curve * square)
    # what is not known of H moves the root by H^-1 dH H^-1 gradient
    covariance = inverse @ (omega / n + left * square**2) @ inverse.T
    covariance = covariance + moved(inverse, inverse @ (gradient - curve * square), slope.covariance)
    return Root(study.start[level] + place, covariance, curve)

"""Where the mean gradient is zero: a line through what tight people told, without the curvature that dithers saw.

``mean point - H^-1 (mean gradient - curvature x square)``, square being half the mean of (x'(point - root))^2: points
that swing see a bent distribution function, and people asked farther off see more of its curvature.
"""

import math
from dataclasses import dataclass

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.questions import TIGHT
from sottovoce.server.regression.dithered.knowledge import Knowledge
from sottovoce.server.regression.dithered.study import DitheredTerms
from sottovoce.server.regression.dithered.sums import GRADIENT, LOOKED, POINT, SPREAD, Sums

# of the dithers' square: the points' own, up to which the curvature they see is the dithers' (decision 0021)
FAR_OFF = 0.3
STEEPNESS = 1.5  # the density's slope, in units of density^2 / min(tau, 1 - tau), thought possible


@dataclass(frozen=True)
class Root:
    """Where the mean gradient of one level is zero, with the covariance of that place."""

    place: Floats
    covariance: Floats
    gradient: Floats  # what curvature adds to the mean gradient, per unit of square
    nearness: float  # square of the points over square of the dithers
    square: float  # of the points


def square_about(sums: Sums, level: int, place: Floats, knowledge: Knowledge) -> float:
    """Return half the mean square of x'(point - place) over the tight people; places are counted from the start."""
    spread = sums.squares[SPREAD, level] / max(float(sums.counts[LOOKED]), 1.0)
    spread = spread + np.tril(spread, -1).T
    mean = sums.vectors[TIGHT, POINT, level] / max(float(sums.counts[TIGHT]), 1.0)
    about = spread - np.outer(mean, place) - np.outer(place, mean) + np.outer(place, place)
    return max(0.5 * float(np.trace(knowledge.moments.matrix @ about)), 0.0)


def find_root(study: DitheredTerms, knowledge: Knowledge, level: int) -> Root:
    """Return the root of the regression, the curvature that the dithers saw taken out."""
    sums, slope, omega = knowledge.window, knowledge.slopes[level], knowledge.omegas[level]
    n = max(float(sums.counts[TIGHT]), 1.0)
    point, gradient = sums.vectors[TIGHT, :, level] / n
    inverse = np.linalg.inv(slope.matrix)
    place, curve, left = point - inverse @ gradient, np.zeros(study.d), np.zeros(study.d)
    dithers = knowledge.dithers[level]
    far = float(dithers.people @ dithers.square) / 2 / max(float(dithers.people.sum()), 1.0)
    steep = STEEPNESS * slope.density**2 / float(study.tails[level])
    possible = steep**2 * np.diag(knowledge.moments.matrix)
    square = nearness = 0.0
    for _ in range(3):
        square = square_about(sums, level, place, knowledge)
        nearness = square / far if far > 0 else math.inf
        seen, weight = np.zeros(study.d), 0.0
        for size in range(2):
            people, half = float(dithers.people[size]), float(dithers.square[size]) / 2
            if people > 0:
                theirs = knowledge.whole.vectors[1 + size, :, level] / people
                beyond = theirs[GRADIENT] - gradient - slope.matrix @ (theirs[POINT] - point)
                seen += people * half * beyond
                weight += people * half**2
        noise = np.diag(omega) / max(weight, 1e-300)
        left = possible / (1 + possible / noise)
        curve = seen / max(weight, 1e-300) / (1 + noise / possible) if nearness < FAR_OFF else np.zeros(study.d)
        place = point - inverse @ (gradient - curve * square)
    covariance = inverse @ (omega / n + np.diag(left) * square**2) @ inverse.T
    return Root(study.start[level] + place, covariance, curve, nearness, square)

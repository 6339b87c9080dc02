r"""Replications abreast of descent with Laplace noise on the gradient (Song, Chaudhuri and Sarwate 2013).

As in section 4.2 of Cai, Hu and Wu, with one merge per iteration: the common point moves by the mean over sites of
``tau 1(x > q) - (1 - tau) 1(x < q) + Z``, with ``Z`` of scale ``1 / epsilon_k``. Only the sum of the noise matters; a
site's share of it is ``scale (log u - log v)`` with two uniform numbers, so sites of one scale share one logarithm.
"""

import math

import numpy as np

from sottovoce.core.arrays import Floats, Words
from sottovoce.core.kernels import njit
from sottovoce_papers.simulation.federated.abreast import Lanes, Letters, note, toss

TINY = 2.0**-54  # a uniform number is a multiple of 2^-53; this keeps its logarithm finite


@njit(cache=True)
def disturb(total: Floats, words: Words, faces: Floats, quotient: Floats, scales: Floats) -> None:
    """Add the sites' Laplace noise to each lane's total."""
    sites, n = scales.shape[0], total.shape[0]
    for i in range(n):
        quotient[i] = 1.0
    for k in range(sites):
        toss(words, faces)
        for i in range(n):
            quotient[i] *= faces[i] + TINY
        toss(words, faces)
        for i in range(n):
            quotient[i] /= faces[i] + TINY
        if k == sites - 1 or scales[k + 1] != scales[k]:
            for i in range(n):
                total[i] += scales[k] * math.log(quotient[i])
                quotient[i] = 1.0


@njit(cache=True)
def descend(lanes: Lanes, letters: Letters, scales: Floats, tau: float, steps: Floats) -> None:
    """Take some iterations; the letters are truthful, the noise is what keeps them private."""
    points, words, memory, clock = lanes
    chances, low, per, locations, data, _, _ = letters
    n, sites = points.shape[1], scales.shape[0]
    top = chances.shape[1] - 1.000001
    faces, total, quotient, point = np.empty(n), np.empty(n), np.empty(n), points[0]
    first, fixed = np.int64(clock[3]), data.shape[0] > 0
    for m in range(steps.shape[0]):
        for i in range(n):
            total[i] = 0.0
        for k in range(sites):
            if fixed:
                record = data[first + m, k]
                for i in range(n):
                    total[i] += tau if record > point[i] else tau - 1.0
            else:
                toss(words, faces)
                chance, away = chances[k], locations[k]
                for i in range(n):
                    place = min(max((point[i] - away[i] - low) * per, 0.0), top)
                    j = np.int64(place)
                    above = chance[j] + (place - j) * (chance[j + 1] - chance[j])
                    total[i] += tau if faces[i] < above else tau - 1.0
        disturb(total, words, faces, quotient, scales)
        for i in range(n):
            point[i] += steps[m] * total[i] / sites
        note(point, memory, clock, 1.0)

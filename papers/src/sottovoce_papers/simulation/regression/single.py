"""The paper's recursion with one coordinate per report, CQ_X(q, 1), fused with its dice: about 20 ns per update.

Exact shortcuts: randomised response is "the truth with probability kappa, else any letter", and where it is any letter
no record is drawn; the response lies below the fit if ``u <= sigmoid(logit tau + 2 x'delta)``, which is decided without
x where ``u`` is further from tau than ``|x'delta| / 2`` can be, and without the exponential where it is further than it
is. Block and coin share a word, so probabilities hold within 2^-32.
"""

import math

import numpy as np

from sottovoce.core.kernels import njit
from sottovoce_papers.simulation.regression.cell import KernelInput
from sottovoce_papers.simulation.regression.dice import HALF, LOW, halves, roll, unit
from sottovoce_papers.simulation.regression.walk import OFFSET, Walk, extent, segment


@njit(cache=True, nogil=True)
def advance(walk: Walk, given: KernelInput, first: int, last: int, normaliser: bool) -> None:
    """Take the steps first + 1 .. last, overwriting the state."""
    point, moved, ramp, cross, bounds, words, _ = walk
    d = point.shape[0]
    tau, q, _, scale, truth, face_values, _, alone = given
    state = (words[0], words[1], words[2], words[3])
    outside, inside = np.uint64(truth[0] * 2.0**32), np.uint64(truth[1] * 2.0**32)
    choices, letters, faces = np.uint64(d), np.uint64(q), np.uint64(2)
    logit = math.log(tau / (1.0 - tau))
    per_unit = 0.5 * (q - 1) / max(tau, 1.0 - tau)
    x = np.ones(d)
    size = 0.0
    end, anchor, base, slope = -1, 0, 0.0, 0.0
    for i in range(first, last):
        if i >= end:
            end, anchor, base, slope = segment(i)
            size = extent(point)
        step = scale / (base + slope * (i + 1 - anchor) + OFFSET)
        state, word = roll(state)
        spread = (word & LOW) * choices
        j = spread >> HALF
        if word >> HALF >= (inside if j == 0 else outside):
            letter = np.int64(((spread & LOW) * (faces if j == 0 else letters)) >> HALF)
        else:
            state, word = roll(state)
            u = unit(word)
            gap = tau - u
            state, word = roll(state)
            half, fraction = halves(word)
            z = 2.0 * half - 1.0
            below = gap >= 0.0
            if abs(gap) <= 0.5 * size + 1e-9:
                for k in range(1, d, 2):
                    state, word = roll(state)
                    one, two = halves(word)
                    x[k] = 2.0 * one - 1.0
                    if k + 1 < d:
                        x[k + 1] = 2.0 * two - 1.0
                if j > 0:
                    x[j] = z
                distance = point[0]
                for k in range(1, d):
                    distance += x[k] * point[k]
                if abs(gap) <= 0.5 * abs(distance):
                    below = u * (1.0 + math.exp(-logit - 2.0 * distance)) <= 1.0
            if j == 0:
                letter = np.int64(below)
            else:
                score = (1.0 - tau if below else -tau) * z
                letter = min(np.int64(per_unit * score + 0.5 * (q - 1) + fraction), np.int64(q - 1))
        decoded = face_values[letter] if j == 0 else alone[letter]
        old = point[j]
        new = min(max(old - step * decoded, bounds[0, j]), bounds[1, j])
        move = new - old
        m = float(i)
        if normaliser:
            half = 0.5 * move * m * (m - 1.0)
            whole = half * (m + 1.0) / 3.0
            point[j] = old + 0.5 * move
            moved[j] += 0.5 * m * move
            for k in range(d):
                cross[j, k] += whole * point[k] - half * moved[k]
            moved[j] += 0.5 * m * move
            ramp[j] += whole
        else:
            moved[j] += m * move
        point[j] = new
        size += abs(new) - abs(old)
    words[0], words[1], words[2], words[3] = state

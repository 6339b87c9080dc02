"""The paper's recursion with a block of several coordinates a report, CQ_X(q, s), or with none of it private.

The shortcuts are those of `single`. A uniform letter of a product alphabet is a uniform letter of each part, so a block
is spoken of coordinate by coordinate and its alphabet may be of any size.
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
    point, moved, ramp, cross, bounds, words, order = walk
    d = point.shape[0]
    tau, q, s, scale, truth, face_values, within, alone = given
    state = (words[0], words[1], words[2], words[3])
    letters = np.uint64(q)
    logit = math.log(tau / (1.0 - tau))
    radius = max(tau, 1.0 - tau)
    x = np.ones(d)
    size = 0.0
    end, anchor, base, slope = -1, 0, 0.0, 0.0
    for i in range(first, last):
        if i >= end:
            end, anchor, base, slope = segment(i)
            size = extent(point)
        step = scale / (base + slope * (i + 1 - anchor) + OFFSET)
        m = float(i)
        face = s == d
        if not face:  # the first s of a shuffle
            for k in range(s):
                state, word = roll(state)
                other = k + np.int64(((word >> HALF) * np.uint64(d - k)) >> HALF)
                order[k], order[other] = order[other], order[k]
                face |= order[k] == 0
        state, word = roll(state)
        truthful = q == 0 or unit(word) < (truth[1] if face else truth[0])
        state, word = roll(state)
        u = unit(word)
        below = u < 0.5  # any face, unless the record answers truthfully
        if truthful:
            gap = tau - u
            below = gap >= 0.0
            unsure = abs(gap) <= 0.5 * size + 1e-9
            for k in range(0, d if unsure else s, 2):
                state, word = roll(state)
                one, two = halves(word)
                x[order[k]] = 2.0 * one - 1.0
                if k + 1 < d:
                    x[order[k + 1]] = 2.0 * two - 1.0
            x[0] = 1.0
            if unsure:
                distance = 0.0
                for k in range(d):
                    distance += x[k] * point[k]
                if abs(gap) <= 0.5 * abs(distance):
                    below = u * (1.0 + math.exp(-logit - 2.0 * distance)) <= 1.0
        side = np.int64(below)
        sign = 1.0 - tau if below else -tau
        for k in range(s):
            j = order[k]
            if q == 0:
                decoded = sign * x[j]
            elif j == 0:
                decoded = face_values[side]
            else:
                state, word = roll(state)
                if truthful:
                    place = x[j] if face else sign * x[j] / radius
                    letter = min(np.int64(0.5 * (place + 1.0) * (q - 1) + unit(word)), np.int64(q - 1))
                else:
                    letter = np.int64(((word & LOW) * letters) >> HALF)
                decoded = within[side, letter] if face else alone[letter]
            old = point[j]
            new = min(max(old - step * decoded, bounds[0, j]), bounds[1, j])
            move = new - old
            if normaliser:
                half = 0.5 * move * m * (m - 1.0)
                whole = half * (m + 1.0) / 3.0
                point[j] = old + 0.5 * move
                moved[j] += 0.5 * m * move
                for at in range(d):
                    cross[j, at] += whole * point[at] - half * moved[at]
                moved[j] += 0.5 * m * move
                ramp[j] += whole
            else:
                moved[j] += m * move
            point[j] = new
            size += abs(new) - abs(old)
    words[0], words[1], words[2], words[3] = state

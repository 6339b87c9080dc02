r"""Replications abreast of divide and conquer: sites that never exchange anything (section 4.2 of Cai, Hu and Wu).

One merge leaves nothing to normalise by, and the paper does not say what its intervals are. The printed coverage fits
this reading: every site has its own average and its own self-normaliser over its own iterations, and both are averaged
over sites. (The self-normaliser of the averaged path gives .63 in place of .985 where locations differ.)
"""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Words
from sottovoce.core.kernels import njit
from sottovoce_papers.simulation.federated.abreast import Letters, ask_fixed, ask_fresh, toss


class Apart(NamedTuple):
    """What the lanes carry: points (sites, lanes), dice (4, lanes), and average, spread and lean of each site."""

    points: Floats
    words: Words
    averages: Floats
    spreads: Floats
    leans: Floats


def begin_apart(starts: Floats, sites: int, words: Words) -> Apart:
    """Return lanes whose sites all start from the same points."""
    zeros = [np.zeros((sites, len(starts))) for _ in range(3)]
    return Apart(np.tile(starts, (sites, 1)), words, *zeros)


def read_apart(lanes: Apart, iterations: int) -> tuple[Floats, Floats]:
    """Return each lane's estimate and the square root of its self-normaliser, both averaged over sites."""
    spreads = np.maximum(lanes.spreads, 0.0).mean(axis=0) / float(iterations) ** 3
    return lanes.averages.mean(axis=0), np.asarray(np.sqrt(spreads))


@njit(cache=True)
def walk_apart(lanes: Apart, letters: Letters, steps: Floats) -> None:
    """Take all iterations at every site."""
    points, words, averages, spreads, leans = lanes
    chances, low, per, locations, data, rates, moves = letters
    sites, n = points.shape
    faces, ramp, fixed = np.empty(n), 0.0, data.shape[0] > 0
    for t in range(steps.shape[0]):
        done = t + 1.0
        for k in range(sites):
            down, up = steps[t] * moves[k, 0], steps[t] * moves[k, 1]
            toss(words, faces)
            if fixed:
                ask_fixed(points[k], faces, data[t, k], rates[k], down, up)
            else:
                ask_fresh(points[k], faces, chances[k], low, per, locations[k], down, up)
            point, average, spread, lean = points[k], averages[k], spreads[k], leans[k]
            for i in range(n):
                move = (point[i] - average[i]) / done
                average[i] += move
                spread[i] += move * (move * ramp - 2.0 * lean[i])
                lean[i] -= move * ramp
        ramp += done * done

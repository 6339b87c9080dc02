"""Direct Laplace release of the whole score, a baseline: unbiased, but its noise ignores where scores can lie (5)."""

import math
from collections.abc import Sequence

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.kernels import njit
from sottovoce_papers.simulation.regression.designs import Design
from sottovoce_papers.simulation.regression.dice import UNIT, roll, unit
from sottovoce_papers.simulation.regression.geometry import default_scale, diameter, move_all
from sottovoce_papers.simulation.regression.geometry import replicate as run
from sottovoce_papers.simulation.regression.paper import Paths
from sottovoce_papers.simulation.regression.walk import OFFSET, Walk, segment


@njit(cache=True)
def encode(score: Floats, scale: float, u: Floats) -> Floats:
    """Return the score with Laplace noise of a scale, made of uniform numbers in (0, 1).

    Examples
    --------
    >>> encode(np.array([0.25, -0.25]), 2.0, np.array([0.5, 0.5])).tolist()
    [0.25, -0.25]
    """
    report = np.empty_like(score)
    for j in range(score.shape[0]):
        centred = u[j] - 0.5
        tail = -math.log(1.0 - 2.0 * abs(centred))
        report[j] = score[j] + scale * (tail if centred > 0.0 else -tail)
    return report


@njit(cache=True, nogil=True)
def advance(walk: Walk, x: Floats, gaps: Floats, first: int, tau: float, noise: float, step_size: float) -> None:
    """Take one step for each person; ``gaps`` are responses less their true quantiles."""
    point, words = walk.point, walk.words
    state = (words[0], words[1], words[2], words[3])
    d = point.shape[0]
    score, u = np.empty(d), np.empty(d)
    for i in range(first, first + x.shape[0]):
        row = x[i - first]
        ahead = 0.0
        for k in range(d):
            ahead += row[k] * point[k]
        side = 1.0 - tau if gaps[i - first] <= ahead else -tau
        for k in range(d):
            state, word = roll(state)
            u[k] = unit(word) + 0.5 * UNIT
            score[k] = side * row[k]
        _, anchor, base, slope = segment(i)
        step = step_size / (base + slope * (i + 1 - anchor) + OFFSET)
        move_all(walk, encode(score, noise, u), step, float(i))
    words[0], words[1], words[2], words[3] = state


def replicate(
    design: Design,
    tau: float,
    epsilon: float,
    horizons: Sequence[int],
    replications: int = 2,
    seed: int = 1,
    scale: float | None = None,
) -> Paths:
    """Run the recursion with direct Laplace releases many times, seeded.

    Parameters
    ----------
    design
        Who is asked.
    tau, epsilon
        Level and budget.
    horizons
        After how many reports to look, ascending.
    replications, seed
        How many times, and where their seeds come from.
    scale
        The constant of the step, which the paper does not print; None: that of CQ_X(2, 1).

    Examples
    --------
    >>> from sottovoce_papers.simulation.regression.designs import paper
    >>> replicate(paper(2), 0.5, 2.0, (100, 200)).errors.shape
    (2, 2)
    """
    noise = diameter(tau, design.p) / epsilon
    step_size = default_scale(tau, design.p, epsilon) if scale is None else scale

    def piece(walk: Walk, x: Floats, gaps: Floats, first: int) -> None:
        advance(walk, x, gaps, first, tau, noise, step_size)

    return run(design, tau, piece, horizons, replications, seed)

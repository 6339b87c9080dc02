"""What the two releases of a whole score share: its l1 diameter (4), the step, and a recursion over drawn people."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.kernels import njit
from sottovoce_papers.simulation.regression import walk as w
from sottovoce_papers.simulation.regression.designs import Design
from sottovoce_papers.simulation.regression.dice import seeded
from sottovoce_papers.simulation.regression.paper import Paths
from sottovoce_papers.simulation.regression.walk import Walk

PIECE = 1 << 14  # people drawn at a time

Advance = Callable[[Walk, Floats, Floats, int], None]
"""Takes the state, the covariates with their leading 1, responses less true quantiles, and the reports before them."""


def diameter(tau: float, p: int) -> float:
    """Return the largest l1 distance between two scores (4).

    Examples
    --------
    >>> diameter(0.75, 2), diameter(0.75, 8)
    (3.0, 12.0)
    """
    return max(p + 1.0, 2.0 * p * max(tau, 1.0 - tau))


def default_scale(tau: float, p: int, epsilon: float) -> float:
    """Return a step constant for these releases: the paper prints none; this is that of CQ_X(2, 1), normalised."""
    return 10.0 * math.tanh(epsilon / 2.0) / (2.0 * max(tau, 1.0 - tau) * (p + 1))


@njit(cache=True)
def move_all(walk: Walk, gradient: Floats, step: float, m: float) -> None:
    """Move every coordinate at step m + 1, stopping at the bounds."""
    for j in range(walk.point.shape[0]):
        old = walk.point[j]
        new = min(max(old - step * gradient[j], walk.bounds[0, j]), walk.bounds[1, j])
        walk.point[j] = new
        walk.moved[j] += m * (new - old)


def replicate(
    design: Design, tau: float, advance: Advance, horizons: Sequence[int], replications: int, seed: int
) -> Paths:
    """Run a release many times on people drawn from a design, without the self-normaliser."""
    d, beta = design.p + 1, design.beta
    deviations = np.zeros((replications, len(horizons), d))
    for r, sequence in enumerate(np.random.SeedSequence(seed).spawn(replications)):
        people, noise = sequence.spawn(2)
        generator = np.random.Generator(np.random.PCG64DXSM(people))
        state, done = w.begin(beta, np.zeros(d), seeded(noise)), 0
        for at, n in enumerate(horizons):
            while done < n:
                size = min(n - done, PIECE)
                z, y = design.sample(generator, size, tau)
                x = np.column_stack([np.ones(size), z])
                with np.errstate(over="ignore"):  # words wrap around, which only matters where nothing is compiled
                    advance(state, x, y - np.einsum("ij,j->i", x, beta), done)
                done += size
            deviations[r, at] = w.average(state, n)
    return Paths(tuple(horizons), deviations, np.zeros((replications, len(horizons), d, d)))

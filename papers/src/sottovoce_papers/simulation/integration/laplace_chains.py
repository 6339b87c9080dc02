"""DPSGD of the paper on data integration: a site's parallel chains with Laplace noise on the gradient.

Appendix B.1 has ``theta <- theta - eta (tau - 1(x <= theta) + Z)``, which runs away; the indicator and the level change
places here. The noise has scale ``1 / epsilon``, none at rate 1; estimate and variance are those of (3.7).
"""

import math

import numpy as np

from sottovoce.core.arrays import Floats, Words
from sottovoce.core.kernels import njit
from sottovoce.protocol.randomised_response import epsilon_of_rate
from sottovoce_papers.simulation.integration.paper_chains import FINE, LANES, REACH, PaperSite, Replicated, below_table
from sottovoce_papers.simulation.regression.dice import halves, roll

LEAST = 2.0**-33  # keeps the two halves of a word off the ends of the unit interval


def replicate_laplace(site: PaperSite, replications: int, seed: int | np.random.SeedSequence) -> Replicated:
    """Run a site's chains with Laplace noise, many times, seeded.

    Parameters
    ----------
    site
        What is run.
    replications
        How many times.
    seed
        Where the words come from.

    Examples
    --------
    >>> runs = replicate_laplace(PaperSite(400, 4), 3, seed=1)
    >>> runs.estimates.shape, bool((runs.variances > 0).all())
    ((3,), True)
    """
    each = max(1, LANES // site.chains)
    sizes = [min(each, replications - done) for done in range(0, replications, each)]
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    table, length = below_table(site.family), site.n // site.chains
    steps: Floats = site.constant * np.arange(1.0, length + 1.0) ** -site.power
    scale = 0.0 if site.rate >= 1 else 1 / epsilon_of_rate(site.rate)
    averages = []
    for size, child in zip(sizes, sequence.spawn(len(sizes)), strict=True):
        lanes = size * site.chains
        words = child.generate_state(4 * lanes, np.uint64).astype(np.uint64).reshape(4, lanes)
        points, totals = np.full(lanes, site.start - site.shift), np.zeros(lanes)
        with np.errstate(over="ignore"):  # words wrap around, which only matters where nothing is compiled
            walk_laplace(words, table, steps, scale, site.tau, points, totals)
        averages.append(totals.reshape(size, site.chains) / length + site.shift)
    chains = np.concatenate(averages)
    return Replicated(chains.mean(1), chains.var(1, ddof=1) / site.chains)


@njit(cache=True, nogil=True)
def walk_laplace(
    words: Words, table: Floats, steps: Floats, scale: float, tau: float, points: Floats, totals: Floats
) -> None:
    """Take all steps of all lanes; add up the points they lead to."""
    a, b, c, d = words[0], words[1], words[2], words[3]
    middle = float(REACH * FINE)
    for t in range(len(steps)):
        step = steps[t]
        for i in range(len(points)):
            (a[i], b[i], c[i], d[i]), word = roll((a[i], b[i], c[i], d[i]))
            first, second = halves(word)
            place = min(max(points[i] * FINE + middle, 0.0), 2.0 * middle)
            cell = np.int64(place)
            below = table[cell] + (place - cell) * (table[cell + 1] - table[cell])
            gradient = (1.0 if first + LEAST < below else 0.0) - tau
            if scale > 0.0:
                centred = 2.0 * (second + LEAST) - 1.0
                tail = -math.log(1.0 - abs(centred))
                gradient += scale * (tail if centred > 0.0 else -tail)
            points[i] -= step * gradient
            totals[i] += points[i]

"""The target alone, as Liu et al. (2023) do and the paper on data integration compares: one chain, self-normalised.

All records of a site walk one after another, by the step of (3.4). With ``S_s`` the sum of the first ``s`` points and
``Q = S_n / n`` the interval is ``Q +- v sqrt(sum_s (S_s - s Q)^2 / n^3)``, where ``v`` is 6.747 at 95 %.
"""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Words
from sottovoce.core.kernels import njit
from sottovoce.inference.self_normalised.critical_values import critical_value
from sottovoce_papers.simulation.integration.paper_chains import FINE, LANES, REACH, PaperSite, below_table
from sottovoce_papers.simulation.regression.dice import roll, unit


class Alone(NamedTuple):
    """One number a replication: the average of the points, and half the length of its interval."""

    estimates: Floats
    halves: Floats


def replicate_alone(
    site: PaperSite, replications: int, seed: int | np.random.SeedSequence, level: float = 0.95
) -> Alone:
    """Run one chain over all records of a site, many times, seeded; how many chains the site has does not matter.

    Parameters
    ----------
    site
        What is run.
    replications
        How many times.
    seed
        Where the words come from.
    level
        The confidence level.

    Examples
    --------
    >>> runs = replicate_alone(PaperSite(400, 2), 3, seed=1)
    >>> runs.estimates.shape, bool((runs.halves > 0).all())
    ((3,), True)
    """
    sizes = [min(LANES, replications - done) for done in range(0, replications, LANES)]
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    table, steps = below_table(site.family), site.constant * np.arange(1.0, site.n + 1.0) ** -site.power
    blocks = []
    for lanes, child in zip(sizes, sequence.spawn(len(sizes)), strict=True):
        words = child.generate_state(4 * lanes, np.uint64).astype(np.uint64).reshape(4, lanes)
        # Points are distances from the true quantile: the squares below then lose no digits.
        zero = site.truth - site.shift
        points, sums = np.full(lanes, site.start - site.shift - zero), np.zeros((3, lanes))
        with np.errstate(over="ignore"):  # words wrap around, which only matters where nothing is compiled
            walk_alone(words, table, steps, site.rate, site.tau, zero, points, sums)
        blocks.append(sums)
    total, squares, leans = np.concatenate(blocks, axis=1)
    n = float(site.n)
    average = total / n
    spread = squares - 2 * average * leans + average**2 * n * (n + 1) * (2 * n + 1) / 6
    return Alone(site.truth + average, critical_value(level) * np.sqrt(spread / n**3))


@njit(cache=True, nogil=True)
def walk_alone(
    words: Words, table: Floats, steps: Floats, rate: float, tau: float, zero: float, points: Floats, sums: Floats
) -> None:
    """Take all steps of all lanes; fill the sums of the points, of their partial sums' squares, and of ``s S_s``."""
    a, b, c, d = words[0], words[1], words[2], words[3]
    low, middle = (1.0 - rate) / 2.0, float(REACH * FINE)
    target = low + rate * tau
    total, squares, leans = sums[0], sums[1], sums[2]
    for t in range(len(steps)):
        step, number = steps[t], t + 1.0
        for i in range(len(points)):
            (a[i], b[i], c[i], d[i]), word = roll((a[i], b[i], c[i], d[i]))
            place = min(max((points[i] + zero) * FINE + middle, 0.0), 2.0 * middle)
            cell = np.int64(place)
            below = table[cell] + (place - cell) * (table[cell + 1] - table[cell])
            letter = 1.0 if unit(word) < low + rate * below else 0.0
            points[i] -= step * (letter - target)
            total[i] += points[i]
            squares[i] += total[i] * total[i]
            leans[i] += number * total[i]

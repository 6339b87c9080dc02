"""Replications of one site's parallel chains, (3.6) and (3.7) of the paper on data integration, in its own setting.

A record answers once, so its letter depends on the query alone: "at or below" is heard with probability
``(1 - r) / 2 + r F(point)``, and one uniform number decides. Chains, of as many replications as fit the processor's
cache, are the lanes of one loop. ``F`` is interpolated in a table, within 2e-7 where it bends most.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Words
from sottovoce.core.errors import BadInput
from sottovoce.core.kernels import njit
from sottovoce_papers.simulation.families import FAMILIES
from sottovoce_papers.simulation.regression.dice import roll, unit

REACH, FINE = 64, 512  # the table goes from -REACH to REACH; beyond it the distribution is as at its end
LANES = 320


@dataclass(frozen=True)
class PaperSite:
    """A site as the paper simulates it: ``shift`` is the median of its records, whose scale is one."""

    n: int
    chains: int
    shift: float = 0.0
    family: str = "normal"
    rate: float = 0.5
    tau: float = 0.5
    power: float = 0.6
    constant: float = 1.0
    start: float = 0.0

    def __post_init__(self) -> None:
        if self.family not in ("normal", "cauchy"):
            raise BadInput(f"the paper draws normal or cauchy records, not {self.family!r}; choose one.")
        if not 2 <= self.chains <= self.n:
            raise BadInput(f"{self.n} records cannot be dealt to {self.chains} chains; give 2 chains to one a record.")

    @property
    def truth(self) -> float:
        """Return the quantile of the site."""
        return self.shift + float(FAMILIES[self.family][2](self.tau))


class Replicated(NamedTuple):
    """One number a replication: the average of the chains, and its estimated variance, (3.7) over n."""

    estimates: Floats
    variances: Floats


def replicate(site: PaperSite, replications: int, seed: int | np.random.SeedSequence, threads: int = 2) -> Replicated:
    """Run a site many times, seeded.

    Parameters
    ----------
    site
        What is run.
    replications
        How many times.
    seed
        Where the words come from; the number of threads does not matter.
    threads
        How many blocks of replications run at once.

    Examples
    --------
    >>> runs = replicate(PaperSite(400, 4), 3, seed=1)
    >>> runs.estimates.shape, bool((runs.variances > 0).all())
    ((3,), True)
    """
    each = max(1, LANES // site.chains)
    sizes = [min(each, replications - done) for done in range(0, replications, each)]
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    table = below_table(site.family)
    length = site.n // site.chains
    steps: Floats = site.constant * np.arange(1.0, length + 1.0) ** -site.power

    def block(task: tuple[int, np.random.SeedSequence]) -> Floats:
        size, child = task
        lanes = size * site.chains
        words = child.generate_state(4 * lanes, np.uint64).astype(np.uint64).reshape(4, lanes)
        points, totals = np.full(lanes, site.start - site.shift), np.zeros(lanes)
        with np.errstate(over="ignore"):  # words wrap around, which only matters where nothing is compiled
            walk(words, table, steps, site.rate, site.tau, points, totals)
        return totals.reshape(size, site.chains) / length + site.shift

    with ThreadPoolExecutor(threads) as pool:
        averages = np.concatenate(list(pool.map(block, zip(sizes, sequence.spawn(len(sizes)), strict=True))))
    return Replicated(averages.mean(1), averages.var(1, ddof=1) / site.chains)


def below_table(family: str) -> Floats:
    """Return the distribution function of a family at every 1 / FINE from -REACH to REACH, and one entry to spare."""
    return np.append(FAMILIES[family][0](np.arange(-REACH * FINE, REACH * FINE + 1) / FINE), 1.0)


@njit(cache=True, nogil=True)
def walk(words: Words, table: Floats, steps: Floats, rate: float, tau: float, points: Floats, totals: Floats) -> None:
    """Take all steps of all lanes; add up the points they lead to."""
    a, b, c, d = words[0], words[1], words[2], words[3]
    low, middle = (1.0 - rate) / 2.0, float(REACH * FINE)
    target = low + rate * tau
    for t in range(len(steps)):
        step = steps[t]
        for i in range(len(points)):
            (a[i], b[i], c[i], d[i]), word = roll((a[i], b[i], c[i], d[i]))
            place = min(max(points[i] * FINE + middle, 0.0), 2.0 * middle)
            cell = np.int64(place)
            below = table[cell] + (place - cell) * (table[cell + 1] - table[cell])
            letter = 1.0 if unit(word) < low + rate * below else 0.0
            points[i] -= step * (letter - target)
            totals[i] += points[i]

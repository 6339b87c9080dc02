"""What a private site measures of its own quantile, many times over, with fresh records each time."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.server.integration.combine import measured_of
from sottovoce.server.quantile.solutions import CertifiedSolution, staged_solution
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.experiment import StagedCell, converse_fresh
from sottovoce_papers.simulation.populations import Population, evenly


@dataclass(frozen=True, eq=False)
class SiteCell:
    """One site: its distribution, level, response rate and size."""

    distribution: Population
    tau: float
    rate: float
    size: int

    @property
    def staged(self) -> StagedCell:
        """Return the same as a study of one site."""
        return StagedCell(self.distribution.name, evenly([self.distribution]), self.tau, (self.rate,), (self.size,))


class Pool(NamedTuple):
    """Replications of a site, relative to its true quantile; a lost one is NaN."""

    estimate: Floats
    error: Floats
    df: Floats
    low: Floats
    high: Floats

    @property
    def kept(self) -> Floats:
        """Tell which replications were not lost."""
        return np.isfinite(self.estimate)


def fill(site: SiteCell, replications: int, seed: int, level: float = 0.95) -> Pool:
    """Measure a site again and again.

    Examples
    --------
    >>> from sottovoce_papers.simulation.populations import population
    >>> pool = fill(SiteCell(population("logistic"), 0.5, 0.5, 20_000), 2, seed=1)
    >>> bool(np.all(pool.low < pool.estimate) and np.all(pool.estimate < pool.high))
    True
    """
    cell, generator = site.staged, dice(seed).generator()
    rows = np.full((replications, 5), np.nan)
    for i in range(replications):
        solution = staged_solution(converse_fresh(cell, generator, watch=False)[0])
        if isinstance(solution, CertifiedSolution):  # such a site is left out
            continue
        measured, (low, high) = measured_of(solution), solution.interval(level)
        rows[i] = measured.estimate, measured.std_error, measured.df, low, high
    truth = cell.truth
    rows[:, [0, 3, 4]] -= truth
    return Pool(*np.ascontiguousarray(rows.T))

"""Replications of one cell of a table, with fresh records each time, on a few threads.

Records are drawn piece by piece and go straight into the kernel of `local.quantile.compiled_walk`, so that a
replication is the method itself, not a model of it, and needs no memory for a data set.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.inference.quantile.asymptotic import standard_error
from sottovoce.local.quantile import compiled_walk as fused
from sottovoce.local.quantile.compiled_walk import Coin
from sottovoce.local.quantile.source import Faces
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.randomised_response import binary, epsilon_of_rate
from sottovoce.server.quantile.recursion.schedule import StepSize, decay, elapsed
from sottovoce.server.quantile.recursion.walk import WalkState, WalkStudy, horizon
from sottovoce.sim.randomness import SeededSource, dice
from sottovoce_papers.simulation.families import Generator
from sottovoce_papers.simulation.populations import Mixture, Population

T = TypeVar("T")


class Fresh:
    """A site whose records are drawn when they are needed."""

    def __init__(self, distribution: Population, n: int, channel: Channel, generator: Generator) -> None:
        self._distribution, self._generator = distribution, generator
        self._lowest = np.uint64(channel.weights[0][1] << 2)
        self.left = n

    def fetch(self, values: Floats, faces: Faces) -> int:
        """Draw the next records and their coins."""
        n = min(len(values), self.left)
        values[:n] = self._distribution.sample(self._generator, n)
        words = self._generator.bit_generator.random_raw(n)
        np.greater_equal(words, self._lowest, out=faces[:n], casting="unsafe")
        faces[:n] += words > ~self._lowest
        self.left -= n
        return n


@dataclass(frozen=True, eq=False)
class Cell:
    """One cell of a table: who draws what, how it is asked, and from where (``start`` None: standard normal).

    ``unit`` and ``constant`` set the paper's step rule; ``step_size`` replaces it.
    """

    sites: Mixture
    tau: float
    rates: tuple[float, ...]
    records: int
    schedule: str = "every:1"
    start: float | None = None
    unit: float = 1.0
    constant: float = 20.0
    step_size: StepSize | None = None
    participation: float = 1.0
    mixing: Floats | None = None
    burn: float = 0.05

    @property
    def truth(self) -> float:
        """Return the quantile that is estimated."""
        return self.sites.quantile(self.tau)

    @property
    def bound(self) -> float:
        """Return the standard error of Theorem 3.1 with nu = 1."""
        at, n = self.truth, len(self.rates)
        counts = np.full(n, float(self.records))
        rates = np.array(self.rates)
        return standard_error(self.sites.probabilities(at), self.sites.densities(at), rates, self.sites.shares, counts)

    def study(self, start: float) -> WalkStudy:
        """Return the study of one replication."""
        n = len(self.rates)
        longest = int(elapsed(self.schedule, self.records).max())
        return WalkStudy(
            np.full(n, self.tau),
            self.sites.shares,
            tuple(binary(epsilon_of_rate(rate)) for rate in self.rates),
            np.full(n, self.records, dtype=np.int64),
            elapsed(self.schedule, horizon(self.records, n, self.participation, longest)),
            start,
            decay(self.rates, self.unit, self.constant) if self.step_size is None else self.step_size,
            self.mixing,
            self.participation,
            self.burn,
        )


def replicate(
    cell: Cell, keep: Callable[[WalkStudy, WalkState], T], replications: int, seed: int, threads: int = 2
) -> list[T]:
    """Run a cell many times; return what is kept of each end.

    Parameters
    ----------
    cell
        What is run.
    keep
        What to compute from the study and its last state.
    replications
        How many times.
    seed
        Where the replications' own seeds come from; the number of threads does not matter.
    threads
        How many run at once.

    Examples
    --------
    >>> from sottovoce_papers.simulation.populations import homogeneous, population
    >>> cell = Cell(homogeneous(population("normal"), 2), 0.5, (0.5, 0.5), 200)
    >>> replicate(cell, lambda study, state: state.iteration, 3, seed=1)
    [200, 200, 200]
    """
    study = cell.study(0.0)

    def once(die: SeededSource) -> T:
        generator = die.generator()
        start = generator.standard_normal() if cell.start is None else cell.start
        sources = [
            Fresh(distribution, cell.records, channel, generator)
            for distribution, channel in zip(cell.sites.populations, study.channels, strict=True)
        ]
        return keep(study, fused.run(study, sources, Coin(study, die), start=float(start)))

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(once, dice(seed).split(replications)))

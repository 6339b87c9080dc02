"""Replications of the paper's recursion at a list of horizons, on a few threads, in the paper's own design."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce_papers.simulation.regression import block, single, walk
from sottovoce_papers.simulation.regression.cell import Cell
from sottovoce_papers.simulation.regression.dice import seeded

HORIZONS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
"""Where the paper looks, as far as a million (its last is 3e8)."""


class Paths(NamedTuple):
    """Averages (replications, horizons, d) less the truth, and their self-normalisers (16), which are 0 if not kept."""

    horizons: tuple[int, ...]
    deviations: Floats
    normalisers: Floats

    @property
    def errors(self) -> Floats:
        """Return the Euclidean distances from the truth, (replications, horizons)."""
        return np.asarray(np.linalg.norm(self.deviations, axis=2))

    def ratios(self) -> Floats:
        """Return the self-normalised statistics of the coordinates (17), (replications, horizons, d)."""
        variances = np.diagonal(self.normalisers, axis1=2, axis2=3) / np.array(self.horizons)[:, None]
        return np.asarray(self.deviations / np.sqrt(variances))


def replicate(
    cell: Cell,
    horizons: Sequence[int] = HORIZONS,
    replications: int = 2,
    seed: int = 1,
    *,
    normaliser: bool = True,
    threads: int = 2,
) -> Paths:
    """Run a cell many times, seeded.

    Parameters
    ----------
    cell
        What is run.
    horizons
        After how many reports to look, ascending.
    replications
        How many times.
    seed
        Where the replications' own seeds come from; neither threads nor horizons change a replication.
    normaliser
        Whether to keep the self-normaliser too.
    threads
        How many replications run at once.

    Examples
    --------
    >>> paths = replicate(Cell(0.5, 2, 2.0), (100, 300), replications=3, seed=1)
    >>> paths.errors.shape, paths.ratios().shape
    ((3, 2), (3, 2, 3))
    """
    looks = tuple(int(n) for n in horizons)
    if not looks or looks[0] < 1 or list(looks) != sorted(set(looks)):
        raise BadInput(f"horizons must be positive and ascend, not {looks}; sort them.")
    given, beta = cell.kernel_input(), cell.beta
    start = np.zeros(cell.p + 1) if cell.start is None else np.array(cell.start, dtype=np.float64)
    advance = single.advance if cell.private and cell.s == 1 else block.advance
    sequences = np.random.SeedSequence(seed).spawn(replications)
    deviations = np.zeros((replications, len(looks), cell.p + 1))
    normalisers = np.zeros((replications, len(looks), cell.p + 1, cell.p + 1))

    def once(r: int) -> None:
        state, done = walk.begin(beta, start, seeded(sequences[r])), 0
        with np.errstate(over="ignore"):  # words wrap around, which only matters where nothing is compiled
            for at, n in enumerate(looks):
                advance(state, given, done, n, normaliser)
                deviations[r, at] = walk.average(state, n)
                if normaliser:
                    normalisers[r, at] = walk.normaliser(state, n)
                done = n

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(once, range(replications)))
    return Paths(looks, deviations, normalisers)

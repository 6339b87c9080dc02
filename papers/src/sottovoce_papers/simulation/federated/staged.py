"""Replications of the package's own default, the staged design, in the paper's scenes."""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import SearchFailed
from sottovoce.server.quantile.solutions import staged_solution
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.experiment import StagedCell, converse_fresh
from sottovoce_papers.simulation.federated.scene import SITES, Scene


class Found(NamedTuple):
    """What the runs that found their quantile say, how many rounds they took, and how many were lost."""

    points: Floats
    lows: Floats
    highs: Floats
    rounds: Floats
    lost: int


def staged(scene: Scene, records: int, replications: int, seed: int, level: float = 0.95) -> Found:
    """Replicate the staged design with fresh records.

    Parameters
    ----------
    scene
        Sites, level and rates.
    records
        How many records each site has.
    replications
        How many.
    seed
        Where all randomness comes from.
    level
        The level of confidence.

    Examples
    --------
    >>> found = staged(Scene("normal", "Homo", 0.5, 0.9), 2000, 2, seed=1)
    >>> bool((found.lows < found.highs).all()), found.lost
    (True, 0)
    """
    cell = StagedCell("", scene.sites, scene.level, tuple(map(float, scene.rates)), (records,) * SITES)
    generator, rows, lost = dice(seed).generator(), [], 0
    for _ in range(replications):
        try:
            local, rounds = converse_fresh(cell, generator)
        except SearchFailed:
            lost += 1
            continue
        solution = staged_solution(local, cell.tau)
        rows.append((solution.point, *solution.interval(level), float(rounds)))
    points, lows, highs, rounds_ = np.array(rows, dtype=np.float64).reshape(-1, 4).T
    return Found(points, lows, highs, rounds_, lost)

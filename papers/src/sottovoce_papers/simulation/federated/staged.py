"""Replications of the package's own default, the staged design, in the paper's scenes."""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Bools, Floats
from sottovoce.server.quantile.solutions import CertifiedSolution, staged_solution
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.experiment import StagedCell, converse_fresh
from sottovoce_papers.simulation.federated.scene import SITES, Scene


class Found(NamedTuple):
    """What the runs say, how many rounds they took, and which ended as certified."""

    points: Floats
    lows: Floats
    highs: Floats
    rounds: Floats
    certified: Bools


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
    >>> bool((found.lows < found.highs).all()), found.certified.tolist()
    (True, [False, False])
    """
    cell = StagedCell("", scene.sites, scene.level, tuple(map(float, scene.rates)), (records,) * SITES)
    generator, rows = dice(seed).generator(), []
    for _ in range(replications):
        local, rounds = converse_fresh(cell, generator)
        solution = staged_solution(local)
        rows.append((solution.point, *solution.interval(level), float(rounds), isinstance(solution, CertifiedSolution)))
    points, lows, highs, rounds_, certified = np.array(rows, dtype=np.float64).reshape(-1, 5).T
    return Found(points, lows, highs, rounds_, certified > 0)

"""The package's default in a scene of Cai, Hu and Wu: the staged design with fresh records.

Setting: ``family``, ``scenario``, ``tau``, ``rate`` and ``records`` a site. Lengths are
those of intervals that have two ends (the rest are "open"); "certified" is the part of the runs that ended so.
"""

from pathlib import Path

import numpy as np

from sottovoce_papers.harness.cell import Row, Setting
from sottovoce_papers.harness.measure import Measure, mean, share
from sottovoce_papers.recipes.federated.walk import scene_of
from sottovoce_papers.simulation.federated.scene import Scene
from sottovoce_papers.simulation.federated.staged import Found, staged

VERSION = 2


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:  # noqa: ARG001 - a recipe's arguments
    """Replicate the default."""
    scene = scene_of(setting)
    return [Row({}, measured(scene, staged(scene, int(setting["records"]), replications, seed)))]


def cost(setting: Setting, replications: int) -> float:  # noqa: ARG001 - what is asked matters little
    """Guess the seconds."""
    return 0.014 * replications


def measured(scene: Scene, found: Found) -> dict[str, Measure]:
    """Measure coverage, mean absolute error, rounds, mean length, and how many runs end as certified or open."""
    covers = (found.lows <= scene.truth) & (scene.truth <= found.highs)
    measures = {"coverage": share(covers)}
    closed = np.isfinite(found.lows) & np.isfinite(found.highs)
    if len(found.points):
        measures["mae"] = mean(np.abs(found.points - scene.truth))
        measures["rounds"] = mean(found.rounds)
    if closed.any():
        measures["length"] = mean((found.highs - found.lows)[closed])
    measures["certified"] = share(found.certified)
    measures["open"] = share(~closed)
    return measures

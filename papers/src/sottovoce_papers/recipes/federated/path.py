"""One run in a scene of Cai, Hu and Wu as it goes: estimate and interval against the records that each site has spent.

Setting as of `walk`, with ``method`` C1, C5, Log or default (whose stages end at a few points only). The first looks
are left out: until a few dozen rounds are over the intervals are as wide as the walk has been.
"""

from pathlib import Path

import numpy as np

from sottovoce.server.quantile.recursion.walk import checkpoints
from sottovoce.server.quantile.solutions import staged_solution
from sottovoce.sim.randomness import dice
from sottovoce_papers.harness.cell import Row, Setting
from sottovoce_papers.harness.measure import Measure
from sottovoce_papers.recipes.federated import walk
from sottovoce_papers.simulation.experiment import StagedCell, converse_fresh
from sottovoce_papers.simulation.federated import abreast
from sottovoce_papers.simulation.federated.replicate import read, started
from sottovoce_papers.simulation.federated.scene import SITES, Scene

VERSION = 1
LOOKS, FIRST = 120, 100
Looks = list[tuple[float, float, float, float]]


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:  # noqa: ARG001 - one run
    """Run once; return the estimate, the ends of the interval and the truth as lines."""
    scene = walk.scene_of(setting)
    looks = _staged(setting, scene, seed) if setting["method"] == "default" else _walked(setting, scene, seed)
    at, points, lows, highs = (list(column) for column in zip(*looks, strict=True))
    lines = {"estimate": points, "low": lows, "high": highs, "truth": [scene.truth] * len(at)}
    return [
        Row({"line": name}, {"last": Measure(values[-1], 0.0, 1)}, {"t": at, "value": values})
        for name, values in lines.items()
    ]


def _walked(setting: Setting, scene: Scene, seed: int) -> Looks:
    """Look at the paper's method after some of its rounds."""
    how = walk.plan_of(setting, scene)
    (block,) = started(scene, how, 1, seed)
    looks: Looks = []
    done = 0
    for end in checkpoints(len(how.rounds), LOOKS):
        rounds, steps = how.rounds[done:end], how.steps[done:end]
        with np.errstate(over="ignore"):  # words wrap around, which only matters where nothing is compiled
            abreast.walk(block.lanes, block.letters, rounds, steps, how.topology, how.few)
        done = int(end)
        (point,), (half,) = read(block.lanes)
        if block.lanes.clock[3] >= FIRST:
            looks.append((float(block.lanes.clock[3]), float(point), float(point - half), float(point + half)))
    return looks


def _staged(setting: Setting, scene: Scene, seed: int) -> Looks:
    """Look at the default after each of its stages."""
    sizes = (int(setting["records"]),) * SITES
    cell = StagedCell("", scene.sites, scene.level, tuple(map(float, scene.rates)), sizes)
    local, _ = converse_fresh(cell, dice(seed).generator())
    rows = staged_solution(local).trajectory(0.95)
    return [(row.reports / SITES, row.average, row.low, row.high) for row in rows]

"""Recipe of the paper on data integration's simulations: all estimators at every shift of the sources.

A cell is one panel: ``shifts`` says which axis is walked along ("levels", "sweep" or "none"), and each point of it
gives a row a method. ``target_rate`` and ``source_rate`` may stand for the common ``rate``; ``variance = "both"`` adds
the variance of Theorem 4.2 as reading "w2" beside the printed one, "w".
"""

from pathlib import Path

import numpy as np

from sottovoce_papers.harness.cell import Row, Setting
from sottovoce_papers.harness.measure import Measure, log_mean_square, mean, share
from sottovoce_papers.simulation.integration.comparison import PRINTED, THEOREM, Found, Scene, compare
from sottovoce_papers.simulation.integration.shifts import patterns

VERSION = 1


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
    """Run one panel."""
    del data
    scene = scene_of(setting)
    readings = (PRINTED, THEOREM) if setting.get("variance") == "both" else (PRINTED,)
    along = patterns(str(setting["shifts"]), scene.sources, scene.n)
    rows = []
    for point, found in compare(scene, along, replications, seed, readings):
        for one in found:
            where = {**point.where, "method": one.method}
            named = {"reading": one.reading} if one.reading and len(readings) > 1 else {}
            rows.append(Row({**where, **named}, measures(one)))
    return rows


def scene_of(setting: Setting) -> Scene:
    """Return what a panel simulates; what it does not say is as in section 5.1."""
    rate = setting.get("rate", 0.5)
    return Scene(
        str(setting.get("family", "normal")),
        float(setting.get("tau", 0.5)),
        int(setting.get("n0", 20_000)),
        float(setting.get("target_rate", rate)),
        float(setting.get("source_rate", rate)),
        int(setting.get("sources", 3)),
        int(setting.get("chains", 10)),
        int(setting.get("source_chains", 20)),
        float(setting.get("beta", 0.6)),
    )


def measures(found: Found) -> dict[str, Measure]:
    """Measure coverage, error and length; a lost replication does not cover, and has neither error nor length."""
    kept = np.isfinite(found.high - found.low)
    return {
        "log_mse": log_mean_square(found.errors[kept]),
        "coverage": share((found.low <= 0) & (found.high >= 0)),
        "length": mean((found.high - found.low)[kept]),
    }


def cost(setting: Setting, replications: int) -> float:
    """Guess the seconds: 25 ns an update, of randomised response and of Laplace noise, and 14 ms for staged sites."""
    scene = scene_of(setting)
    along = patterns(str(setting["shifts"]), scene.sources, scene.n)
    runs = len({(k, shift) for point in along for k, shift in enumerate(point.shifts)})
    return replications * (25e-9 * scene.n * (2 + 3 * runs) + 0.014)

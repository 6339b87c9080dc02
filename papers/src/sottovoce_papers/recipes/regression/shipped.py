"""The default of this package in the paper's design: the production path itself, its mean error at the horizons."""

from pathlib import Path

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.server.regression.dithered.fit import DitheredFit
from sottovoce_papers.harness.cell import Row, Setting
from sottovoce_papers.harness.measure import mean
from sottovoce_papers.recipes.regression.trajectory import looks
from sottovoce_papers.simulation.regression.default import Setting as Study
from sottovoce_papers.simulation.regression.default import replicate
from sottovoce_papers.simulation.regression.designs import paper

VERSION = 1


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
    """Ask people to ``until``, and look at the estimate at the paper's horizons from ``since`` on."""
    del data
    design = paper(int(setting["p"]))
    study = Study(design, float(setting["tau"]), float(setting["epsilon"]))
    horizons = [n for n in looks(float(setting["until"])) if n >= float(setting["since"])]

    def keep(fit: DitheredFit) -> float:
        return float(np.linalg.norm(fit.point[0] - design.beta))

    runs: Floats = np.array(replicate(study, horizons, keep, replications, seed, threads=1))
    return [
        Row({"method": "default", "n": n, "reading": "simulated"}, {"error": mean(runs[:, at])})
        for at, n in enumerate(horizons)
    ]


def cost(setting: Setting, replications: int) -> float:
    """Guess the seconds."""
    return 0.5 + (170e-9 + 35e-9 * int(setting["p"])) * float(setting["until"]) * replications

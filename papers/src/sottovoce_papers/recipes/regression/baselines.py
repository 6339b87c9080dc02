"""The paper's two geometric baselines simulated: direct Laplace and face-exponential releases of the whole score.

The paper prints no constant of their steps. Face-exponential: ``10 / sqrt(d)``, the one that gives its errors at the
boundary. Direct Laplace, whose constant no table shows: that of CQ_X(2, 1), normalised.
"""

from pathlib import Path

from sottovoce_papers.harness.cell import Row, Setting
from sottovoce_papers.harness.measure import mean
from sottovoce_papers.simulation.regression import face_exponential, laplace
from sottovoce_papers.simulation.regression.designs import paper
from sottovoce_papers.simulation.regression.perturbed import step_scale

VERSION = 1


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
    """Run one release to ``n`` reports."""
    del data
    tau, epsilon, horizons = float(setting["tau"]), float(setting["epsilon"]), (int(setting["n"]),)
    design = paper(int(setting["p"]))
    if setting["method"] == "Direct Laplace":
        paths = laplace.replicate(design, tau, epsilon, horizons, replications, seed)
    else:
        scale = step_scale(design.p)
        paths = face_exponential.replicate(design, tau, epsilon, horizons, replications, seed, scale=scale)
    return [Row({"reading": "simulated"}, {"error": mean(paths.errors[:, 0])})]


def cost(setting: Setting, replications: int) -> float:
    """Guess the seconds."""
    d = int(setting["p"]) + 1
    each = (57e-9 if setting["method"] == "Direct Laplace" else 105e-9) * d
    return each * float(setting["n"]) * replications

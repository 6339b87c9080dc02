"""The default method in the cells of Tables 7 and 16 to 20: how often it gives an interval, and what that covers."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from sottovoce_papers.harness.cell import Row, Setting
from sottovoce_papers.harness.measure import Measure, mean, share
from sottovoce_papers.recipes.regression.coverage_rows import at
from sottovoce_papers.simulation.regression import default
from sottovoce_papers.simulation.regression.default_cover import answers
from sottovoce_papers.simulation.regression.designs import paper

VERSION = 1
LEAST = 5  # replications with an interval, from which on its coverage is told


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
    """Run the default in a cell (tau, p, epsilon) with n people; coverages are among the intervals given."""
    del data
    tau, p, epsilon, n = float(setting["tau"]), int(setting["p"]), float(setting["epsilon"]), int(setting["n"])
    found = answers(default.Setting(paper(p), tau, epsilon), n, replications, seed)
    hits, lengths = (found.low <= 0) & (found.high >= 0), found.high - found.low
    measures = {"given": share(~np.isnan(lengths[:, : p + 1])), "error": mean(found.errors)}
    for j in range(p + 1):
        measures |= _among(f"coverage_coordinate_{j}", hits[:, j], lengths[:, j])
    measures |= _among("coverage_dense", hits[:, -1], lengths[:, -1])
    measures |= _among("coverage_ellipsoid", found.statistic <= 1, found.volume)
    for name, sizes in (
        ("length_coordinate_0", lengths[:, 0]),
        ("length_dense", lengths[:, -1]),
        ("volume_ellipsoid", found.volume),
    ):
        known = sizes[~np.isnan(sizes)]
        if len(known) >= LEAST:
            measures[name] = mean(known)
    return [Row({"method": "default", "reading": f"simulated at {at(n)}"}, measures)]


def cost(setting: Setting, replications: int) -> float:
    """Guess the seconds: 200 to 400 nanoseconds a person, drawing them included."""
    return 1.0 + 3e-7 * replications * float(setting["n"])


def _among(name: str, hits: npt.NDArray[np.bool_], sizes: npt.NDArray[np.float64]) -> dict[str, Measure]:
    given = ~np.isnan(sizes)
    return {name: share(hits[given])} if np.count_nonzero(given) >= LEAST else {}

"""Coverage of the paper's intervals at any horizon, from the Gaussian distribution of its recursion instead of runs.

For the default method it gives sizes alone: those of the intervals that its channel's asymptotic covariance implies.
"""

import math
from pathlib import Path

import numpy as np

from sottovoce.inference.regression.region import normal_ellipsoid
from sottovoce.server.regression.design import choose
from sottovoce.server.regression.omega import omega
from sottovoce_papers.harness.cell import Row, Setting
from sottovoce_papers.harness.measure import Measure, exact
from sottovoce_papers.recipes.regression.coverage_rows import FINAL, at, cell_of, rows_of
from sottovoce_papers.simulation.regression.predicted import predict

VERSION = 1
TWICE = 2 * 1.959963984540054


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
    """Predict what all methods cover in a cell (tau, p, epsilon) after n people."""
    del data
    n = int(setting["n"])
    reading = "predicted" if n == FINAL else f"predicted at {at(n)}"
    rows = rows_of(predict(cell_of(setting), n, replications, seed), reading)
    return [*rows, Row({"method": "default", "reading": reading}, default_sizes(setting, n))]


def cost(setting: Setting, replications: int) -> float:
    """Guess the seconds: the distribution takes half a second, a draw of all methods a fifth of a millisecond."""
    return 0.5 + 5e-5 * replications * math.sqrt(int(setting["p"]))


def default_sizes(setting: Setting, n: int) -> dict[str, Measure]:
    """Return the sizes of the default's intervals if it reaches its channel's asymptotic covariance."""
    tau, p, epsilon = float(setting["tau"]), int(setting["p"]), float(setting["epsilon"])
    inverse = np.diag([1.0, *[3.0] * p]) / (2 * tau * (1 - tau))
    covariance = inverse @ omega(choose(tau, p, epsilon).channel) @ inverse / n
    return {
        "length_coordinate_0": exact(TWICE * math.sqrt(covariance[0, 0])),
        "length_dense": exact(TWICE * math.sqrt(covariance.sum() / (p + 1))),
        "volume_ellipsoid": exact(normal_ellipsoid(np.zeros(p + 1), covariance, 0.95).volume),
    }

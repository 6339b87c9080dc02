"""Figure 1: where contributions to the estimating equation can lie, and where two private releases of them fall."""

from pathlib import Path

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.sim.randomness import dice
from sottovoce_papers.harness.cell import Row, Setting
from sottovoce_papers.harness.measure import exact, share
from sottovoce_papers.simulation.regression import face_exponential, laplace
from sottovoce_papers.simulation.regression.designs import paper
from sottovoce_papers.simulation.regression.geometry import diameter

VERSION = 1
CLOSE = 1e-9


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
    """Draw people at the true coefficients, and one release of each kind for each of them."""
    del replications, data
    tau, p, epsilon = float(setting["tau"]), int(setting["p"]), float(setting["epsilon"])
    design, size = paper(p), int(setting["points"])
    people, noise, faces = (one.generator() for one in dice(seed).split(3))
    z, y = design.sample(people, size, tau)
    x = np.column_stack([np.ones(size), z])
    scores = x * np.where(y <= x @ design.beta, 1.0 - tau, -tau)[:, None]
    wide = diameter(tau, p)
    spread, rate = wide / epsilon, epsilon / (2.0 * wide)
    pairs = list(zip(scores, noise.random(scores.shape), faces.random(scores.shape), strict=True))
    released = {
        "exact": scores,
        "Direct Laplace": np.array([laplace.encode(score, spread, u) for score, u, _ in pairs]),
        "Face-exponential": np.array([face_exponential.encode(score, tau, rate, True, u) for score, _, u in pairs]),
    }
    return [_row(method, points, tau) for method, points in released.items()]


def on_support(points: Floats, tau: float) -> Floats:
    """Tell which points are on one of the two faces.

    >>> on_support(np.array([[0.25, 0.2], [0.25, 0.3], [0.1, 0.0]]), 0.75).tolist()
    [True, False, False]
    """
    face = (np.abs(points[:, 0] + tau) < CLOSE) | (np.abs(points[:, 0] - 1 + tau) < CLOSE)
    within = np.all(np.abs(points[:, 1:]) <= np.abs(points[:, :1]) + CLOSE, axis=1)
    return np.asarray(face & within)


def _row(method: str, points: Floats, tau: float) -> Row:
    curves = {f"g{j}": column.tolist() for j, column in enumerate(points.T)}
    reach = float(np.abs(points).max())
    inside = share(on_support(points, tau))
    measures = {"on support": inside, "reach": exact(reach), "mean g0": exact(float(points[:, 0].mean()))}
    return Row({"method": method}, measures, curves)

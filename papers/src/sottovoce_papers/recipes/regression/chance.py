"""The Monte-Carlo error that the paper's own number of replications gives its printed means, ratios and slopes.

A mean of R runs varies by the relative spread of one run's error over sqrt(R); the closed form tells that spread. The
column ``error`` of the printed tables is made here.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.sim.randomness import dice
from sottovoce_papers.harness.cell import Row, plain
from sottovoce_papers.harness.measure import exact
from sottovoce_papers.recipes.regression.ratios import REPLICATIONS
from sottovoce_papers.recipes.regression.trajectory import HORIZONS, KEPT

Made = dict[tuple[frozenset[tuple[str, str]], str], float]


def spreads(rows: Sequence[Row], derive: Callable[[list[Row]], list[Row]], draws: int = 400, seed: int = 1) -> Made:
    """Return the standard deviation of every derived number when the paper's means are drawn again and again.

    Parameters
    ----------
    rows
        Closed-form rows, with ``error`` and ``spread``.
    derive
        What makes a table's rows of them.
    draws, seed
        How often, and from which seed.
    """
    generator = dice(seed).generator()
    drawn: dict[tuple[frozenset[tuple[str, str]], str], list[float]] = {}
    for _ in range(draws):
        shaken = []
        for row in rows:
            part = row.measures["spread"].value / math.sqrt(REPLICATIONS[str(row.where["method"])])
            value = row.measures["error"].value * max(1.0 + part * float(generator.standard_normal()), 0.01)
            shaken.append(Row(row.where, {**row.measures, "error": exact(value)}))
        for row in derive(shaken):
            place = frozenset((key, plain(value)) for key, value in row.where.items() if key != "largest at")
            for quantity, measure in row.measures.items():
                drawn.setdefault((place, quantity), []).append(measure.value)
    return {key: float(np.std(values)) for key, values in drawn.items()}


def slope_spread(variances: Floats, replications: int, draws: int = 20_000, seed: int = 1) -> float:
    """Return the standard deviation of Table 3's slope: errors along a run are those of a Brownian motion over time.

    Examples
    --------
    >>> 0.001 < slope_spread(np.ones(3), 500, draws=2000) < 0.01
    True
    """
    times = np.array([n for n in HORIZONS if n >= KEPT], dtype=np.float64)
    steps = np.sqrt(np.diff(times, prepend=0.0))[:, None] * np.sqrt(variances)
    paths = np.cumsum(dice(seed).generator().standard_normal((draws, *steps.shape)) * steps, axis=1)
    errors = np.linalg.norm(paths, axis=2) / times
    logs = np.log(times) - np.log(times).mean()
    part = errors / errors.mean(axis=0) @ (logs / (logs**2).sum())
    return float(part.std()) / math.sqrt(replications)

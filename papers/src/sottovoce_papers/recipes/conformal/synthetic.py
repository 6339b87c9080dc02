"""Figure 3: intervals around counts with outliers, by a quantile forest calibrated at 50 sites of 20 records."""

from pathlib import Path

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.sim.randomness import dice
from sottovoce_papers.harness.cell import Row, Setting, Value
from sottovoce_papers.harness.measure import mean
from sottovoce_papers.simulation.conformal import quantile_forest
from sottovoce_papers.simulation.conformal.paper_predictors import ALPHA, SEEDS
from sottovoce_papers.simulation.conformal.paper_splits import measured, thresholds
from sottovoce_papers.simulation.conformal.poisson_outliers import ENDS, drawn
from sottovoce_papers.simulation.conformal.real_scores import Scored
from sottovoce_papers.simulation.families import Generator

VERSION = 1
TRAINED, TESTED, SHOWN = 1000, 5000, 500
LEAF = 40  # of the forest; the paper does not state its own
LINE = np.linspace(*ENDS, 201)


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
    """Draw, train, calibrate and test again and again; the first time also draws the picture."""
    del data
    shape = int(setting["sites"]), int(setting["n"])
    found: dict[str, list[tuple[float, float]]] = {}
    curves: dict[str, dict[str, list[float]]] = {}
    for one in dice(seed).split(replications):
        generator = one.generator()
        limits, test, band = _trained(shape, generator)
        for method, threshold in limits.items():
            found.setdefault(method, []).append(measured(threshold, test))
            ends = np.stack([band[:, 0] - threshold, band[:, 1] + threshold])
            curves.setdefault(method, {"x": LINE.tolist(), "low": ends[0].tolist(), "high": ends[1].tolist()})
        if "points" not in curves:
            points = drawn(SHOWN, generator)
            curves["points"] = {"x": points.features[:, 0].tolist(), "y": points.responses.tolist()}
    rows = [Row({"method": "points"}, {}, curves["points"])]
    for method, values in found.items():
        coverage, length = np.array(values).T
        central = np.array(found["central"])[:, 1]
        measures = {"coverage": mean(coverage), "length": mean(length), "ratio": mean(length / central)}
        where: dict[str, Value] = {"method": method}
        rows.append(Row(where, measures, curves[method]))
    return rows


def cost(setting: Setting, replications: int) -> float:
    """Guess the seconds."""
    del setting
    return 0.6 * replications


def _trained(shape: tuple[int, int], generator: Generator) -> tuple[dict[str, float], Scored, Floats]:
    """Return the methods' thresholds, the scores of the test records, and the band before calibration."""
    train, calibration, test = (drawn(n, generator) for n in (TRAINED, shape[0] * shape[1], TESTED))
    seed = int(generator.integers(SEEDS))
    forest = quantile_forest.grow(train.features, train.responses, seed, leaf=LEAF)
    levels = quantile_forest.tuned_levels(forest, ALPHA)
    scored = []
    for part in (calibration, test):
        ends = quantile_forest.quantiles(forest, part.features, levels)
        outside = np.maximum(ends[:, 0] - part.responses, part.responses - ends[:, 1])
        scored.append(Scored(outside, ends[:, 1] - ends[:, 0]))
    band = quantile_forest.quantiles(forest, LINE[:, None], levels)
    return thresholds(scored[0].scores.reshape(shape)), scored[1], band

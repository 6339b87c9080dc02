"""Figures 4 to 14: coverage and length on five real data sets with three predictors, over splits of the records.

A cell is one data set with one predictor; the scores of a split serve both settings, many small sites (m >> n) and few
large ones (m << n). `pooled` puts all data sets together (Figure 4), `many` and `few` take one setting of one set.
"""

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from sottovoce.sim.randomness import dice
from sottovoce_papers.harness.cell import Row, Setting, Value
from sottovoce_papers.harness.measure import Measure, mean
from sottovoce_papers.simulation.conformal.data_sets import DataSet, read_set
from sottovoce_papers.simulation.conformal.paper_predictors import PREDICTORS
from sottovoce_papers.simulation.conformal.paper_splits import deal, measured, thresholds
from sottovoce_papers.simulation.conformal.real_scores import Scored
from sottovoce_papers.simulation.families import Generator

VERSION = 1
MANY, FEW = "m >> n", "m << n"
RELEASED, CAPTIONS = "released", "captions"
MEAN, UPPER = "FedCP-Avg", "FedCP-Avg, released"
SECONDS = {"ridge": 0.02, "forest": 1.2, "network": 1.5}  # of one split of 4,000 records
Found = dict[tuple[str, str], tuple[float, float]]


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
    """Split, train, calibrate both ways and test, as often as asked."""
    assert data is not None
    held = read_set(data, str(setting["data_set"]))
    found = [_one(held, setting, one.generator()) for one in dice(seed).split(replications)]
    sites, size = int(setting["sites"]), int(setting["n"])
    rows = []
    for shape, method in found[0]:
        coverages, lengths = (np.array([one[shape, method][i] for one in found]) for i in (0, 1))
        ratios = lengths / np.array([one[shape, "central"][1] for one in found])
        m, n = (sites, size) if shape == MANY else (size, sites)
        curves = {"coverages": coverages.tolist(), "lengths": lengths.tolist(), "ratios": ratios.tolist()}
        where: dict[str, Value] = {"shape": shape, "sites": m, "n": n, "method": method}
        measures = {
            "coverage": mean(coverages),
            "spread": _spread(coverages.tolist()),
            "length": mean(lengths),
            "ratio": mean(ratios),
        }
        rows.append(Row(where, measures, curves))
    return rows


def cost(setting: Setting, replications: int) -> float:
    """Guess the seconds."""
    wide = 3.0 if setting["data_set"] == "community" else 1.0
    return replications * SECONDS[str(setting["predictor"])] * wide * max(int(setting["records"]) / 4000, 0.5)


def many(rows: Iterable[Row]) -> list[Row]:
    """Take the rows of many small sites; with ten scores a site both kinds of FedCP-Avg take the largest."""
    return [row for row in rows if row.where["shape"] == MANY and row.where["method"] != UPPER]


def few(rows: Iterable[Row]) -> list[Row]:
    """Take the rows of few large sites."""
    return [row for row in rows if row.where["shape"] == FEW]


def pooled(rows: Iterable[Row]) -> list[Row]:
    """Put all data sets and predictors together, as the authors' results have bike and FedCP-Avg and as they say."""
    by: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        shape, method = str(row.where["shape"]), str(row.where["method"])
        for reading in (RELEASED, CAPTIONS):
            if row.where.get("reading", reading) == reading and method != (MEAN if reading == RELEASED else UPPER):
                by.setdefault((shape, MEAN if method == UPPER else method, reading), []).append(row)
    return [_together(shape, method, reading, them) for (shape, method, reading), them in by.items()]


def _together(shape: str, method: str, reading: str, rows: list[Row]) -> Row:
    """Average over cells; chance lies in the splits within each, not in which data sets there are."""
    curves = {name: [x for row in rows for x in row.curves[name]] for name in ("coverages", "ratios")}
    measures = {
        "coverage": _average([row.measures["coverage"] for row in rows]),
        "spread": _spread(curves["coverages"]),
        "ratio": _average([row.measures["ratio"] for row in rows]),
    }
    return Row({"shape": shape, "method": method, "reading": reading}, measures, curves)


def _average(measures: list[Measure]) -> Measure:
    value = math.fsum(measure.value for measure in measures) / len(measures)
    error = math.sqrt(math.fsum(measure.error**2 for measure in measures)) / len(measures)
    return Measure(value, error, sum(measure.n for measure in measures))


def _spread(values: list[float]) -> Measure:
    """Measure a standard deviation, its error as for normal values."""
    n = len(values)
    if n < 2:
        return Measure(0.0, 0.0, n)
    value = float(np.std(values, ddof=1))
    return Measure(value, value / math.sqrt(2 * (n - 1)), n)


def _one(held: DataSet, setting: Setting, generator: Generator) -> Found:
    """Return coverage and length of each method in each setting, from one split."""
    sites, size = int(setting["sites"]), int(setting["n"])
    dealt = deal(len(held.responses), int(setting["records"]), sites * size, generator)
    rest = np.concatenate([dealt.calibration, dealt.test])
    scored = PREDICTORS[str(setting["predictor"])](held, dealt.train, rest, generator)
    calibrated = scored.scores[: sites * size]
    test = Scored(scored.scores[sites * size :], scored.lengths[sites * size :])
    found: Found = {}
    for name, shape in ((MANY, (sites, size)), (FEW, (size, sites))):
        for method, threshold in thresholds(calibrated.reshape(shape)).items():
            found[name, method] = measured(threshold, test)
    return found

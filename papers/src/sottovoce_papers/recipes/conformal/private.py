"""Figure 15: private coverage on bio and bike, by the paper's algorithm and by ours, with a quantile forest."""

import math
from pathlib import Path

import numpy as np

from sottovoce.sim.randomness import dice
from sottovoce_papers.harness.cell import Row, Setting, Value
from sottovoce_papers.harness.measure import Measure, mean, share
from sottovoce_papers.simulation.conformal.data_sets import DataSet, read_set
from sottovoce_papers.simulation.conformal.paper_predictors import forest_scores
from sottovoce_papers.simulation.conformal.paper_private_draw import default_threshold, paper_threshold
from sottovoce_papers.simulation.conformal.paper_splits import deal, measured, thresholds
from sottovoce_papers.simulation.conformal.real_scores import Scored
from sottovoce_papers.simulation.families import Generator

VERSION = 1
EPSILONS = (10.0, 5.0, 1.0)
NONE = "none"
Found = dict[tuple[str | float, str], tuple[float, float]]


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
    """Split, train, calibrate with each budget and test, as often as asked."""
    assert data is not None
    held = read_set(data, str(setting["data_set"]))
    found = [_one(held, setting, one.generator()) for one in dice(seed).split(replications)]
    rows = []
    for epsilon, method in found[0]:
        coverages, lengths = np.array([one[epsilon, method] for one in found]).T
        finite = np.isfinite(lengths)
        measures: dict[str, Measure] = {"coverage": mean(coverages)}
        if finite.any():
            measures["length"] = mean(lengths[finite])
        if epsilon != NONE and method == "default":
            measures["infinite"] = share(~finite)
        where: dict[str, Value] = {"epsilon": epsilon, "method": method}
        rows.append(Row(where, measures, {"coverages": coverages.tolist(), "lengths": lengths[finite].tolist()}))
    return rows


def cost(setting: Setting, replications: int) -> float:
    """Guess the seconds."""
    return 1.0 + replications * int(setting["records"]) / 4000


def _one(held: DataSet, setting: Setting, generator: Generator) -> Found:
    """Return coverage and length of each method at each budget, from one split."""
    shape = int(setting["sites"]), int(setting["n"])
    used = math.prod(shape)
    dealt = deal(len(held.responses), int(setting["records"]), used, generator)
    rest = np.concatenate([dealt.calibration, dealt.test])
    scored = forest_scores(held, dealt.train, rest, generator)
    scores, test = scored.rest.scores[:used].reshape(shape), Scored(*(part[used:] for part in scored.rest))
    plain = thresholds(scores)
    found: Found = {(NONE, method): measured(plain[method], test) for method in ("FedCP-QQ", "default")}
    public = float(scored.unseen.max())  # the records that train are not those whose scores are kept private
    for epsilon in EPSILONS:
        found[epsilon, "FedCP2-QQ"] = measured(paper_threshold(scores, epsilon, generator), test)
        found[epsilon, "default"] = measured(default_threshold(scores, epsilon, public, generator), test)
    return found

"""The paper's five data sets: coverage and length of every rule, for many small sites and for few large ones.

A model is fitted to 40 % of the records, 20 times; the others are dealt ten times to calibration and test. Errors are
those of the 20 fits: calibrations of one fit are not independent.
"""

import numpy as np
import numpy.typing as npt

from benchmarks.conformal_tables import show, within
from sottovoce.core.arrays import Floats
from sottovoce.sim import dice
from sottovoce_papers.simulation.conformal.baselines import alone, averaged, centralised
from sottovoce_papers.simulation.conformal.data_sets import SHAPES, DataSet, absent, data_folder, read_set
from sottovoce_papers.simulation.conformal.real_scores import MODELS, Scored
from sottovoce_papers.simulation.conformal.repeat import Setting, federated
from sottovoce_papers.simulation.families import Generator

SPLITS, DEALS, ALPHA = 20, 10, 0.1
RULES = ("argmin", "closest", "3 statistics", "central", "Avg", "alone")


def thresholds(scores: Floats) -> Floats:
    """Return the threshold of each rule, (rules, calibrations), from scores (calibrations, sites, scores)."""
    sizes = (scores.shape[2],) * scores.shape[1]
    settings = (Setting(sizes, rule="paper"), Setting(sizes), Setting(sizes, statistics=3))
    found = [federated(setting, scores) for setting in settings]
    return np.stack([*found, centralised(scores, ALPHA), averaged(scores, ALPHA), alone(scores, ALPHA)])


def deal(scored: Scored, shape: tuple[int, int], test: int, generator: Generator) -> npt.NDArray[np.float64]:
    """Deal records to calibration and test, and return coverage and length of each rule, (2, rules, deals)."""
    orders = np.stack([generator.permutation(len(scored.scores)) for _ in range(DEALS)])
    used = shape[0] * shape[1]
    found = thresholds(scored.scores[orders[:, :used]].reshape(DEALS, *shape))
    rest = orders[:, -test:]
    coverage = np.mean(scored.scores[rest][None] <= found[:, :, None], axis=2)
    length = np.maximum(scored.lengths[rest][None] + 2 * found[:, :, None], 0.0).mean(axis=2)
    return np.stack([coverage, length])


def measure(held: DataSet, model: str, shape: tuple[int, int], splits: int = SPLITS) -> npt.NDArray[np.float64]:
    """Return coverage and length of each rule, (2, rules, splits, deals)."""
    generator, n = dice(31).generator(), len(held.responses)
    parts = []
    for _ in range(splits):
        order = generator.permutation(n)
        cut = 2 * n // 5
        parts.append(deal(MODELS[model](held, order[:cut], order[cut:]), shape, n // 5, generator))
    return np.stack(parts, axis=2)


def run(splits: int = SPLITS) -> None:
    folder = data_folder()
    if folder is None:
        print(f"\nThe paper's data sets are left out: {absent()}.")
        return
    sets = [read_set(folder, name) for name in SHAPES]
    for turned in (False, True):
        for model in ("ridge", "CQR"):
            rows = []
            for held in sets:
                shape = SHAPES[held.name][::-1] if turned else SHAPES[held.name]
                coverage, length = measure(held, model, shape, splits)
                for i, rule in enumerate(RULES):
                    by_split = coverage[i].mean(axis=1)
                    relative = (length[i] / length[RULES.index("central")]).mean(axis=1)
                    rows.append(
                        (
                            f"{held.name} {shape}",
                            rule,
                            within(float(by_split.mean()), float(by_split.std(ddof=1)) / splits**0.5),
                            within(*_deviation(coverage[i])),
                            within(float(relative.mean()), float(relative.std(ddof=1)) / splits**0.5, 3),
                        )
                    )
            which = "few large sites" if turned else "many small sites"
            title = f"{model}, {which}, {splits} fits dealt {DEALS} times"
            show(title, ("set (m, n)", "rule", "mean coverage", "sd of coverage", "length / central"), rows)


def _deviation(coverage: Floats) -> tuple[float, float]:
    """Return the standard deviation of coverages (splits, deals), with the error that the splits give it."""
    squares = ((coverage - coverage.mean()) ** 2).mean(axis=1)
    whole = float(np.sqrt(squares.mean()))
    return whole, float(squares.std(ddof=1)) / len(squares) ** 0.5 / (2 * max(whole, 1e-300))


if __name__ == "__main__":
    run()

"""Figure 1: the exact coverage of FedCP-QQ and of our choice, beside the bounds of one place and of one site.

Rows are at a few sizes; those at the largest carry the curves over all of them.
"""

from pathlib import Path

from sottovoce.server.conformal.coverage.equal import RankPair, argmin, closest
from sottovoce_papers.harness.cell import Row, Setting, Value
from sottovoce_papers.harness.measure import exact
from sottovoce_papers.simulation.conformal.baselines import split_distribution

VERSION = 1
SIZES = range(10, 101)
SHOWN = (10, 20, 30, 50, 70, 100)


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
    """Compute mean and standard deviation of the coverage for each size of the sites."""
    del replications, seed, data
    sites, alpha = int(setting["sites"]), float(setting["alpha"])
    found = {size: _methods(sites, size, alpha) for size in SIZES}
    rows = []
    for method in found[SIZES[0]]:
        for size in SHOWN:
            coverage, spread = found[size][method]
            curves = {
                "n": [float(n) for n in SIZES],
                "coverages": [found[n][method][0] for n in SIZES],
                "spreads": [found[n][method][1] for n in SIZES],
            }
            where: dict[str, Value] = {"n": size, "method": method}
            measures = {"coverage": exact(coverage), "spread": exact(spread)}
            rows.append(Row(where, measures, curves if size == SHOWN[-1] else {}))
    return rows


def cost(setting: Setting, replications: int) -> float:
    """Guess the seconds."""
    del setting, replications
    return 0.5


def _methods(sites: int, size: int, alpha: float) -> dict[str, tuple[float, float]]:
    """Return mean and spread of the coverage; of one place and of one site the paper's upper bound of the mean."""
    total = sites * size
    return {
        "FedCP-QQ": _distribution(argmin(sites, size, alpha)),
        "central, bound": (1 - alpha + 1 / (total + 1), split_distribution(total, alpha)[1]),
        "one site, bound": (1 - alpha + 1 / (size + 1), split_distribution(size, alpha)[1]),
        "default": _distribution(closest(sites, size, alpha)),
    }


def _distribution(pair: RankPair | None) -> tuple[float, float]:
    return (1.0, 0.0) if pair is None else (pair.mean, pair.sd)

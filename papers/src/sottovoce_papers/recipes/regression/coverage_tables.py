"""Tables made of the coverages of many cells: extremes over coordinates, means over cells, sizes at one horizon."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.sim.randomness import dice
from sottovoce_papers.harness.cell import Row, Value, plain
from sottovoce_papers.harness.measure import Measure
from sottovoce_papers.recipes.regression.coverage_rows import FINAL, PRINTED

SIZES = ("length_coordinate_0", "length_dense", "volume_ellipsoid", "error")
TARGETS = ("coordinate", "dense", "ellipsoid")
DRAWS = 400  # of the printed extreme, for its standard error


def brief(rows: Sequence[Row]) -> list[Row]:
    """Return rows without the coordinates after the first; sizes at another horizon are carried over to the final."""
    return [Row(row.where, _brief(row)) for row in rows]


def extremes(rows: Sequence[Row]) -> list[Row]:
    """Return brief rows with the smallest and largest coverage of a coordinate, as 500 replications would show them."""
    return [Row(row.where, _brief(row) | _extremes("coordinate", [row])) for row in rows]


def by_budget(rows: Sequence[Row]) -> list[Row]:
    """Return mean, smallest and largest coverage over all cells of a budget, for each method and reading."""
    found: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[plain(row.where["epsilon"]), str(row.where["method"]), str(row.where["reading"])].append(row)
    return [Row(_place(cells[0], method, reading), _summary(cells)) for (_, method, reading), cells in found.items()]


def by_budget_without_trees(rows: Sequence[Row]) -> list[Row]:
    """Return the summary of Table 19: self-normalised, groups and the default."""
    return by_budget([row for row in rows if not str(row.where["method"]).startswith("HiGrad")])


def by_budget_trees(rows: Sequence[Row]) -> list[Row]:
    """Return the summary of Table 20: the trees and the default."""
    return by_budget([row for row in rows if str(row.where["method"]) not in ("SN", "DC")])


def _place(row: Row, method: str, reading: str) -> dict[str, Value]:
    return {"epsilon": row.where["epsilon"], "method": method, "reading": reading}


def _brief(row: Row) -> dict[str, Measure]:
    n, d = int(row.where["n"]), int(row.where["p"]) + 1
    kept = {}
    for name, measure in row.measures.items():
        if name in SIZES:
            shrink = (n / FINAL) ** (d / 2 if name == "volume_ellipsoid" else 0.5)
            kept[name] = Measure(measure.value * shrink, measure.error * shrink, measure.n)
        elif not name.startswith("coverage_coordinate_") or name == "coverage_coordinate_0":
            kept[name] = measure
    return kept


def _summary(cells: Sequence[Row]) -> dict[str, Measure]:
    found: dict[str, Measure] = {}
    for target in TARGETS:
        parts = [measure for row in cells for _, measure in _of(row, target)]
        if parts:
            found[f"coverage_{target}_mean"] = _mean(parts)
            found |= _extremes(target, cells)
    for name in ("length_coordinate_0", "length_dense", "error", "given"):
        parts = [measure for row in cells for key, measure in _brief(row).items() if key == name]
        if parts:
            found[name] = _mean(parts)
    return found


def _mean(parts: Sequence[Measure]) -> Measure:
    error = math.sqrt(sum(part.error**2 for part in parts)) / len(parts)
    return Measure(sum(part.value for part in parts) / len(parts), error, min(part.n for part in parts))


def _of(row: Row, target: str) -> Iterable[tuple[str, Measure]]:
    """Return a row's coverages of a target: one for every coordinate, or one."""
    for name, measure in row.measures.items():
        if name == f"coverage_{target}" or (name.startswith("coverage_coordinate_") and target == "coordinate"):
            yield name.removeprefix("coverage_"), measure


def _extremes(target: str, rows: Sequence[Row]) -> dict[str, Measure]:
    """Return the mean over batches of 500 replications of the smallest and of the largest coverage in a batch.

    Their errors are those of such an extreme among independent binomial numbers.
    """
    named = [(row, name, measure) for row in rows for name, measure in _of(row, target)]
    if not named or any(name not in row.curves for row, name, _ in named):
        return {}
    batches = np.array([row.curves[name] for row, name, _ in named])
    rates = np.array([measure.value for _, _, measure in named])
    n, count = named[0][2].n, batches.shape[1]
    drawn = dice(1).generator().binomial(PRINTED, rates, (DRAWS, len(rates))) / PRINTED
    return {
        f"coverage_{target}_min": _extreme(batches.min(0), drawn.min(1), n, count),
        f"coverage_{target}_max": _extreme(batches.max(0), drawn.max(1), n, count),
    }


def _extreme(found: Floats, drawn: Floats, n: int, count: int) -> Measure:
    spread = max(float(drawn.std()), 1.0 / PRINTED)
    return Measure(float(found.mean()), spread / math.sqrt(count), n)

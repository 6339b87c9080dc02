"""Table 10: medians over the eight private cells of Table 9, for each method."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from sottovoce_papers.harness.cell import Row, plain
from sottovoce_papers.harness.measure import Measure, exact


def medians(rows: Sequence[Row]) -> list[Row]:
    """Return the medians of the cells' means, and the largest distance, by method and reading."""
    rates = {
        (plain(row.where["tau"]), str(row.where["reading"])): row.measures["hit_rate"].value
        for row in rows
        if row.where["method"] == "nonprivate"
    }
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.where["method"] != "nonprivate":
            found[str(row.where["method"]), str(row.where["reading"])].append(row)
    return [
        Row({"method": method, "reading": reading}, _medians(cells, [rates[_level(row), reading] for row in cells]))
        for (method, reading), cells in found.items()
    ]


def _level(row: Row) -> str:
    return plain(row.where["tau"])


def _medians(cells: Sequence[Row], rates: Sequence[float]) -> dict[str, Measure]:
    def values(name: str) -> list[float]:
        return [row.measures[name].value for row in cells]

    apart = np.abs(np.array(values("hit_rate")) - rates)
    wanted = np.abs(np.array(values("hit_rate")) - [float(row.where["tau"]) for row in cells])
    return {
        "median_abs_hit_deviation": exact(float(np.median(apart))),
        "median_excess_loss_e3": exact(float(np.median(values("excess_loss_e3")))),
        "median_distance": exact(float(np.median(values("distance")))),
        "max_distance": exact(max(values("distance"))),
        "median_abs_hit_error": exact(float(np.median(wanted))),
        "median_excess_over_exact_e3": exact(float(np.median(values("excess_over_exact_e3")))),
        "median_distance_to_exact": exact(float(np.median(values("distance_to_exact")))),
    }

"""Errors of the baselines, and of the default, over those of the paper's channel: Tables 6, 13, 14 and 15."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce_papers.harness.cell import Row, Value
from sottovoce_papers.harness.measure import exact
from sottovoce_papers.recipes.regression.closed_form import READING

METHODS = ("Direct Laplace", "Face-exponential", "default")
REPLICATIONS = {"CQ": 500, "nonprivate": 500, "Direct Laplace": 200, "Face-exponential": 200, "default": 500}
"""How many runs the paper has behind a mean (for the default: would have)."""


class Ratio(NamedTuple):
    """One cell's ratio, where, and the Monte-Carlo error that the paper's number of runs gives it."""

    cell: dict[str, Value]
    value: float
    error: float


def by_design(rows: Sequence[Row]) -> list[Row]:
    """Summarise over budgets (Table 6)."""
    return _summed(rows, ("tau", "p"), {"median": np.median, "min": np.min, "max": np.max})


def by_budget(rows: Sequence[Row]) -> list[Row]:
    """Summarise over levels and dimensions (Table 13)."""
    return _summed(rows, ("epsilon",), {"median": np.median})


def by_dimension(rows: Sequence[Row]) -> list[Row]:
    """Summarise over levels and budgets (Table 14)."""
    return _summed(rows, ("p",), {"median": np.median})


def overall(rows: Sequence[Row]) -> list[Row]:
    """Summarise over all cells (Table 15), and name the cell of the largest ratio."""

    def quartile(part: float) -> Callable[[Floats], float]:
        return lambda values: float(np.quantile(values, part))

    statistics: dict[str, Callable[[Floats], float]] = {
        "q25": quartile(0.25),
        "median": np.median,
        "q75": quartile(0.75),
        "largest": np.max,
    }
    made = []
    for row in _summed(rows, (), statistics):
        found = [one for one in ratios(rows) if one.cell["method"] == row.where["method"]]
        top = max(found, key=lambda one: one.value).cell
        where = {**row.where, "largest at": f"({top['tau']}, {top['p']}, {top['epsilon']})"}
        made.append(Row(where, {**row.measures, "mcse": exact(float(np.median([one.error for one in found])))}))
    return made


def ratios(rows: Sequence[Row]) -> list[Ratio]:
    """Return every private cell's ratios."""
    found = {tuple(row.where[key] for key in ("tau", "p", "epsilon", "method")): row.measures for row in rows}
    made = []
    for (tau, p, epsilon, method), measures in found.items():
        if method not in METHODS or epsilon == "inf":
            continue
        base = found[tau, p, epsilon, "CQ"]
        value = measures["error"].value / base["error"].value
        parts = [
            one["spread"].value / math.sqrt(REPLICATIONS[str(name)]) for name, one in ((method, measures), ("CQ", base))
        ]
        made.append(
            Ratio({"tau": tau, "p": p, "epsilon": epsilon, "method": method}, value, value * math.hypot(*parts))
        )
    return made


def _summed(rows: Sequence[Row], keys: tuple[str, ...], statistics: dict[str, Callable[[Floats], float]]) -> list[Row]:
    groups: dict[tuple[Value, ...], list[float]] = {}
    for one in ratios(rows):
        groups.setdefault(tuple(one.cell[key] for key in (*keys, "method")), []).append(one.value)
    return [
        Row(
            {**dict(zip((*keys, "method"), place, strict=True)), "reading": READING},
            {name: exact(float(statistic(np.array(values)))) for name, statistic in statistics.items()},
        )
        for place, values in groups.items()
    ]

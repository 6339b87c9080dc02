"""The paper's own horizon, 3e8 people and 512 replications, simulated once on a graphics processor and recorded.

A CPU does not take 4e13 steps in a reasonable time, a graphics processor does: `horizon/recursion.cu` beside the print
is the same recursion, and `horizon/horizon.csv` what it gave. This recipe reads it; nothing is run.
"""

import csv
from functools import cache
from pathlib import Path

import numpy as np

from sottovoce_papers.harness.catalogue import papers_folder
from sottovoce_papers.harness.cell import Row, Setting, plain
from sottovoce_papers.harness.measure import Measure, share

VERSION = 1
READING = "simulated at 3e8"


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:  # noqa: ARG001
    """Return what is recorded of a cell: rows by method, or with ``what = "path"`` its errors at every horizon."""
    cell = tuple(plain(setting[key]) for key in ("tau", "p", "epsilon"))
    wanted = "point" if setting.get("what") == "path" else ""
    found: dict[tuple[str, int], dict[str, Measure]] = {}
    for line in _recorded():
        if tuple(plain(line[key]) for key in ("tau", "p", "epsilon")) == cell and (line["method"] == "point") == bool(
            wanted
        ):
            found.setdefault((line["method"], int(line["n"])), {})[line["quantity"]] = _measure(line)
    rows = []
    for (method, n), measures in found.items():
        named = ("nonprivate" if plain(setting["epsilon"]) == "inf" else "CQ") if wanted else method
        # One batch of replications: the extreme of a table is that of this batch.
        curves = {name.removeprefix("coverage_"): [m.value] for name, m in measures.items() if "coverage" in name}
        rows.append(Row({"method": named, "n": n, "reading": READING}, measures, curves))
    return rows


def cost(setting: Setting, replications: int) -> float:  # noqa: ARG001
    """Return about how many seconds that takes."""
    return 0.05


def _measure(line: dict[str, str]) -> Measure:
    value, n = float(line["value"]), int(line["replications"])
    if line["quantity"].startswith("coverage"):
        return share(np.arange(n) < round(value * n))  # its error stays above zero where all or none cover
    return Measure(value, float(line["error"]), n)


@cache
def _recorded() -> list[dict[str, str]]:
    path = papers_folder() / "online-quantile-regression" / "horizon" / "horizon.csv"
    with path.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))

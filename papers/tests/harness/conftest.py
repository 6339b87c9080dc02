"""A paper that is not one: two tables and a figure whose cells take no time, and a recipe found by the name "coin"."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sottovoce.sim.randomness import dice
from sottovoce_papers import recipes
from sottovoce_papers.harness import catalogue
from sottovoce_papers.harness.cell import Row, Setting
from sottovoce_papers.harness.measure import exact, mean, share

PAPER = "coin-tossing"
TABLE = """
title = "Table 1. Coins <b>tossed</b>"
about = "Coins with faces & edges."
recipe = "coin"
replications = 400
printed_replications = 400
rows = ["side", "n"]
quantities = ["heads", "length"]
labels = { heads = "share of heads" }
readings = { fixed = "the same coin", fresh = "a new coin" }
judged = "fixed"
cells = [{ n = [10, 20], side = "left", bias = [0.5], method = ["tossed", "default"] }]
[[explained]]
where = { n = 20, method = "tossed" }
why = "The print's coin was bent <twice>."
"""
PRINT = """side,n,method,quantity,value
left,10,tossed,heads,0.50
left,20,tossed,heads,0.90
left,20,other,heads,0.50
"""
FIGURE = """
title = "Figure 1. Coins over n"
recipe = "coin"
replications = 40
rows = ["n"]
quantities = ["heads"]
cells = [{ n = [10, 20], side = "left", bias = [0.3, 0.5], method = ["tossed", "default"] }]
figure = { kind = "lines", x = "n", y = ["heads"], series = "method", panels = ["bias"], reference = { heads = 0.5 } }
"""
REAL = """
title = "Table 2. Real coins"
recipe = "coin"
replications = 40
data = ["coins"]
rows = ["n"]
quantities = ["heads"]
cells = [{ n = 10, side = "left", bias = 0.5, method = "tossed" }]
"""


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
    """Toss coins."""
    tossed = dice(seed).generator().random((replications, int(setting["n"])))
    hits = tossed < float(setting["bias"])
    measures = {"heads": share(hits[:, 0]), "length": exact(1 / 3)}
    fresh = {"heads": mean(hits.mean(axis=1)), "length": exact(0.25)}
    return [
        Row({"reading": "fixed"}, measures, {"shares": hits.mean(axis=1).tolist()}),
        Row({"reading": "fresh"}, fresh, {"shares": hits.mean(axis=1).tolist()}),
    ]


COIN = SimpleNamespace(VERSION=1, run=run, cost=lambda setting, replications: 0.5)


@pytest.fixture
def coin() -> SimpleNamespace:
    """Return the recipe, to be changed by a test."""
    return SimpleNamespace(**vars(COIN))


@pytest.fixture
def papers(tmp_path: Path, coin: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write the paper, and have it and its recipe found; workers are threads, which see the same recipe."""
    from joblib import parallel_config

    folder = tmp_path / "papers" / PAPER
    folder.mkdir(parents=True)
    for name, text in {"table-1": TABLE, "table-2": REAL, "figure-1": FIGURE}.items():
        (folder / f"{name}.toml").write_text(text)
    (folder / "table-1.print.csv").write_text(PRINT)
    found: Any = coin
    monkeypatch.setattr(recipes, "find", lambda name: found)
    monkeypatch.setattr(catalogue, "papers_folder", lambda: folder.parent)
    monkeypatch.chdir(tmp_path)
    with parallel_config(backend="threading"):
        yield folder

"""The page on prediction sets: its Python runs, block after block, and its tables are those of the code."""

import importlib
import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.core.arrays import Words
from sottovoce.core.random_source import SystemEntropy
from sottovoce.server.conformal.coverage import equal
from sottovoce.server.conformal.coverage.choose import infinite
from sottovoce.server.conformal.plan import ConformalPlan, SiteFacts, plan
from sottovoce.server.conformal.settings import check_settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "conformal.md").read_text()
COLUMN = re.compile(r"\s*\|\s*")
UNCOMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
Names = dict[str, Any]

threads: Any = importlib.import_module("threadpoolctl")


def table(after: str) -> dict[str, list[str]]:
    """Return the rows of the first table after some words, by their first cell."""
    found = re.search(r"(?:^\|.*\n)+", PAGE[PAGE.index(after) :], re.MULTILINE)
    assert found is not None
    rows = [COLUMN.split(line.strip().strip("|").strip()) for line in found.group().splitlines()[2:]]
    return {row[0]: row[1:] for row in rows}


def shape(cell: str) -> tuple[int, int]:
    sites, scores = cell.replace(",", "").split(" x ")
    return int(sites), int(scores)


def planned(sizes: list[int], epsilon: float = math.inf, statistics: int = 1, rule: str = "closest") -> ConformalPlan:
    """Return what sites would be asked for a coverage of .9, on 100 steps where they are private."""
    private = math.isfinite(epsilon)
    settings = check_settings(0.1, "marginal", 0.1, rule, statistics, False, "sparse-vector", private)
    return plan([SiteFacts(size, epsilon) for size in sizes], settings, 101 if private else 0)


def written(value: float, like: str) -> str:
    """Write a number as the page does: with as many digits, and no zero before the point."""
    return f"{value:.{len(like.partition('.')[2])}f}".removeprefix("0")


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Names:
    """Run every block on its own, the system's words drawn from a seed, in one thread: what passes once passes always.

    What the blocks define is returned together: of names in several blocks the last, and the first ``t`` as ``first``.
    """
    found: Names = {}
    seeded = sv.sim.dice(7)

    def words(_: SystemEntropy, n: int) -> Words:
        return seeded.words(n)

    with pytest.MonkeyPatch.context() as patched, threads.threadpool_limits(1):
        patched.setattr(SystemEntropy, "words", words)
        patched.chdir(tmp_path_factory.mktemp("page"))
        for block in re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE):
            alone: Names = {}
            exec(compile(block, "conformal.md", "exec"), alone)
            found.setdefault("first", alone.get("t"))
            found.update(alone)
    return found


def test_the_blocks_run_and_keep_their_promises(names: Names) -> None:
    assert names["first"].coverage == pytest.approx(0.9023, abs=5e-5)
    assert names["p"].private
    assert names["p"].coverage >= 0.9
    assert names["p"].epsilon["hospital 1"] <= 1
    assert names["private"].threshold_.edges == tuple(names["grid"])
    assert names["q"].private
    assert names["c"].threshold_.coverage >= 0.95
    assert names["sets"].shape == (200, 10)


def test_the_average_of_quantiles_covers_what_the_page_says(names: Names) -> None:
    # four thousand averages of a hundred sites: a standard error of 1e-4
    assert np.mean(1 - np.exp(-names["late"].max(axis=2).mean(axis=1))) == pytest.approx(0.946, abs=1e-3)
    assert np.mean((names["average"] > 0.01) & (names["average"] < 1)) == 1
    assert np.mean(names["right"] < 0.5) == pytest.approx(0.85, abs=1e-3)


def test_what_is_said_of_ten_hospitals(names: Names) -> None:
    t = names["first"]
    assert [written(t.at_least(level), ".593") for level in (0.9, 0.88)] == [".593", ".961"]
    for told in (".9023 on average", "standard deviation of .0120", "probability .593", "or more with .961"):
        assert told in PAGE


def test_the_orders_and_ranks() -> None:
    for cell, (paper, closest, three, together) in table("## Which order, which rank").items():
        sites, scores = shape(cell)
        for rule, told in ((equal.argmin, paper), (equal.closest, paper if closest == "the same" else closest)):
            pair = rule(sites, scores, 0.1)
            assert pair is not None
            place, _, figures = told.partition(") ")
            mean, spread, low = figures.split()
            assert place == f"({pair.order}, {pair.rank}"
            assert [written(pair.mean, mean), written(pair.sd, spread)] == [mean, spread]
            assert equal.probability(sites, scores, pair.order, pair.rank, float(low) - 5e-4) >= 0.95
            assert equal.probability(sites, scores, pair.order, pair.rank, float(low) + 5e-4) <= 0.95
        if not UNCOMPILED or sites * scores <= 1000:
            choice = planned([scores] * sites, statistics=3).choice
            assert three == " ".join(written(value, ".9014") for value in (choice.mean, choice.sd))
        one = equal.closest(1, sites * scores, 0.1)
        assert one is not None
        assert written(one.sd, together) == together


def test_the_guarantee_of_one_calibration() -> None:
    for cell, told in table("used as a rule").items():
        sites, scores = shape(cell)
        made = (
            equal.theorem(sites, scores, 0.1, 0.1),
            equal.conditional(sites, scores, 0.1, 0.1),
            equal.conditional(1, sites * scores, 0.1, 0.1),
        )
        assert [written(pair.mean, told[0]) for pair in made if pair is not None] == told


SIZES = {
    "15 of 20 scores, 5 of 1,000": [20] * 15 + [1000] * 5,
    "50 of 3 to 40, evenly": np.linspace(3, 40, 50).round().astype(int).tolist(),
    "50 of 10 to 2,000, in equal ratios": np.geomspace(10, 2000, 50).round().astype(int).tolist(),
    "1,000 of 10 to 2,000, in equal ratios": np.geomspace(10, 2000, 1000).round().astype(int).tolist(),
}


@pytest.mark.skipif(UNCOMPILED, reason="a thousand sites take minutes when they are not compiled")
@pytest.mark.parametrize("name", SIZES)
def test_the_votes(name: str) -> None:
    told = table("## Sites of unequal size")[name]
    for (rule, statistics), spread in zip((("paper", 1), ("closest", 1), ("closest", 3)), told, strict=False):
        made = planned(SIZES[name], statistics=statistics, rule=rule)
        assert written(made.choice.sd, spread) == spread
    together = equal.closest(1, sum(SIZES[name]), 0.1)
    assert together is not None
    assert written(together.sd, told[3]) == told[3]


def test_the_budgets() -> None:
    rows = table("By sites and budget")
    budgets = [0.1, 0.25, 0.5, 1.0, 2.0, 5.0]
    for cell, told in rows.items():
        sites, scores = shape(cell)
        plain = equal.closest(sites, scores, 0.1)
        assert plain is not None
        assert written(plain.sd, told[-1]) == told[-1]
        for epsilon, text in zip(budgets, told, strict=False):
            made = planned([scores] * sites, epsilon)
            spread, _, rest = text.partition(", ")
            assert abs(made.choice.sd - float(spread)) < 0.06 * float(spread)
            chance = 100 * infinite(made.kinds, made.number, made.choice)
            assert abs(chance - float(rest.removesuffix(" % infinite") or 0)) < 1
    assert len(rows) == 5


def test_the_pictures_are_small() -> None:
    for name in ("conformal-flights.png", "conformal-taxi.png"):
        assert f"({name})" in PAGE
        assert (ROOT / "docs" / name).stat().st_size < 150_000


def test_no_figure_is_left_open() -> None:
    assert "<!--" not in PAGE

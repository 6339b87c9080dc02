"""The simulated tables and figures of the paper on federated quantiles: each printed number has its cell."""

import os

import numpy as np
import pytest

from sottovoce_papers import recipes
from sottovoce_papers.harness import catalogue
from sottovoce_papers.harness.cell import Cell, Row, Value, plain
from sottovoce_papers.harness.item import Item
from sottovoce_papers.recipes.federated import effort, oracle, path, staged, walk
from sottovoce_papers.simulation.federated.staged import Found

compiled = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="too long uncompiled")
ITEMS = {
    item.name: item
    for item in catalogue.items(catalogue.papers_folder(), "federated-quantile")
    if item.name != "table-3"
}
PRINTED = {"1": 288, "2": 216, "s2": 216, "s3": 216, "s4": 108, "s5": 144, "s6": 216, "s7": 216, "s8": 84, "s9": 72}
SMALL: dict[str, Value] = {"family": "normal", "scenario": "Homo", "records": 40, "tau": "low", "rate": "hetero"}


def places(item: Item) -> list[dict[str, Value]]:
    """Return where an item's cells put numbers."""
    found: list[dict[str, Value]] = []
    for recipe, setting, _ in item.settings():
        two = recipe == "federated.oracle"
        found += [{**setting, "method": name} for name in ("Normal", "SN")] if two else [dict(setting)]
    return found


def run(recipe: str, setting: dict[str, Value], replications: int = 3, seed: int = 1) -> list[Row]:
    return recipes.run(Cell(recipe, setting, replications, seed, "1"), None)


@pytest.mark.parametrize("name", sorted(ITEMS))
def test_each_printed_number_has_one_cell_a_reading(name: str) -> None:
    item = ITEMS[name]
    printed, cells = item.printed(), places(item)
    assert len(printed) == PRINTED.get(name.removeprefix("table-"), 72 if name == "table-s10" else 0)
    keys = [key for key in (printed[0] if printed else {}) if key not in ("quantity", "value")]
    readings: dict[tuple[str, ...], list[str]] = {}
    for cell in cells:
        readings.setdefault(tuple(plain(cell[key]) for key in keys), []).extend(walk.readings_of(cell))
    for line in printed:
        found = readings[tuple(plain(line[key]) for key in keys)]
        assert sorted(found) == ["authors", "fresh"]
    assert item.kind == "figure" or any(cell["method"] == "default" for cell in cells)


@pytest.mark.parametrize("method", ["C1", "C5", "Log", "DP-SGD (C1)", "DC", "Single"])
def test_a_cell_is_the_same_again_and_not_with_other_dice(method: str) -> None:
    setting = {**SMALL, "method": method, "reading": "fresh"}
    assert run("federated.walk", setting) == run("federated.walk", setting)
    assert run("federated.walk", setting) != run("federated.walk", setting, seed=2)
    (row,) = run("federated.walk", setting)
    assert set(row.measures) == {"coverage", "mae", "length"}
    assert walk.cost(setting, 1000) > walk.cost(setting, 10)


def test_what_a_setting_changes() -> None:
    usual = {**SMALL, "method": "C5", "reading": "fresh"}
    same = run("federated.walk", usual)[0].measures
    for other in ({"offset": 50}, {"power": 0.7}, {"constant": 30}, {"answering": 5}, {"topology": "ring"}):
        assert run("federated.walk", {**usual, **other})[0].measures != same
    many = {**usual, "rounds": 40}
    del many["records"]
    assert walk.rounds_of(many).sum() == 2 + 5 * 38


def test_one_data_set_serves_all_rates() -> None:
    setting = {**SMALL, "method": "C1", "reading": "authors"}
    one, two = (walk.plan_of({**setting, "rate": rate}, walk.scene_of(setting)).data for rate in (0.25, 0.9))
    assert one is not None
    assert two is not None
    assert (one == two).all()
    assert run("federated.walk", setting) != run("federated.walk", {**setting, "data_seed": 2})


def test_what_the_authors_drew_anew_stands_under_both_readings() -> None:
    setting = {**SMALL, "method": "Single", "reading": "both"}
    theirs, fresh = run("federated.walk", setting)
    assert (theirs.where["reading"], fresh.where["reading"]) == ("authors", "fresh")
    assert theirs.measures == fresh.measures


def test_sites_that_do_not_talk_go_to_their_own_levels() -> None:
    setting = {**SMALL, "method": "DC", "reading": "fresh"}
    assert (
        run("federated.walk", setting)[0].measures != run("federated.walk", {**setting, "levels": "common"})[0].measures
    )


def test_both_intervals_stand_around_the_same_estimates() -> None:
    normal, own = run("federated.oracle", {**SMALL, "reading": "fresh"})
    assert (normal.where["method"], own.where["method"]) == ("Normal", "SN")
    assert normal.measures["mae"] == own.measures["mae"]
    scene = walk.scene_of({**SMALL, "rate": 0.25, "tau": 0.5})
    assert 200 * oracle.oracle_half(scene, 10_000) == pytest.approx(6.215, abs=2e-3)


@compiled
def test_a_run_is_told_from_beginning_to_end() -> None:
    rows = path.run({**SMALL, "records": 2000, "method": "C5", "reading": "fresh"}, 1, 3, None)
    assert [row.where["line"] for row in rows] == ["estimate", "low", "high", "truth"]
    assert rows[0].curves["t"][-1] == 2000
    assert all(low < at < high for at, low, high in zip(*(row.curves["value"] for row in rows[:3]), strict=True))
    default = path.run({**SMALL, "records": 2000, "method": "default"}, 1, 3, None)
    assert 1 <= len(default[0].curves["t"]) < 20


def test_talk_is_counted() -> None:
    (row,) = effort.run({**SMALL, "method": "C5", "reading": "fresh"}, 2, 1, None)
    assert row.measures["rounds"].value == 2 + 8
    assert row.where["talk"] == 200
    (alone,) = effort.run({**SMALL, "method": "DC", "reading": "fresh"}, 2, 1, None)
    assert alone.measures["messages"].value == 20


def test_the_default_counts_its_certified_runs() -> None:
    (row,) = staged.run({**SMALL, "records": 1000, "rate": 0.9}, 2, 1, None)
    assert {"coverage", "mae", "length", "rounds", "certified", "open"} == set(row.measures)
    assert row.measures["certified"].value == 0
    (few,) = staged.run({**SMALL, "records": 60, "rate": 0.9}, 2, 1, None)
    assert few.measures["certified"].value == 1


def test_an_interval_without_an_end_has_no_length() -> None:
    scene = walk.scene_of({**SMALL, "tau": 0.5})
    ends = np.array([-1.0, -2.0]), np.array([1.0, np.inf])
    measures = staged.measured(scene, Found(np.zeros(2), *ends, np.full(2, 20.0), np.array([False, True])))
    assert measures["length"].value == 2.0
    assert measures["coverage"].value == 1.0
    assert (measures["open"].value, measures["certified"].value) == (0.5, 0.5)

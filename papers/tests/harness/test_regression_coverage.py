"""Coverage tables of the paper on online quantile regression: statistics, summaries, and what the TOML files say."""

import numpy as np
import pytest

from sottovoce.inference.common import groups
from sottovoce.inference.regression import higrad
from sottovoce.inference.regression.higrad import Tree
from sottovoce.sim.randomness import dice
from sottovoce_papers.harness import catalogue
from sottovoce_papers.harness.cell import Row, Value
from sottovoce_papers.harness.compare import compared
from sottovoce_papers.harness.measure import Measure
from sottovoce_papers.harness.study import derived
from sottovoce_papers.recipes.regression import coverage_tables, coverage_theory, tree
from sottovoce_papers.recipes.regression.coverage_rows import FINAL, at, rows_of
from sottovoce_papers.simulation.regression import single, studentised, walk
from sottovoce_papers.simulation.regression.cell import Cell
from sottovoce_papers.simulation.regression.dice import seeded
from sottovoce_papers.simulation.regression.inferred import segment_averages
from sottovoce_papers.simulation.regression.studentised import Covered

TABLES = ["table-7", "table-16", "table-17", "table-18", "table-19", "table-20"]


def test_groups_are_the_packages_own() -> None:
    centres = dice(1).generator().normal(0.1, 1.0, (3, 7, 2))
    found = studentised.groups(centres)
    for r, rows in enumerate(centres):
        low, high = groups.interval(rows, [0.0, 1.0], 0.95)
        region = groups.ellipsoid(rows, 0.95)
        assert found.lengths[r, 1] == pytest.approx(high - low)
        assert found.volume[r] == pytest.approx(region.volume)
        assert found.ellipsoid[r] == region.contains([0.0, 0.0])


def test_trees_are_the_packages_own() -> None:
    plan = Tree((4, 4), 2100)
    segments = dice(2).generator().normal(0.2, 1.0, (3, plan.nodes, 2))
    found = studentised.tree(plan, segments)
    for r, rows in enumerate(segments):
        low, high = higrad.interval(plan, rows, [1.0, 1.0], 0.95)
        assert found.dense_length[r] * np.sqrt(2) == pytest.approx(high - low)
        assert found.dense[r] == (low <= 0 <= high)
        assert found.volume[r] == pytest.approx(higrad.ellipsoid(plan, rows, 0.95).volume)


def test_segments_continue_point_and_time() -> None:
    cell, plan = Cell(0.5, 1, 2.0), Tree((1, 2), 400)
    averages = segment_averages(cell, plan, 9)
    # Root and its only child are one uninterrupted walk on the same dice.
    state = walk.begin(cell.beta, np.zeros(2), seeded(9))
    for n in (100, 200):
        with np.errstate(over="ignore"):
            single.advance(state, cell.kernel_input(), n - 100, n, False)
        assert averages[: n // 100].mean(0) == pytest.approx(walk.average(state, n))
    assert not np.allclose(averages[2], averages[3])


def test_extremes_are_those_of_batches() -> None:
    curves = {"coordinate_0": [0.9, 0.96], "coordinate_1": [0.94, 0.92]}
    measures = {f"coverage_{name}": Measure(float(np.mean(rates)), 0.01, 1000) for name, rates in curves.items()}
    place: dict[str, Value] = {"tau": 0.5, "p": 1, "epsilon": 2, "n": FINAL, "method": "SN", "reading": "predicted"}
    row = coverage_tables.extremes([Row(place, measures, curves)])[0]
    assert row.measures["coverage_coordinate_min"].value == pytest.approx((0.9 + 0.92) / 2)
    assert row.measures["coverage_coordinate_max"].value == pytest.approx((0.94 + 0.96) / 2)
    mean = coverage_tables.by_budget([Row(place, measures, curves)] * 2)[0].measures["coverage_coordinate_mean"]
    assert mean.value == pytest.approx(0.93)
    assert mean.error == pytest.approx(0.005)


def test_sizes_at_another_horizon_are_carried_over() -> None:
    place: dict[str, Value] = {"p": 2, "n": FINAL // 100, "method": "SN"}
    measures = {"length_dense": Measure(1.0, 0.1, 9), "volume_ellipsoid": Measure(1.0, 0.1, 9)}
    found = coverage_tables.brief([Row(place, measures)])[0].measures
    assert found["length_dense"].value == pytest.approx(0.1)
    assert found["volume_ellipsoid"].value == pytest.approx(1e-3)


def test_theory_is_repeatable_and_tells_the_defaults_sizes() -> None:
    setting: dict[str, Value] = {"tau": 0.75, "p": 1, "epsilon": "inf", "n": FINAL}
    one, two = (coverage_theory.run(setting, 20, 7, None) for _ in range(2))
    assert one == two
    default = next(row for row in one if row.where["method"] == "default")
    plain = next(row for row in one if row.where["method"] == "SN")
    assert default.measures["length_coordinate_0"].value < plain.measures["length_coordinate_0"].value


def test_tree_table_is_the_printed_one() -> None:
    item = catalogue.items(catalogue.papers_folder(), "online-quantile-regression", "table-11")[0]
    rows = tree.run(item.settings()[0][1], 0, 1, None)
    numbers = compared(item, rows)
    assert len(numbers) == 20
    assert all(number.agrees for number in numbers)


@pytest.mark.parametrize("name", TABLES)
def test_every_printed_number_has_its_place(name: str) -> None:
    item = catalogue.items(catalogue.papers_folder(), "online-quantile-regression", name)[0]
    rows = []
    for recipe, setting, _ in item.settings():
        if recipe != "regression.coverage_theory" or setting["n"] != FINAL:
            continue
        d = int(setting["p"]) + 1
        hits, sizes = np.ones(500, dtype=bool), np.ones(500)
        fake = Covered(np.ones((500, d), dtype=bool), np.ones((500, d)), hits, sizes, hits, sizes, np.zeros((500, d)))
        methods = ["SN", "DC", *(studentised.method_name(branching) for branching in studentised.TREES)]
        rows += [
            Row({**setting, **row.where}, row.measures, row.curves)
            for row in rows_of(dict.fromkeys(methods, fake), "predicted")
        ]
    numbers = compared(item, derived(item, rows))
    assert numbers
    assert all("predicted" in number.found for number in numbers)


def test_horizons_are_named() -> None:
    assert [at(10**6), at(10**7)] == ["1e6", "1e7"]

"""The tables and figures of the paper on data integration: described rightly, and the same whenever they are run."""

import os
from pathlib import Path

import pytest

from sottovoce.core.errors import BadInput
from sottovoce_papers.harness import catalogue, compare, runner, study
from sottovoce_papers.harness.cell import Value
from sottovoce_papers.recipes.integration import shifts as recipe
from sottovoce_papers.simulation.integration.comparison import Scene
from sottovoce_papers.simulation.integration.shifts import patterns

compiled = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="too long uncompiled")
ITEMS = {item.name: item for item in catalogue.items(catalogue.papers_folder(), "data-integration")}
SMALL: dict[str, Value] = {"n0": 600, "rate": 0.9, "chains": 4, "source_chains": 4}


def test_every_table_and_figure_is_there() -> None:
    assert set(ITEMS) == {"table-1", "table-b1", "table-b2", "figure-2", *(f"figure-b{i}" for i in range(1, 8))}


@pytest.mark.parametrize("name", sorted(ITEMS))
def test_its_cells_can_be_planned(name: str) -> None:
    item = ITEMS[name]
    cells = [setting for recipe_name, setting, _ in item.settings() if recipe_name == "integration.shifts"]
    for setting in cells:
        scene = recipe.scene_of(setting)
        assert scene.target().n == int(setting["n0"])
        assert patterns(str(setting["shifts"]), scene.sources, scene.n)
    assert all(seconds > 0 for seconds in runner.plan([item]).costs.values())


def test_the_levels_are_those_of_table_b1(tmp_path: Path) -> None:
    [outcome] = study.reproduce([ITEMS["table-b1"]], tmp_path)
    tally = compare.tally(outcome.numbers)
    assert (tally.printed, tally.agreeing, tally.missing) == (27, 27, 0)


@compiled
def test_every_number_of_table_b2_has_its_row(tmp_path: Path) -> None:
    [outcome] = study.reproduce([ITEMS["table-b2"]], tmp_path, replications=2)
    assert len(outcome.numbers) == 81
    assert all(set(number.found) == {"w", "w2"} for number in outcome.numbers)
    assert sum(number.comparable for number in outcome.numbers) == 54
    unprinted = {(row.where["bias"], row.where["method"]) for row in outcome.rows}
    assert {(0.05, "ADP(1)"), (0.082, "ADP(cons)"), (0.135, "Target"), (1.0, "default")} <= unprinted


def test_a_panel_is_the_same_again_and_not_with_other_dice() -> None:
    setting: dict[str, Value] = {"shifts": "none", **SMALL}
    rows = recipe.run(setting, 3, 5, None)
    assert rows == recipe.run(setting, 3, 5, None)
    assert rows != recipe.run(setting, 3, 6, None)
    assert [row.where["method"] for row in rows][-2:] == ["Target", "default"]
    assert all(set(row.measures) == {"log_mse", "coverage", "length"} for row in rows)


def test_along_an_axis_only_the_sources_move() -> None:
    setting: dict[str, Value] = {"shifts": "levels", **SMALL}
    rows = {(row.where["level"], row.where["method"]): row.measures for row in recipe.run(setting, 4, 5, None)}
    assert rows[1, "Target"] == rows[9, "Target"]
    # a strong bias is 100 / sqrt(600) = 4 standard deviations: whoever ignores shifts is carried away
    assert rows[9, "IVW"]["log_mse"].value > rows[1, "IVW"]["log_mse"].value + 3
    assert rows[9, "IVW"]["coverage"].value == 0


def test_what_a_panel_does_not_say_is_as_in_the_text() -> None:
    assert recipe.scene_of({"shifts": "none"}) == Scene()
    assert recipe.scene_of({"target_rate": 1.0, "rate": 0.25, "beta": 0.7}) == Scene(
        target_rate=1.0, source_rate=0.25, power=0.7
    )
    assert Scene().records == 200_000
    with pytest.raises(BadInput, match="three sources"):
        patterns("levels", 4, 100)

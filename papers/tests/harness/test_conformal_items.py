"""The figures of the conformal paper as described: all there, cells shared, every printed number with a row."""

from pathlib import Path

import pytest

from sottovoce_papers import recipes
from sottovoce_papers.harness import catalogue, compare
from sottovoce_papers.harness.cell import Row, Value
from sottovoce_papers.harness.item import Item
from sottovoce_papers.harness.measure import Measure
from sottovoce_papers.recipes.conformal import real
from sottovoce_papers.simulation.conformal.data_sets import SHAPES

ITEMS = {item.name: item for item in catalogue.items(catalogue.papers_folder(), "one-shot-conformal")}
METHODS = ("FedCP-QQ", "central", real.MEAN, real.UPPER, "default")
CAPTIONS = {5: (100, 10), 6: (10, 100), 9: (80, 10), 10: (10, 80), 13: (40, 10), 14: (10, 40)}


def rows_of(item: Item, splits: int = 4) -> list[Row]:
    """Return rows as the cells of a real-data figure would give them, without any data."""
    rows = []
    for place, (_, setting, _) in enumerate(item.settings()):
        for shape in (real.MANY, real.FEW):
            sites, n = int(setting["sites"]), int(setting["n"])
            turned: dict[str, Value] = {"sites": sites, "n": n} if shape == real.MANY else {"sites": n, "n": sites}
            for method in METHODS:
                values = [0.9 + 0.01 * place + 0.001 * i + (method == real.UPPER) for i in range(splits)]
                measures = {
                    name: Measure(values[0], 0.01, splits) for name in ("coverage", "spread", "length", "ratio")
                }
                curves = {"coverages": values, "lengths": values, "ratios": values}
                rows.append(Row({**setting, **turned, "shape": shape, "method": method}, measures, curves))
    return rows


def test_every_figure_is_there_and_its_recipe_too() -> None:
    assert set(ITEMS) == {f"figure-{i}" for i in range(1, 16)}
    for item in ITEMS.values():
        for recipe, setting, often in item.settings():
            assert recipes.cost(recipe, setting, max(often, 1)) > 0
        assert (Path(item.folder) / f"{item.name}.print.csv").exists() == (item.name == "figure-4")


def test_figures_of_one_data_set_have_the_cells_of_the_figure_of_all() -> None:
    whole = [setting for _, setting, _ in ITEMS["figure-4"].settings()]
    assert len(whole) == 3 * (len(SHAPES) + 1)
    for i in range(5, 15):
        mine = [setting for _, setting, _ in ITEMS[f"figure-{i}"].settings()]
        assert all(setting in whole for setting in mine)
    for name, (sites, n) in SHAPES.items():
        stated = [s for s in whole if s["data_set"] == name and s.get("reading") != real.RELEASED]
        assert {(setting["sites"], setting["n"]) for setting in stated} == {(sites, n)}


@pytest.mark.parametrize("number", CAPTIONS)
def test_a_figure_shows_the_sites_of_its_caption(number: int) -> None:
    item = ITEMS[f"figure-{number}"]
    chosen = (real.many if number % 2 else real.few)(rows_of(item))
    assert item.derive == ("conformal.real:many" if number % 2 else "conformal.real:few")
    assert {(row.where["sites"], row.where["n"]) for row in chosen} == {CAPTIONS[number]}
    assert {row.where["method"] for row in chosen} == set(METHODS) - ({real.UPPER} if number % 2 else set())


def test_every_printed_number_has_a_row_under_both_readings() -> None:
    item = ITEMS["figure-4"]
    numbers = compare.compared(item, real.pooled(rows_of(item)))
    assert len(numbers) == 13
    assert all(set(number.found) == {real.RELEASED, real.CAPTIONS} for number in numbers)


def test_pooling_takes_fifteen_cells_a_reading_and_the_average_of_that_reading() -> None:
    rows = real.pooled(rows_of(ITEMS["figure-4"], splits=4))
    assert {len(row.curves["coverages"]) for row in rows} == {15 * 4}
    assert {row.where["method"] for row in rows} == set(METHODS) - {real.UPPER}
    one = {(row.where["reading"], row.where["method"]): row.measures["coverage"] for row in rows}
    assert one[real.RELEASED, real.MEAN].value > 1.5 > one[real.CAPTIONS, real.MEAN].value
    assert one[real.CAPTIONS, "central"].error == pytest.approx(0.01 / 15**0.5)
    # the cells stand in the order bio, bike as captioned, bike as released, and three more
    stated = [0.9 + 0.01 * place for place in (*range(6), *range(9, 18))]
    assert one[real.CAPTIONS, "central"].value == pytest.approx(sum(stated) / 15)

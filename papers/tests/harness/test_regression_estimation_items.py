"""The files of Tables 2 to 6 and 12 to 15 and of Figure 1: printed places that rows match, errors that follow."""

import math
from functools import cache

import pytest

from sottovoce_papers.harness import catalogue, draw
from sottovoce_papers.harness.cell import Row, matches
from sottovoce_papers.harness.compare import compared, tally
from sottovoce_papers.harness.item import Item
from sottovoce_papers.harness.study import Outcome, derived
from sottovoce_papers.recipes.regression import closed_form, support

TABLES = ("table-2", "table-3", "table-4", "table-5", "table-6", "table-12", "table-13", "table-14", "table-15")


def item(name: str) -> Item:
    return catalogue.items(catalogue.papers_folder(), "online-quantile-regression", name)[0]


@cache
def closed() -> list[Row]:
    """Return the closed forms of two budgets and none; the default's channel, which takes long, is left out."""
    found = []
    for recipe, setting, _ in [*item("table-4").settings(), *item("table-5").settings()]:
        if recipe == "regression.closed_form" and setting["epsilon"] == "inf":
            found += [Row({**setting, **row.where}, row.measures) for row in closed_form.run(setting, 0, 1, None)]
    return found


@pytest.mark.parametrize("name", TABLES)
def test_every_cell_has_a_recipe_and_print_places_have_cells(name: str) -> None:
    one = item(name)
    settings = [setting for _, setting, _ in one.settings()]
    assert one.printed()
    for line in one.printed():
        wanted = {key: text for key, text in line.items() if key in ("tau", "p", "epsilon")}
        assert any(matches(setting, dict(wanted)) for setting in settings), line
        assert math.isfinite(float(line["value"]))
        assert line["quantity"] in one.quantities


@pytest.mark.parametrize(
    ("name", "printed", "comparable"), [("table-4", 38, 38), ("table-5", 24, 24), ("table-2", 96, 0)]
)
def test_prints_are_whole(name: str, printed: int, comparable: int) -> None:
    numbers = compared(item(name), [])
    assert len(numbers) == printed
    assert sum(number.comparable for number in numbers) == comparable


def test_numbers_without_privacy_agree_and_carry_the_errors_of_500_runs() -> None:
    for name, count in (("table-4", 2), ("table-5", 8)):
        one = item(name)
        found = compared(one, derived(one, closed()))
        assert tally(found).agreeing == count
    for line in item("table-4").printed():
        if line["epsilon"] == "inf":
            row = next(
                row for row in closed() if matches(row.where, {"tau": line["tau"], "p": 2, "method": "nonprivate"})
            )
            error = row.measures["error"].value * row.measures["spread"].value / math.sqrt(500)
            assert float(line["error"]) == pytest.approx(error, rel=0.2)  # drawn 400 times: 3.5 % each


def test_the_picture_of_the_two_faces() -> None:
    figure = item("figure-1")
    rows = []
    for _, setting, _ in figure.settings():
        rows += [Row({**setting, **row.where}, row.measures, row.curves) for row in support.run(setting, 0, 7, None)]
    for row in rows:
        expected = 0.0 if row.where["method"] == "Direct Laplace" else 1.0
        assert row.measures["on support"].value == expected
    assert draw.available()
    picture = draw.draw(Outcome(figure, rows, [], 0))
    assert picture is not None
    assert len(picture.axes) == 6
    assert len(draw.png(picture)) > 10_000

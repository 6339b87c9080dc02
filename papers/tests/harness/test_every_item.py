"""Every table and figure of `papers/` is described in full: recipes exist, and each printed number has a place."""

import csv
import importlib
import tomllib
from pathlib import Path

import pytest

from sottovoce_papers import recipes
from sottovoce_papers.harness import catalogue
from sottovoce_papers.harness.item import Item

PAPERS = catalogue.papers_folder()
ITEMS = catalogue.items(PAPERS)
every_item = pytest.mark.parametrize("item", ITEMS, ids=[f"{item.paper}/{item.name}" for item in ITEMS])
TABLES = {
    "federated-quantile": ["1", "2", "3", *(f"s{k}" for k in range(2, 11))],
    "online-quantile-regression": [str(k) for k in range(2, 21)],
    "data-integration": ["1", "b1", "b2"],
    "one-shot-conformal": [],
}
FIGURES = {
    "federated-quantile": [f"s{k}" for k in range(1, 5)],
    "online-quantile-regression": ["1"],
    "data-integration": ["2", *(f"b{k}" for k in range(1, 8))],
    "one-shot-conformal": [str(k) for k in range(1, 16)],
}


@pytest.mark.parametrize("paper", TABLES)
def test_no_table_or_figure_is_left_out(paper: str) -> None:
    found = {item.name for item in ITEMS if item.paper == paper}
    assert found == {f"table-{name}" for name in TABLES[paper]} | {f"figure-{name}" for name in FIGURES[paper]}


@pytest.mark.parametrize("paper", TABLES)
def test_every_paper_has_a_page_of_its_own(paper: str) -> None:
    text = (PAPERS / paper / "README.md").read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert len(text) > 1500


@every_item
def test_the_recipes_of_an_item_exist(item: Item) -> None:
    settings = item.settings()
    assert settings
    for name in {recipe for recipe, _, _ in settings}:
        assert isinstance(recipes.find(name).VERSION, int)
    for recipe, setting, replications in settings:
        assert recipes.cost(recipe, setting, replications) > 0


@every_item
def test_an_item_says_what_is_run(item: Item) -> None:
    assert item.title.lower().startswith(item.name.replace("-", " ").split()[0])
    assert len(item.about) > 80
    for function, room in ((item.derive, "sottovoce_papers.recipes"), *_drawing(item)):
        if function:
            module, _, name = function.partition(":")
            assert callable(getattr(importlib.import_module(f"{room}.{module}"), name))


def _drawing(item: Item) -> list[tuple[str, str]]:
    return [] if item.figure is None else [(item.figure.draw, "sottovoce_papers.harness")]


@every_item
def test_a_table_has_its_print(item: Item) -> None:
    lines = item.printed()
    if item.kind == "table":
        assert lines
    for line in lines:
        assert line["quantity"]
        float(line["value"])
    places = [tuple(value for key, value in line.items() if key not in ("value", "error", "note")) for line in lines]
    assert len(set(places)) == len(places)


@every_item
def test_an_explanation_speaks_of_numbers_that_are_printed(item: Item) -> None:
    from sottovoce_papers.harness.cell import matches

    lines = item.printed()
    for note in item.explained:
        assert len(note.why) > 20
        if lines:
            assert any(matches(dict(line), note.where) for line in lines), note.where


@every_item
def test_the_default_stands_beside_the_paper(item: Item) -> None:
    with item.ours_file.open(newline="", encoding="utf-8") as lines:
        recorded = list(csv.DictReader(lines))
    assert recorded
    if item.kind == "table" and item.name not in ("table-b1", "table-8", "table-11"):  # definitions, not methods
        assert "default" in {line.get(item.columns) for line in recorded}


def test_every_file_is_found() -> None:
    paths = set(Path(PAPERS).glob("*/*.toml"))
    assert len(paths) == len(ITEMS)
    for path in paths:
        tomllib.loads(path.read_text(encoding="utf-8"))

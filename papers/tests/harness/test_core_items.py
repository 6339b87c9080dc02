from pathlib import Path

import pytest

from sottovoce.core.errors import BadInput
from sottovoce_papers.harness import catalogue
from sottovoce_papers.harness.cell import Row, Value, matches
from sottovoce_papers.harness.compare import Index, compared, rounding, tally, total_error
from sottovoce_papers.harness.item import Item, read_item
from sottovoce_papers.harness.measure import Measure

TABLE = """
title = "Table 1. Something"
recipe = "tiny.coin"
replications = 1000
printed_replications = 400
rows = ["rate"]
quantities = ["coverage"]
judged = "fresh"
[[cells]]
rate = [0.25, "hetero"]
method = ["C1", "C5"]
reading = ["fresh", "fixed"]
[[cells]]
recipe = "tiny.default"
replications = 7
rate = [0.25, "hetero"]
method = "default"
[[explained]]
where = { method = "C5" }
why = "One data set was used."
"""
PRINT = "rate,method,quantity,value\n0.25,C1,coverage,0.950\nhetero,C1,coverage,0.90\n0.250,C5,coverage,1.000\n"


@pytest.fixture
def table(tmp_path: Path) -> Item:
    folder = tmp_path / "a-paper"
    folder.mkdir()
    (folder / "table-1.toml").write_text(TABLE)
    (folder / "table-1.print.csv").write_text(PRINT)
    return read_item(folder / "table-1.toml")


def row(rate: Value, method: str, reading: str, value: float, n: int = 100) -> Row:
    return Row({"rate": rate, "method": method, "reading": reading}, {"coverage": Measure(value, 0.01, n)})


def test_an_item_says_what_it_is_and_which_cells_it_has(table: Item) -> None:
    assert (table.paper, table.name, table.kind) == ("a-paper", "table-1", "table")
    settings = table.settings()
    assert len(settings) == 10
    assert settings[0] == ("tiny.coin", {"rate": 0.25, "method": "C1", "reading": "fresh"}, 1000)
    assert settings[-1] == ("tiny.default", {"rate": "hetero", "method": "default"}, 7)


@pytest.mark.parametrize("text", ["title = ", 'title = "x"', TABLE + "\n[extra]\na = 1", TABLE.replace('"One', "1 # ")])
def test_a_file_that_is_no_item_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "paper" / "table-9.toml"
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(BadInput, match=r"paper/table-9\.toml does not describe a table or figure"):
        read_item(path)


def test_print_and_ours_meet_at_the_same_place(table: Item) -> None:
    rows = [row(0.25, "C1", "fresh", 0.97), row(0.25, "C1", "fixed", 0.99), row("hetero", "C1", "fresh", 0.85)]
    first, second, third = compared(table, rows)
    assert {reading: found.value for reading, found in first.found.items()} == {"fresh": 0.97, "fixed": 0.99}
    error = (0.01**2 + 0.01**2 * 100 / 400 + 0.001**2 / 12) ** 0.5
    assert first.differences["fresh"] == pytest.approx(0.02 / error)
    assert (first.agrees, first.comparable) == (True, True)  # .02 is within 5 per cent
    assert second.agrees is False  # .05 is more than 5 per cent of .90, and 4.5 errors
    assert (third.agrees, third.comparable, third.why) == (None, False, "One data set was used.")


def test_the_tally_counts_every_number_once(table: Item) -> None:
    rows = [row(0.25, "C1", "fresh", 0.97), row("hetero", "C1", "fresh", 0.80)]
    counted = tally(compared(table, rows))
    assert (counted.printed, counted.comparable, counted.agreeing) == (3, 2, 1)
    assert (counted.explained, counted.unexplained, counted.missing) == (1, 1, 0)
    assert counted.share == 0.5
    assert tally(compared(table, [])).missing == 2


def test_a_comparable_number_may_be_explained_and_still_counts_as_off(table: Item, tmp_path: Path) -> None:
    path = tmp_path / "a-paper" / "table-1.toml"
    path.write_text(TABLE + '[[explained]]\nwhere = { rate = "hetero" }\ncomparable = true\nwhy = "Chance."\n')
    counted = tally(compared(read_item(path), [row("hetero", "C1", "fresh", 0.5), row(0.25, "C1", "fresh", 0.95)]))
    assert (counted.comparable, counted.agreeing, counted.explained, counted.unexplained) == (2, 1, 2, 0)


def test_the_print_has_an_error_too(table: Item) -> None:
    computed = Measure(0.5)
    line = {"value": "0.5"}
    assert total_error(table, line, computed) == pytest.approx(0.1 / 12**0.5)
    assert total_error(table, {**line, "error": "0.3"}, computed) == pytest.approx((0.09 + 0.01 / 12) ** 0.5)


@pytest.mark.parametrize(
    ("text", "unit"), [("12", 1), ("1.200", 0.001), ("9.26e-3", 1e-5), ("5.70e3", 10), ("3e8", 1e8)]
)
def test_rounding_is_read_off_the_digits(text: str, unit: float) -> None:
    assert rounding(text) == pytest.approx(unit)


@pytest.fixture
def library(tmp_path: Path) -> Path:
    for name in ("a-paper/table-1", "a-paper/table-10", "a-paper/table-2", "a-paper/table-s2", "a-paper/figure-s1"):
        path = tmp_path / f"{name}.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(TABLE)
    (tmp_path / "b-paper").mkdir()
    (tmp_path / "b-paper" / "figure-3.toml").write_text(TABLE)
    return tmp_path


def names(found: list[Item]) -> list[str]:
    return [item.name for item in found]


def test_items_come_in_the_order_of_a_paper(library: Path) -> None:
    assert names(catalogue.items(library, "a-paper")) == ["table-1", "table-2", "table-10", "table-s2", "figure-s1"]
    assert len(catalogue.items(library)) == 6


@pytest.mark.parametrize("spelled", ["table-s2", "Table S.2", "TABLE_S2", "S.2", "s2", "table s2"])
def test_an_item_is_found_in_any_usual_spelling(library: Path, spelled: str) -> None:
    assert names(catalogue.items(library, "a", spelled)) == ["table-s2"]


def test_all_tables_or_all_figures_may_be_asked_for(library: Path) -> None:
    assert len(catalogue.items(library, "a-paper", "tables")) == 4
    assert names(catalogue.items(library, "a-paper", "figure")) == ["figure-s1"]


def test_what_is_not_there_is_refused_with_what_is(library: Path) -> None:
    with pytest.raises(BadInput, match=r"'c' is not one of the papers here; choose one of a-paper, b-paper\."):
        catalogue.items(library, "c")
    with pytest.raises(BadInput, match=r"b-paper has no 'table-9' here; choose one of figure-3\."):
        catalogue.items(library, "b-paper", "table-9")


def test_the_papers_lie_beside_the_package() -> None:
    assert "data-integration" in [path.name for path in catalogue.papers_folder().iterdir()]


def test_the_index_finds_the_rows_that_match() -> None:
    rows = [
        Row(where, {})
        for n in (10, "20", 20.0)
        for where in ({"n": n, "rate": 0.9, "method": "C1"}, {"n": n, "method": "C1"}, {"n": n, "rate": "0.90"})
    ]
    index = Index(rows)
    places: list[dict[str, Value]] = [{}, {"n": "20"}, {"rate": "0.9", "n": "20.0"}, {"n": 20, "rate": 0.9}, {"tau": 1}]
    for where in places:
        assert index.at(where) == [row for row in rows if matches(row.where, {**where})]
    assert [len(index.at(where)) for where in places] == [9, 6, 4, 4, 0]

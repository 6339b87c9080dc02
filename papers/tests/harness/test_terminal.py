"""Tables on the terminal, the words under them, and the guess of the time that is left."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from rich.text import Text

from sottovoce_papers.harness import progress, runner, terminal, words
from sottovoce_papers.harness.cell import Cell, Row
from sottovoce_papers.harness.compare import Number, Tally
from sottovoce_papers.harness.item import Item
from sottovoce_papers.harness.layout import lay
from sottovoce_papers.harness.measure import Measure
from sottovoce_papers.harness.study import Outcome
from sottovoce_papers.harness.terminal import Column, fitted, total

NUMBER = Number({}, "heads", "0.5", 0.5, {"ours": Measure(0.7)}, {"ours": 4.0}, True, False, "")


def column(group: str, width: int, spare: bool = False) -> Column:
    return Column(group, "x" * width, [Text("1")], spare)


def plan(costs: dict[str, float], recipes: dict[str, str] | None = None) -> runner.Plan:
    cells = {key: Cell((recipes or {}).get(key, "coin"), {}, 1, 1, "1") for key in costs}
    return runner.Plan(cells, costs, {("paper", "table-1"): list(costs)})


@pytest.mark.parametrize(
    ("number", "sign"),
    [
        (None, ""),
        (NUMBER, "!"),
        (replace(NUMBER, why="Bent."), "·"),
        (replace(NUMBER, why="Bent.", comparable=False, agrees=True), "·"),
        (replace(NUMBER, agrees=True), ""),
        (replace(NUMBER, agrees=None, comparable=False), ""),
    ],
)
def test_a_number_has_the_sign_of_how_it_came_out(number: Number | None, sign: str) -> None:
    assert words.mark(number) == sign


def test_reasons_are_told_once_with_their_numbers() -> None:
    bent, worn = replace(NUMBER, why="Bent."), replace(NUMBER, why="Worn.", comparable=False, agrees=True)
    agreeing = replace(NUMBER, why="Bent.", agrees=True)
    assert words.reasons([bent, NUMBER, worn, worn, agreeing]) == [("Worn.", 2), ("Bent.", 1)]


def test_tallies_add_up() -> None:
    whole = words.added([Tally(5, 4, 3, 1, 1, 0), Tally(2, 2, 2, 0, 0, 0)])
    assert whole == Tally(7, 6, 5, 1, 1, 0)
    assert math.isnan(words.added([]).share)


def test_what_can_be_spared_goes_first_and_blocks_hold_the_rest() -> None:
    columns = [column("", 4), column("heads", 10), column("heads", 10, spare=True), column("tails", 10)]
    assert fitted(columns, None) == fitted(columns, total(columns)) == [columns]
    without = [columns[0], columns[1], columns[3]]
    assert fitted(columns, total(columns) - 1) == [without]
    assert fitted(columns, total(without) - 1) == [without[:2], [columns[0], columns[3]]]
    assert fitted(columns, 1) == [without[:2], [columns[0], columns[3]]]  # nothing more can be left out


def test_a_long_heading_widens_its_group_alone() -> None:
    assert total([column("", 4), column("a long heading", 3)]) == 4 + 2 + len("a long heading")


def test_of_an_item_without_print_no_more_than_a_window_is_shown() -> None:
    item = Item("Figure", "coin", [], ["n"], ["heads"])
    rows = [Row({"n": n, "method": "tossed"}, {"heads": Measure(0.5)}) for n in range(50)]
    lines = [line.plain for line in terminal.table(Outcome(item, rows, [], 1))]
    assert len(lines) == 3 + terminal.SHOWN + 1
    assert lines[-1] == "… 20 more lines"


def test_the_default_stands_last_and_what_never_changes_in_the_heading() -> None:
    item = Item("Table", "coin", [], ["side", "n"], ["heads"])
    where = [{"side": "left", "n": n, "method": method} for method in ("default", "tossed") for n in (1, 2)]
    layout = lay(Outcome(item, [Row({**one}, {"heads": Measure(0.5), "other": Measure(1)}) for one in where], [], 1))
    assert layout.columns == ["tossed", "default"]
    assert layout.fixed == {"side": "left"}
    assert (layout.keys, layout.places) == (["n"], [("1",), ("2",)])
    assert {quantity for _, _, quantity in layout.entries} == {"heads"}


def test_kept_cells_do_not_spoil_the_time_left() -> None:
    planned = plan({"kept": 100.0, "ran": 100.0, "left": 100.0})
    ten_times = {"kept": 1e-3, "ran": 1000.0}
    assert progress.seconds_left(planned, ten_times, {"ran"}, 1) == pytest.approx(1000, rel=0.02)
    assert progress.seconds_left(planned, {"kept": 1e-3}, set(), 1) == pytest.approx(200)


def test_time_left_is_corrected_by_recipe_and_shared_by_jobs() -> None:
    recipes = {"a1": "slow", "a2": "slow", "b1": "fast", "b2": "fast"}
    planned = plan(dict.fromkeys(recipes, 1000.0), recipes)
    seconds = {"a1": 5000.0, "b1": 100.0}
    alone = progress.seconds_left(planned, seconds, set(seconds), 1)
    assert alone == pytest.approx(5100, rel=0.02)
    assert progress.seconds_left(planned, seconds, set(seconds), 4) == pytest.approx(5000, rel=0.02)  # the longest cell
    assert progress.seconds_left(planned, dict.fromkeys(recipes, 1.0), set(recipes), 4) == 0


def test_a_watch_says_what_is_kept(tmp_path: Path) -> None:
    watch = progress.Watch(tmp_path)
    assert watch.stopped("cells") == "stopped before anything was run."
    watch.begun(plan({"a": 1.0, "b": 1.0}))
    assert watch.stopped("cells").startswith("stopped: 0 of 2 cells are kept in cells;")


def test_the_item_at_work_is_one_with_cells_to_come() -> None:
    cells = {key: Cell("coin", {"n": n}, 1, 1, "1") for n, key in enumerate("abc")}
    cells = {cell.key: cell for cell in cells.values()}
    first, second, third = cells
    of_item = {("p", "table-1"): [first], ("p", "table-2"): [second, third]}
    planned = runner.Plan(cells, dict.fromkeys(cells, 1.0), of_item)
    assert progress.at_work(planned, {}, None) == "p table-1"
    assert progress.at_work(planned, {second: 1.0}, cells[second]) == "p table-2"
    assert progress.at_work(planned, {first: 1.0}, cells[first]) == "p table-2"
    assert progress.at_work(planned, dict.fromkeys(cells, 1.0), None) == "all cells"

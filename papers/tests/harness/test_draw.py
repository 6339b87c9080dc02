"""Pictures: panels, series and print are where the item asks for them, and the default looks the same everywhere."""

from pathlib import Path
from types import ModuleType

import msgspec
import numpy as np
import pytest
from matplotlib.figure import Figure as Picture
from matplotlib.lines import Line2D

from sottovoce_papers.harness import catalogue, draw, palette, study
from sottovoce_papers.harness.cell import Row
from sottovoce_papers.harness.compare import compared
from sottovoce_papers.harness.item import Figure, Item
from sottovoce_papers.harness.measure import Measure
from sottovoce_papers.harness.study import Outcome


@pytest.fixture
def table(papers: Path, tmp_path: Path) -> Outcome:
    (found,) = study.reproduce(catalogue.items(papers.parent, "coin", "table-1"), tmp_path / "cells", replications=40)
    return found


def asked(outcome: Outcome, wish: Figure | None, rows: list[Row] | None = None) -> Outcome:
    item = msgspec.structs.replace(outcome.item, figure=wish)
    chosen = outcome.rows if rows is None else rows
    return Outcome(item, chosen, compared(item, chosen), 40)


def drawn(outcome: Outcome) -> Picture:
    found = draw.draw(outcome)
    assert found is not None
    return found


def points(line: Line2D) -> list[list[float]]:
    found: list[list[float]] = np.asarray(line.get_xydata()).tolist()
    return found


def test_a_table_is_drawn_as_print_against_ours(table: Outcome) -> None:
    picture = drawn(table)
    (axes,) = picture.axes
    marks = {line.get_marker(): points(line) for line in axes.lines if line.get_marker() in ("o", "s", "X")}
    assert set(marks) == {"o", "s"}  # one agrees, one is explained, one was not run
    ours = next(number for number in table.numbers if number.text == "0.90").found["fixed"].value
    assert marks["s"] == [[0.9, ours]]
    assert axes.get_xlim() == axes.get_ylim()
    assert axes.get_title(loc="left") == "share of heads"


def test_lines_have_a_panel_a_quantity_and_the_print_on_top(table: Outcome) -> None:
    wish = Figure(x="n", y=["heads", "length"], reference={"heads": 0.5})
    heads, length = drawn(asked(table, wish)).axes
    assert (heads.get_ylabel(), length.get_ylabel()) == ("share of heads", "length")
    hollow = [line for line in heads.lines if line.get_markerfacecolor() == "none"]
    assert sorted(points(line)[0] for line in hollow) == [[10, 0.5], [20, 0.5], [20, 0.9]]
    ours = [box for box in heads.containers if box[0].get_color() == palette.OURS]
    assert len(ours) == 2  # of two readings
    assert {box[0].get_marker() for box in ours} == {"*"}
    assert len({box[0].get_linestyle() for box in ours}) == 2
    values = [y for _, y in points(ours[0][0])]
    rows = [row for row in table.rows if row.where["method"] == "default" and row.where["reading"] == "fixed"]
    assert values == [row.measures["heads"].value for row in rows]
    lows, highs = ours[0][2][0].get_segments()[0]
    assert highs[1] - lows[1] == pytest.approx(4 * rows[0].measures["heads"].error)


def test_panels_are_every_combination_of_their_keys(table: Outcome) -> None:
    rows = [
        Row({"n": n, "side": side, "bias": bias, "method": "tossed"}, {"heads": Measure(n / 10)})
        for n in (1, 10)
        for side in ("left", "right")
        for bias in (0.1, 0.2, 0.3)
    ]
    picture = drawn(asked(table, Figure(x="n", y=["heads"], panels=["side", "bias"], log_x=True, log_y=True), rows))
    titles = [axes.get_title(loc="left") for axes in picture.axes if axes.get_visible()]
    assert titles == [f"side {side}, bias {bias}" for side in ("left", "right") for bias in (0.1, 0.2, 0.3)]
    assert {axes.get_xscale() for axes in picture.axes} == {axes.get_yscale() for axes in picture.axes} == {"log"}


def test_words_on_the_axis_are_told_apart(table: Outcome) -> None:
    rows = [Row({"side": side, "method": "tossed"}, {"heads": Measure(0.5)}) for side in ("left", "right")]
    (axes,) = drawn(asked(table, Figure(x="side", y=["heads"]), rows)).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["left", "right"]


def test_a_curve_is_drawn_along_another(table: Outcome) -> None:
    rows = [Row({"method": "tossed"}, {}, {"time": [1.0, 2.0, 4.0], "error": [3.0, 2.0, 1.0]})]
    (axes,) = drawn(asked(table, Figure(x="time", y=["error"]), rows)).axes
    assert points(axes.lines[0]) == [[1, 3], [2, 2], [4, 1]]


def test_boxes_stand_by_x_and_series(table: Outcome) -> None:
    (axes,) = drawn(asked(table, Figure(kind="boxes", x="n", y=["shares"]))).axes
    assert len(axes.patches) == len(table.rows) == 8
    means = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    assert len(means) == 8
    shares = table.rows[0].curves["shares"]
    assert sum(shares) / len(shares) in [pytest.approx(points(line)[0][1]) for line in means]
    assert [label.get_text() for label in axes.get_xticklabels()] == [
        "10, fixed",
        "10, fresh",
        "20, fixed",
        "20, fresh",
    ]


def test_an_item_may_draw_itself(table: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    def own(figure: Picture, rows: list[Row]) -> None:
        figure.subplots().set_title(f"{len(rows)} rows")

    module = ModuleType("own")
    module.mine = own  # type: ignore[attr-defined]
    monkeypatch.setattr(draw, "import_module", lambda name: {"sottovoce_papers.harness.own": module}[name])
    (axes,) = drawn(asked(table, Figure(kind="own", draw="own:mine"))).axes
    assert axes.get_title() == "8 rows"


def test_nothing_is_drawn_of_nothing(table: Outcome) -> None:
    bare = Item("Table", "coin", [], ["n"], ["heads"])
    assert draw.draw(Outcome(bare, table.rows, [], 40)) is None
    assert draw.draw(Outcome(table.item, [], [], 0, "skipped")) is None


def test_the_same_picture_has_the_same_bytes(table: Outcome) -> None:
    first, second = (draw.png(drawn(table)) for _ in range(2))
    assert first == second
    assert first.startswith(b"\x89PNG")

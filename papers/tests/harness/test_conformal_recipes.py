"""The cells of the conformal paper: exact numbers, what is infeasible, the same numbers from the same seed."""

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sottovoce.sim import dice
from sottovoce_papers.harness import draw_conformal
from sottovoce_papers.harness.cell import Row, Value
from sottovoce_papers.recipes.conformal import compensation, exact, private, real, synthetic
from sottovoce_papers.simulation.conformal import paper_private_draw, paper_splits
from sottovoce_papers.simulation.conformal.poisson_outliers import drawn

RIDGE: dict[str, Value] = {"data_set": "concrete", "records": 300, "sites": 12, "n": 10, "predictor": "ridge"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Write a small data set under the name of one of the five."""
    source = dice(1).generator()
    columns = {f"x{i}": source.normal(size=400) for i in range(3)}
    columns["y"] = 5 + columns["x0"] + source.normal(size=400)
    for name, response in (("concrete", "y"), ("bio", "RMSD")):
        (tmp_path / name).mkdir()
        table = pa.table({(response if key == "y" else key): values for key, values in columns.items()})
        pq.write_table(table, tmp_path / name / f"{name}.parquet")
    return tmp_path


def test_the_exact_coverages_are_those_of_the_authors_and_of_theory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "SIZES", range(10, 12))
    monkeypatch.setattr(exact, "SHOWN", (10, 11))
    rows = exact.run({"sites": 5, "alpha": 0.1}, 0, 1, None)
    first = {row.where["method"]: row.measures["coverage"].value for row in rows if row.where["n"] == 10}
    assert first["FedCP-QQ"] == pytest.approx(0.9256259546, abs=1e-9)  # printed in the authors' notebook
    assert first["central, bound"] == pytest.approx(0.9 + 1 / 51)
    assert first["one site, bound"] == pytest.approx(0.9 + 1 / 11)
    assert [len(row.curves.get("coverages", [])) for row in rows] == [0, 2] * 4


def test_where_no_gamma_is_feasible_all_is_covered() -> None:
    setting = {"sites": 10, "alpha": 0.1, "epsilon": 1.0, "n": 100}
    paper, ours = compensation.run(setting, 20, 1, None)
    assert (paper.measures["compensation"].value, paper.measures["coverage"].value) == (1.0, 1.0)
    assert 0.9 <= ours.measures["compensation"].value < 0.93
    assert ours.measures["coverage"].n == 20


def test_the_compensation_is_the_papers() -> None:
    (paper, _) = compensation.run({"sites": 10, "alpha": 0.1, "epsilon": 10.0, "n": 100}, 5, 1, None)
    assert paper.measures["compensation"].value == pytest.approx(0.9259, abs=1e-4)  # M[89, 10], l + c = 89


def test_a_real_cell_is_the_same_again_and_begins_the_same(data: Path) -> None:
    first, again = (real.run(RIDGE, 2, 7, data) for _ in range(2))
    longer = real.run(RIDGE, 3, 7, data)
    assert first == again
    assert [row.curves["coverages"] for row in first] == [row.curves["coverages"][:2] for row in longer]
    assert {(row.where["shape"], row.where["sites"], row.where["n"]) for row in first} == {
        (real.MANY, 12, 10),
        (real.FEW, 10, 12),
    }
    ratios = {row.where["method"]: row.measures["ratio"].value for row in first if row.where["shape"] == real.MANY}
    assert ratios["central"] == 1.0
    assert ratios["FedCP-Avg"] > 1.05


def test_a_private_cell_covers_more_with_less_budget(data: Path) -> None:
    setting: dict[str, Value] = {"data_set": "bio", "records": 300, "sites": 2, "n": 60}
    rows = private.run(setting, 1, 3, data)
    paper = {row.where["epsilon"]: row for row in rows if row.where["method"] == "FedCP2-QQ"}
    assert paper[1.0].measures["coverage"].value >= paper[10.0].measures["coverage"].value
    assert [row.where["method"] for row in rows if row.where["epsilon"] == "none"] == ["FedCP-QQ", "default"]
    assert rows == private.run(setting, 1, 3, data)


def test_with_all_the_budget_private_thresholds_are_the_edges_above_the_asked_scores() -> None:
    scores = dice(4).generator().random((5, 200))
    pair = paper_private_draw._asked(5, 200, 40.0)
    assert pair is not None
    edges = np.linspace(0.0, scores.max(), 101)[1:]
    asked = np.sort(np.sort(scores, axis=1)[:, pair.order - 1])[pair.rank - 1]
    above = edges[np.searchsorted(edges, asked)]
    assert paper_private_draw.paper_threshold(scores, 40.0, dice(5).generator()) == pytest.approx(above)
    ours = paper_private_draw.default_threshold(scores, 50.0, 1.0, dice(5).generator())
    assert np.quantile(scores, 0.86) < ours < np.quantile(scores, 0.94)


def test_a_maximum_that_holds_no_score_gives_an_infinite_threshold() -> None:
    scores = 2 + dice(4).generator().random((5, 200))
    assert math.isinf(paper_private_draw.default_threshold(scores, 5.0, 1.0, dice(5).generator()))


def test_the_released_average_takes_one_order_more() -> None:
    scores = np.arange(1.0, 81.0)[None]
    assert paper_splits.averaged_upper(scores) == 74.0
    assert paper_splits.thresholds(np.repeat(scores, 3, axis=0))["FedCP-Avg"] == 73.0


def test_synthetic_intervals_are_drawn_and_as_long_as_the_rows_say(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = pytest.importorskip("matplotlib.figure")
    monkeypatch.setattr(synthetic, "TESTED", 400)
    monkeypatch.setattr(synthetic, "TRAINED", 200)
    rows = synthetic.run({"sites": 10, "n": 20}, 2, 1, None)
    found = {str(row.where["method"]): row for row in rows}
    for name, row in found.items():
        if name != "points":
            mean = np.mean(np.subtract(row.curves["high"], row.curves["low"]))
            assert mean == pytest.approx(row.measures["length"].value, rel=0.6)
    assert found["FedCP-Avg, released"].measures["length"].value > found["FedCP-Avg"].measures["length"].value
    picture = figure.Figure()
    draw_conformal.intervals(picture, rows)
    assert len(picture.axes) == len(rows) - 1


def test_compensation_is_drawn_a_panel_a_level() -> None:
    figure = pytest.importorskip("matplotlib.figure")
    rows = []
    for alpha in (0.1, 0.2):
        for n in (40, 50):
            setting = {"sites": 2, "alpha": alpha, "epsilon": 5.0, "n": n}
            rows += [Row({**setting, **row.where}, row.measures) for row in compensation.run(setting, 2, 1, None)]
    picture = figure.Figure(layout="constrained")
    draw_conformal.compensation(picture, rows)
    assert [len(axes.lines) for axes in picture.axes] == [3, 3]


def test_the_synthetic_population_has_its_moments() -> None:
    held = drawn(200_000, dice(2).generator())
    # E sin^2 X on [1, 5] is 0.5 - (sin 10 - sin 2) / 16; the outliers have variance 6.25, so 6 errors are 0.04
    assert held.responses.mean() == pytest.approx(0.6 - (math.sin(10) - math.sin(2)) / 16, abs=0.04)
    assert np.mean(np.abs(held.responses) > 15) == pytest.approx(0.01 * 0.5485, abs=0.001)  # P(|25 e| > 15)

"""The taxi tables: recursion, releases and summaries on rows made up here; on the sample itself where it is at hand."""

import os
from pathlib import Path

import numpy as np
import pytest

from sottovoce.core.arrays import Floats
from sottovoce.sim.randomness import dice
from sottovoce_papers.harness import catalogue
from sottovoce_papers.harness.cell import Row
from sottovoce_papers.harness.compare import compared
from sottovoce_papers.harness.measure import exact
from sottovoce_papers.recipes.regression import taxi, taxi_summary, taxi_tables
from sottovoce_papers.simulation.regression.cell import printed
from sottovoce_papers.simulation.regression.exact_fit import exact_fit
from sottovoce_papers.simulation.regression.taxi import FILE
from sottovoce_papers.simulation.regression.taxi_runs import LIMIT, POWER, STEP, by_release, through_channel

FOLDER = Path(os.environ.get("SOTTOVOCE_DATA", ""))
sample = pytest.mark.skipif(not (FOLDER / FILE).is_file(), reason="SOTTOVOCE_DATA names no folder with the taxi trips")


def rows(n: int) -> tuple[Floats, Floats]:
    draw = dice(4).generator()
    x = draw.uniform(-1.0, 1.0, (n, 8))
    return x, 1.0 + x[:, 0] + 0.2 * draw.standard_normal(n)


def test_without_privacy_it_is_the_printed_recursion() -> None:
    x, y = rows(300)
    orders = [np.arange(300), np.arange(300)[::-1].copy()]
    design, beta, total = np.column_stack([np.ones(300), x]), np.zeros(9), np.zeros(9)
    for i, who in enumerate(np.concatenate(orders), start=1):
        side = float(y[who] <= design[who] @ beta) - 0.75
        beta = np.clip(beta - STEP * i**-POWER * side * design[who], -LIMIT, LIMIT)
        total += beta
    assert through_channel(x, y, orders, 0.75, np.inf, 1) == pytest.approx(total / 600)


def test_laplace_noise_of_a_huge_budget_is_none() -> None:
    x, y = rows(200)
    orders = [np.arange(200)]
    assert by_release(x, y, orders, 0.5, 1e9, 1, "laplace") == pytest.approx(
        through_channel(x, y, orders, 0.5, np.inf, 1), abs=1e-6
    )


def test_faces_as_printed_draw_the_intercept_up_and_even_ones_do_not() -> None:
    x, y = rows(800)
    orders = [np.arange(800)]
    printed_measure, even = (by_release(x, y, orders, 0.75, 2.0, 1, name)[0] for name in ("faces", "even faces"))
    most = STEP * 0.75 * np.cumsum(np.arange(1, 801.0) ** -POWER).mean()  # every report on the lower face
    assert printed_measure > 0.98 * most
    assert even < 0.8 * most


def test_exact_fit_balances_the_scores() -> None:
    x, y = rows(4000)
    beta = exact_fit(x, y, 0.75)
    design = np.column_stack([np.ones(4000), x])
    scores = design.T @ ((y <= design @ beta) - 0.75)
    assert np.abs(scores).max() < 12


def test_effective_information_is_the_printed_one() -> None:
    found = [taxi.effective(printed(0.75, 8, epsilon)) for epsilon in (2.0, 4.0, 8.0, 16.0)]
    assert [f"{number:.2e}" for number in found] == ["1.06e+05", "1.74e+05", "1.01e+06", "2.00e+06"]


def test_medians_are_over_cells() -> None:
    names = ("excess_loss_e3", "distance", "excess_over_exact_e3", "distance_to_exact")
    cells = [
        Row(
            {"tau": 0.5, "method": "CQ", "reading": "one pass"},
            {"hit_rate": exact(0.5 + k / 100), **dict.fromkeys(names, exact(float(k)))},
        )
        for k in (1, 2, 6)
    ]
    reference = Row({"tau": 0.5, "method": "nonprivate", "reading": "one pass"}, {"hit_rate": exact(0.5)})
    (row,) = taxi_tables.medians([*cells, reference])
    assert row.measures["median_abs_hit_deviation"].value == pytest.approx(0.02)
    assert row.measures["median_distance"].value == 2
    assert row.measures["max_distance"].value == 6


@pytest.mark.parametrize("name", ["table-8", "table-9", "table-10"])
def test_files_say_what_is_run(name: str) -> None:
    item = catalogue.items(catalogue.papers_folder(), "online-quantile-regression", name)[0]
    assert item.settings()
    assert item.printed()
    assert all(line["quantity"] in item.quantities for line in item.printed())


@sample
def test_summary_of_the_sample() -> None:
    item = catalogue.items(catalogue.papers_folder(), "online-quantile-regression", "table-8")[0]
    found = taxi_summary.run({}, 0, 1, FOLDER)[0]
    numbers = compared(item, [Row({"stream": "retained trips"}, found.measures)])
    assert found.measures["retained"].value == 337_867
    assert all(number.found for number in numbers)

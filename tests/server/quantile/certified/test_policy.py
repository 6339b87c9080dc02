"""Where the next query goes: on its side of the quantile, within the bounds, and to an open end before the end."""

import math

import numpy as np
import pytest

from sottovoce.inference.quantile.error_budgets import Classes, Evidence, folded, opened
from sottovoce.server.quantile.certified.curves import HUGE, TINY, Answers, CurveBelief, Guide, LocalLine, Window
from sottovoce.server.quantile.certified.policy import RESCUE, best_point, rescue_point
from sottovoce_papers.simulation.populations import population

NORMAL = population("normal")
OPEN = (-math.inf, math.inf)
FRESH = opened(np.array([0.05]))


def guides(centre: float = 0.0, scale: float = 1.0) -> dict[str, Guide]:
    """Return a line and a belief in curves about normal records."""
    law = NORMAL.moved(centre, scale)
    points = np.asarray(law.quantile(np.array([0.05, 0.2, 0.4, 0.47, 0.53, 0.6, 0.8, 0.95])))
    answers = Answers(points, np.asarray(law.cdf(points)), np.full(8, 1e5))
    window = Window(centre - 3 * scale, centre + 3 * scale, -HUGE, HUGE, TINY)
    return {"line": LocalLine(answers, 0.5, OPEN), "curves": CurveBelief(answers, 0.5, window)}


def certified_to(low: float, high: float) -> Classes:
    """Return classes of which those outside an interval are rejected."""
    return folded([Evidence(low, -1, 400, 100, 400), Evidence(high, 1, 400, 300, 400)], 0.5, np.array([0.05]))


@pytest.mark.parametrize("kind", ["line", "curves"])
@pytest.mark.parametrize("side", [-1, 1])
def test_the_point_is_on_its_side_and_a_few_errors_away(kind: str, side: int) -> None:
    # power: standard errors in a mass of one
    guide = guides()[kind]
    for power in (30.0, 100.0, 300.0):
        found = best_point(FRESH, guide, power, power, side, OPEN)
        mass = abs(float(NORMAL.cdf(np.array([found]))[0]) - 0.5)
        assert side * found > 0
        assert 1.5 / power < mass < 12 / power + 3 * guide.doubt


@pytest.mark.parametrize("kind", ["line", "curves"])
def test_the_two_sides_mirror_each_other(kind: str) -> None:
    guide = guides()[kind]
    low, high = (best_point(FRESH, guide, 100.0, 100.0, side, OPEN) for side in (-1, 1))
    assert low == pytest.approx(-high, rel=0.1)


def test_the_point_moves_with_the_records_and_their_unit() -> None:
    plain = best_point(FRESH, guides()["line"], 100.0, 100.0, -1, OPEN)
    moved = best_point(FRESH, guides(2.0**20, 64.0)["line"], 100.0, 100.0, -1, OPEN)
    assert moved == pytest.approx(2.0**20 + 64.0 * plain, rel=1e-6)


@pytest.mark.parametrize("kind", ["line", "curves"])
@pytest.mark.parametrize("side", [-1, 1])
def test_what_is_certified_is_not_asked_for_again(kind: str, side: int) -> None:
    guide, classes = guides()[kind], certified_to(-0.3, 0.3)
    found = best_point(classes, guide, 200.0, 200.0, side, OPEN)
    assert 0 < side * found < 0.3


@pytest.mark.parametrize("kind", ["line", "curves"])
@pytest.mark.parametrize("limits", [(-0.02, 5.0), (-5.0, 0.02), (-1e-9, 1e-9)])
def test_nothing_is_asked_outside_the_bounds(kind: str, limits: tuple[float, float]) -> None:
    for side in (-1, 1):
        found = best_point(FRESH, guides()[kind], 30.0, 30.0, side, limits)
        assert limits[0] < found or side > 0
        assert found < limits[1] or side < 0


def test_an_open_end_is_rescued_where_the_increasing_fit_is_sure() -> None:
    values = np.array([0.02, 0.3, 0.48, 0.52, 0.7, 0.98])
    answers = Answers(np.arange(6.0), values, np.full(6, 1e4))
    assert rescue_point(answers, 0.5, RESCUE / 0.1, -1) == 1.0
    assert rescue_point(answers, 0.5, RESCUE / 0.1, 1) == 4.0
    assert rescue_point(answers, 0.5, RESCUE / 0.3, -1) == 0.0
    # so many errors cannot be had: most of what lies beyond the level has to do
    assert rescue_point(answers, 0.5, RESCUE / 0.6, -1) == 0.0
    assert rescue_point(Answers(np.arange(4.0), values[1:5], np.full(4, 1e4)), 0.5, RESCUE / 0.6, -1) is None

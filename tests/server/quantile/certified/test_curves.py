"""The guides: pooled and isotonic answers, brackets, and roots they find where the answers are exact or noisy."""

import math
from itertools import pairwise

import numpy as np
import pytest

from sottovoce.core.arrays import Floats
from sottovoce.server.quantile.certified.curves import (
    HUGE,
    MISFIT,
    TINY,
    Answers,
    Axis,
    CurveBelief,
    LocalLine,
    Window,
    bracket,
    isotonic,
    narrowed,
    nearest_sure,
    pooled,
)
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.populations import Population, population

EVERYWHERE = Window(-HUGE, HUGE, -HUGE, HUGE, TINY)
LAWS = {
    "normal": population("normal"),
    "far": population("normal").moved(1e6, 3.0),
    "tiny": population("gumbel").moved(0.0, 1e-3),
    "exponential": population("exponential").moved(0.0, 50.0),
}


def exact(distribution: Population, points: Floats, precision: float) -> Answers:
    return Answers(points, np.asarray(distribution.cdf(points)), np.full(len(points), precision))


def test_answers_at_one_point_are_pooled_by_their_precision() -> None:
    found = pooled([3.0, 1.0, 3.0], [0.6, 0.1, 0.9], [1.0, 5.0, 3.0])
    assert found.points.tolist() == [1.0, 3.0]
    assert found.values == pytest.approx([0.1, (0.6 + 3 * 0.9) / 4])
    assert found.precisions.tolist() == [5.0, 4.0]


@pytest.mark.parametrize("seed", range(20))
def test_the_increasing_fit_is_that_of_all_blocks(seed: int) -> None:
    source = dice(seed).generator()
    number = int(source.integers(1, 9))
    answers = Answers(np.arange(float(number)), source.normal(size=number), source.uniform(0.1, 5.0, number))
    # the closed form: the largest of the smallest weighted means of runs that hold the place
    reference = [
        max(
            min(
                float(np.average(answers.values[i : j + 1], weights=answers.precisions[i : j + 1]))
                for j in range(k, number)
            )
            for i in range(k + 1)
        )
        for k in range(number)
    ]
    assert isotonic(answers) == pytest.approx(reference, abs=1e-12)


def test_a_bracket_is_the_nearest_points_that_are_clearly_on_their_side() -> None:
    points, values = np.arange(6.0), np.array([0.1, 0.3, 0.45, 0.55, 0.8, 0.9])
    sure = Answers(points, values, np.full(6, 1e6))
    assert bracket(sure, 0.5) == (2, 3)
    doubtful = Answers(points, values, np.array([1e6, 1e6, 1.0, 1.0, 1e6, 1e6]))
    assert bracket(doubtful, 0.5) == (1, 4)
    assert bracket(Answers(points, values, np.full(6, 1e-3)), 0.5) == (-1, 6)


@pytest.mark.parametrize("seed", range(8))
def test_a_bracket_is_that_of_every_run(seed: int) -> None:
    source = dice(100 + seed).generator()
    answers = Answers(np.arange(7.0), source.normal(0.5, 0.4, 7), source.uniform(1.0, 300.0, 7))
    low, high = [], []
    for i in range(7):
        for j in range(i, 7):
            weights = answers.precisions[i : j + 1]
            score = float(np.sum(weights * (answers.values[i : j + 1] - 0.5))) / math.sqrt(float(weights.sum()))
            low += [i] if score <= -2.0 else []
            high += [j] if score >= 2.0 else []
    first, last = bracket(answers, 0.5, 2.0)
    if max(low, default=-1) < min(high, default=7):
        assert (first, last) == (max(low, default=-1), min(high, default=7))
    else:  # contradicting answers: one side gives way
        assert first < last
        assert first == max(low) or last == min(high)


@pytest.mark.parametrize("unit", [None, 1e-6, 1.0])
def test_an_axis_leads_back(unit: float | None) -> None:
    values = np.array([-1e12, -3.0, 0.0, 1e-5, 7.0, 1e9])
    assert Axis(unit).back(Axis(unit).of(values)) == pytest.approx(values, rel=1e-12)
    assert np.all(np.diff(Axis(unit).of(values)) > 0)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("tau", [0.1, 0.5, 0.8])
def test_curves_find_a_known_root_from_nothing(name: str, tau: float) -> None:
    # eight rounds of fifteen exact answers where the belief lies
    distribution, window = LAWS[name], EVERYWHERE
    truth = float(distribution.quantile(tau))
    axis, parts = Axis(TINY), np.linspace(0, 1, 17)[1:-1]
    points = axis.back(axis.of(-HUGE) + (axis.of(HUGE) - axis.of(-HUGE)) * parts)
    heard = np.empty(0)
    for _ in range(8):
        heard = np.unique(np.concatenate((heard, points)))
        window, belief = narrowed(exact(distribution, heard, 2_000.0), tau, window)
        points = np.unique(belief.quantile(parts))
    assert window.low < truth < window.high
    assert abs(float(distribution.cdf(np.array([belief.centre]))[0]) - tau) < 0.05 * min(tau, 1 - tau) + 0.01
    assert belief.doubt < 0.3 * min(tau, 1 - tau)


def test_a_belief_counts_the_mass_below_the_level() -> None:
    answers = exact(LAWS["normal"], np.linspace(-3.0, 3.0, 13), 1e5)
    belief = CurveBelief(answers, 0.5, Window(-3.0, 3.0, -HUGE, HUGE, TINY))
    masses = belief.masses(np.array([-2.0, -0.5, 0.0, 0.5, 2.0])) @ belief.weights
    assert masses == pytest.approx([0.48, 0.19, 0.0, -0.19, -0.48], abs=MISFIT / 2)
    assert belief.quantile(0.1) < belief.centre < belief.quantile(0.9)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("tau", [0.1, 0.5, 0.8])
def test_a_line_finds_a_known_root_and_its_slope(name: str, tau: float) -> None:
    distribution = LAWS[name]
    truth, tail = float(distribution.quantile(tau)), min(tau, 1 - tau)
    points = np.asarray(distribution.quantile(tau + tail * np.array([-0.3, -0.1, 0.12, 0.25])))
    line = LocalLine(exact(distribution, points, 1e6), tau, (-math.inf, math.inf))
    assert line.settled
    assert abs(float(distribution.cdf(np.array([line.centre]))[0]) - tau) < 0.02 * tail
    step = 1e-3 * float(distribution.quantile(tau + 0.1 * tail) - truth)
    slope = float(np.diff(distribution.cdf(np.array([truth - step, truth + step])))[0]) / (2 * step)
    assert line.unit(1.0) == pytest.approx(1 / slope, rel=0.1)


def test_a_line_is_not_settled_where_answers_say_none_or_all() -> None:
    steps = Answers(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.full(2, 1e6))
    assert not LocalLine(steps, 0.5, (-math.inf, math.inf)).settled
    one_side = Answers(np.array([0.0, 1.0]), np.array([0.2, 0.4]), np.full(2, 1e6))
    assert not LocalLine(one_side, 0.5, (-math.inf, math.inf)).settled


@pytest.mark.parametrize("values", [[0.5, 0.5, 0.5], [0.9, 0.5, 0.1], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
def test_answers_that_do_not_rise_leave_finite_numbers(values: list[float]) -> None:
    answers = Answers(np.array([-1e12, 0.0, 1e12]), np.array(values), np.full(3, 1e6))
    line = LocalLine(answers, 0.5, (-HUGE, HUGE))
    _, belief = narrowed(answers, 0.5, EVERYWHERE)
    for guide in (line, belief):
        assert math.isfinite(guide.centre)
        assert np.all(np.isfinite(guide.candidates(-1, 0.01)))
        assert np.all(np.isfinite(guide.masses(np.array([-1.0, 0.0, 1e12]))))
        assert guide.unit(0.01) > 0


@pytest.mark.parametrize("side", [-1, 1])
def test_a_sure_point_is_nearer_the_more_reports_it_has(side: int) -> None:
    points = np.asarray(LAWS["normal"].quantile(np.array([0.1, 0.3, 0.45, 0.55, 0.7, 0.9])))
    line = LocalLine(exact(LAWS["normal"], points, 1e5), 0.5, (-math.inf, math.inf))
    places = [side * (nearest_sure(line, side, power, 4.6) - line.centre) for power in (20.0, 50.0, 200.0)]
    assert all(far > near > 0 for far, near in pairwise(places))
    belief = CurveBelief(exact(LAWS["normal"], points, 1e5), 0.5, Window(-2.0, 2.0, -HUGE, HUGE, TINY))
    found = nearest_sure(belief, side, 50.0, 4.6)
    assert side * found > 0
    assert abs(float(LAWS["normal"].cdf(np.array([found]))[0]) - 0.5) > 2.0 / 50.0

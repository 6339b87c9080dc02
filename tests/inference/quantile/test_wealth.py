"""The wealth of classes: exact over all adaptive plans of a few reports, at every time; tests and intervals agree."""

import functools
import math
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from sottovoce.inference.quantile.wealth import (
    OPENING,
    Fortunes,
    Wager,
    evidence,
    p_values,
    reached,
    stakes,
    told,
    wagered,
)
from sottovoce.sim.randomness import dice

REPORTS = 4


@functools.cache
def chances(count: int, success: float) -> list[float]:
    return [float(binom.pmf(below, count, success)) for below in range(count + 1)]


def largest_mean(fortunes: Fortunes, left: int, success: float) -> float:
    """Return the largest mean wealth of one class that any adaptive plan of a few reports can come to."""
    best = math.exp(float(fortunes.wealth[0]))
    for side, count, horizon, cap in product((-1, 1), (1, 2), (1.0, 9.0), (0.4, 99.0)):
        if count <= left:
            mean = 0.0
            for below, chance in enumerate(chances(count, success)):
                # one class only: the point lies outside, and is taken away again
                after = wagered(fortunes, Wager(-side * 1.0, side, count, below, success, horizon, 3.0, cap, 1.0))
                kept = slice(None, 1) if side < 0 else slice(1, None)
                one = Fortunes(np.empty(0), after.wealth[kept], after.peaks[kept])
                mean += chance * largest_mean(one, left - count, success)
            best = max(best, mean)
    return best


@pytest.mark.parametrize("success", [0.3, 0.5, 0.62])
def test_no_plan_makes_wealth_grow_on_average(success: float) -> None:
    assert largest_mean(OPENING, 3, success) <= 1 + 1e-12


def largest_miss(fortunes: Fortunes, left: int, success: float, alpha: float, met: dict[Any, float]) -> float:
    """Return the largest probability, over all adaptive plans, that the quantile 0 is ever left out.

    Every report is a one with the probability at the level, below the quantile and beyond: the least favourable case.
    """
    low, high = reached(fortunes, alpha)
    if not low < 0 <= high:
        return 1.0
    if left == 0:
        return 0.0
    if (known := met.get(place := (left, *(each.tobytes() for each in fortunes)))) is not None:
        return known
    best = 0.0
    for point, side, count in product((-1.0, 0.0, 1.0), (-1, 1), (1, 2)):
        if count <= left:
            after = [
                wagered(fortunes, Wager(point, side, count, below, success, 2.0, -math.log(alpha), 99.0, 1.0))
                for below in range(count + 1)
            ]
            misses = [largest_miss(one, left - count, success, alpha, met) for one in after]
            best = max(best, float(np.dot(misses, chances(count, success))))
    met[place] = best
    return best


@pytest.mark.parametrize(("success", "alpha"), [(0.3, 0.3), (0.5, 0.3), (0.62, 0.5)])
def test_no_plan_leaves_the_quantile_out_more_often_than_allowed(success: float, alpha: float) -> None:
    miss = largest_miss(OPENING, REPORTS, success, alpha, {})
    assert 0 < miss <= alpha


def some_wagers(seed: int, count: int = 40) -> list[Wager]:
    source = dice(seed).generator()
    points = np.round(source.normal(0.0, 1.0, count), 2)
    return [
        Wager(
            float(x),
            -1 if x < 0 else 1,
            50,
            int(source.binomial(50, 1 / (1 + math.exp(-x)))),
            0.5,
            200.0,
            3.0,
            1.0,
            1.0,
        )
        for x in points
    ]


def test_a_new_point_divides_its_class_and_both_parts_inherit() -> None:
    one = told([Wager(0.0, -1, 30, 5, 0.5, 30.0, 3.0, 1.0, 1.0)])
    two = wagered(one, Wager(-1.0, 1, 0, 0, 0.5, 30.0, 3.0, 1.0, 1.0))
    assert two.edges.tolist() == [-1.0, 0.0]
    assert two.wealth.tolist() == [one.wealth[0], one.wealth[0], one.wealth[1]]
    assert two.peaks.tolist() == [one.peaks[0], one.peaks[0], one.peaks[1]]


def test_what_was_rejected_stays_rejected() -> None:
    wagers, fortunes = some_wagers(1), OPENING
    before = (-math.inf, math.inf)
    for wager in wagers:
        fortunes = wagered(fortunes, wager)
        low, high = reached(fortunes, 0.05)
        assert before[0] <= low < high <= before[1]
        before = (low, high)
    assert math.isfinite(before[1] - before[0])


@pytest.mark.parametrize("seed", [2, 3])
def test_intervals_are_nested_and_agree_with_the_p_values(seed: int) -> None:
    fortunes = told(some_wagers(seed))
    ends = [reached(fortunes, alpha) for alpha in (0.5, 0.2, 0.05, 0.001)]
    assert all(a[0] >= b[0] and a[1] <= b[1] for a, b in pairwise(ends))
    for alpha, (low, high) in zip((0.5, 0.2, 0.05, 0.001), ends, strict=True):
        for value in np.linspace(-3.0, 3.0, 241):
            up_to, beyond = p_values(fortunes, float(value))
            assert (up_to <= alpha) == (value <= low)
            assert (beyond <= alpha) == (value > high)


def test_the_class_with_the_least_evidence_is_never_rejected() -> None:
    fortunes = Fortunes(np.array([0.0]), np.array([9.0, 8.0]), np.array([9.0, 8.0]))
    assert evidence(fortunes).tolist() == [9.0, 0.0]
    assert reached(fortunes, 0.05) == (0.0, math.inf)


def test_part_of_the_wealth_is_kept_out_of_every_query() -> None:
    part, lack = stakes(np.array([-5.0, 0.0, 9.0]), 3.0)
    assert part.tolist() == pytest.approx([0.5, 0.8, 1.0], abs=1e-4)
    assert lack.tolist() == pytest.approx([8 + math.log(2), 3 - math.log(0.8), 0.5])
    lost = told([Wager(0.0, -1, 10_000, 10_000, 0.5, 10.0, 3.0, 99.0, 1.0)])
    assert lost.wealth[0] == pytest.approx(math.log(0.2))


def test_at_a_level_of_nothing_the_class_with_the_least_evidence_is_left() -> None:
    low, high = Wager(1.0, -1, 40, 2, 0.5, 40, 3.0, 1.0, 1.0), Wager(3.0, 1, 40, 38, 0.5, 40, 3.0, 1.0, 1.0)
    assert reached(told([low, high]), 1.0) == (1.0, 3.0)

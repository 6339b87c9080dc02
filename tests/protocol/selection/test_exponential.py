"""Weights by ranks off the asked one, a budget spent in full, and failures bounded."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.protocol.exact import within
from sottovoce.protocol.selection.exponential import Exponential, exponential
from sottovoce.protocol.selection.geometric import numerators


def test_weights_fall_by_ranks_off_the_order() -> None:
    mechanism = exponential(10, 7, 6, 1.0, split=0.3)
    low, high = mechanism.tables
    # scores by rank: cell 0 has 1..3, cell 2 has 4..8, cell 4 has 9 and 10; the seventh is in cell 2
    found = mechanism.weights(np.array([3, 0, 5, 0, 2, 0]))
    assert found == [low.at(4), low.at(4), low.at(0), high.at(2), high.at(2), high.at(4)]
    assert low.at(1) > high.at(1)  # the smaller share of the budget makes the gentler slope


@pytest.mark.parametrize(
    ("epsilon", "cells", "split"), list(product((0.01, 1.0, 5.0, 12.0), (2, 101, 5000), (0.5, 0.8)))
)
def test_all_of_a_budget_is_spent_and_never_more(epsilon: float, cells: int, split: float) -> None:
    mechanism = exponential(300, 271, cells, epsilon, split)
    assert within(mechanism.ratio, epsilon)
    assert mechanism.epsilon == pytest.approx(epsilon, abs=1e-8)
    low, high = (math.log(made.steepest) for made in mechanism.tables)
    assert low / (low + high) == pytest.approx(split, abs=1e-6)
    assert low + high >= epsilon - 1e-9


def test_slopes_are_nearly_twice_as_steep_where_one_cell_holds_the_weight() -> None:
    def slopes(epsilon: float, cells: int) -> float:
        return sum(math.log(made.steepest) for made in exponential(300, 271, cells, epsilon).tables)

    assert slopes(12.0, 101) > 1.99 * 12
    assert slopes(5.0, 101) > 1.2 * 5
    assert slopes(1.0, 5000) < 1.001


def test_every_order_shares_the_slopes() -> None:
    distance = np.arange(-150, 9)
    first, second = (exponential(300, order, 50, 0.7) for order in (200, 260))
    np.testing.assert_array_equal(first.failure(distance), second.failure(distance))


def test_failure_by_hand() -> None:
    mechanism = exponential(100, 90, 11, 2.0)
    low = mechanism.tables[0]
    found = mechanism.failure([-200, -5, -1, 0, 3])
    for place, distance in ((1, 5), (2, 1)):
        odds = 10 * Fraction(low.at(distance), low.at(0))
        assert found[place] == pytest.approx(float(odds / (1 + odds)))
    assert found[0] < 1e-28
    assert found[3:].tolist() == [1.0, 1.0]
    assert mechanism.failure(-1).shape == ()


@pytest.mark.parametrize("order", [0, -1, 11])
def test_an_order_beyond_the_scores_is_refused(order: int) -> None:
    with pytest.raises(BadInput, match="the sparse vector, which takes any"):
        exponential(10, order, 5, 1.0)


def test_a_mechanism_that_costs_too_much_cannot_be_made() -> None:
    slopes = numerators(1.5, 0.5)
    with pytest.raises(BadInput, match=r"more than its epsilon 1\.0"):
        Exponential(100, 90, 500, *slopes, budget=1.0)
    assert Exponential(100, 90, 500, *slopes, budget=1.5) == Exponential(100, 90, 500, *slopes)

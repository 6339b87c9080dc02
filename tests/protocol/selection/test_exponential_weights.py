"""Tables fall as an exponential does, and no step of one costs more than its numerator says."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.protocol.selection import exponential as tables
from sottovoce.protocol.selection.exponential import BITS, table
from sottovoce.protocol.selection.geometric import WORD, numerators


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 2.0, 20.0])
def test_no_step_is_steeper_than_the_numerator(epsilon: float) -> None:
    p = numerators(epsilon, 0.5)[0]
    made = table(p, 20_000)
    steps = [Fraction(high, low) for high, low in pairwise(made.weights)]
    assert made.steepest == max(steps) == Fraction(WORD, p)
    assert min(steps) > 1
    assert made.weights[-1] >= 1
    assert -(-made.weights[-1] * p // WORD) == made.weights[-1]
    assert made.at(len(made.weights) + 10**9) == made.weights[-1]


def test_it_is_an_exponential_until_it_is_flat() -> None:
    made = table(numerators(1.0, 0.5)[0], 10_000)
    for place in (0, 1, 50, 100):
        assert math.log(made.at(place) / made.at(0)) == pytest.approx(-place / 2, rel=1e-9)
    assert len(made.weights) == pytest.approx(2 * BITS * math.log(2), rel=0.03)


def test_relative_weights_keep_the_shape_and_the_order_of_places() -> None:
    made = table(1 << 63, 9, bits=3)
    found = made.relative(np.array([[3, 0], [90, 1]]), 8)
    np.testing.assert_array_equal(found, [[0.125, 1.0], [0.125, 0.5]])


def test_a_table_ends_at_its_length() -> None:
    assert len(table(numerators(1e-3, 0.5)[0], 7).weights) == 8


def test_a_table_that_would_fill_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST", 2_000)
    with pytest.raises(BadInput, match="sparse vector"):
        table(1 << 63, 1000, bits=200)

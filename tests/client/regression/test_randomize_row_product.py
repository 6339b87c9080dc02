"""One bit about a product of covariates: right on average, and within the budget to the last face."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sottovoce.client.regression.randomize_row import randomize_product
from sottovoce.protocol.channel import OUTCOMES
from sottovoce.protocol.exact import within
from sottovoce.protocol.regression.blocks import COMMON, INSIDE, LOW, tables_of
from sottovoce.protocol.regression.box import box, cq

FEATURES = np.array([[0.3, -0.55, 0.8]])


@pytest.mark.parametrize("epsilon", [0.5, 2.0, math.inf])
@pytest.mark.parametrize(("first", "second"), [(0, 1), (0, 3), (1, 1), (1, 3), (2, 3)])
def test_a_bit_about_a_product_is_right_on_average(epsilon: float, first: int, second: int) -> None:
    tables = tables_of(box((0.5,), 3, epsilon, slopes=1, cells=3, width=1))
    low, common = (int(tables.outcomes[-1, j]) for j in (LOW, COMMON))
    block = len(tables.outcomes) - 1
    x = np.array([1.0, *FEATURES[0]])

    def of(product: float) -> float:
        return product if first == second else (product + 1) / 2

    even = [((2 * k + 1) << 63) // 1000 for k in range(1000)]
    blind = {0: 0.0, low - 1: 0.0, low: 1.0, common - 1: 1.0} if low else {}
    for die, expected in {**blind, common: of(x[first] * x[second]), OUTCOMES - 1: None}.items():
        bits = []
        for e in even[:: 1 if die >= common else 100]:
            words = np.array([[0, e, die << 2]], dtype=np.uint64)
            bits.append(randomize_product(tables.outcomes, block, FEATURES, 0, first, second, words, 0))
        wanted = of(x[first] * x[second]) if expected is None else expected
        assert np.mean(bits) == pytest.approx(wanted, abs=1.001e-3)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 1e-3, 1.0, 20.0])
def test_a_bit_about_a_product_keeps_the_budget(epsilon: float) -> None:
    tables = tables_of(cq(0.5, 1, epsilon, 2, 1))
    low, common, inside = (int(tables.outcomes[-1, j]) for j in (LOW, COMMON, INSIDE))
    assert common == 2 * low
    assert within(Fraction(low + inside, low), epsilon)
    features = np.array([[1.0], [-1.0]])
    top = np.array([[0, 0, (OUTCOMES - 1) << 2]], dtype=np.uint64)  # the last face: spare, if any is
    assert (OUTCOMES - common > inside) == (epsilon == 1e-12)  # the one budget here that leaves faces to spare
    if epsilon == 1e-12:
        block = len(tables.outcomes) - 1
        assert [randomize_product(tables.outcomes, block, features, who, 0, 1, top, 0) for who in (0, 1)] == [0, 0]

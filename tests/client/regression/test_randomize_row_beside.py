"""One bit beside the point: right on average on both sides of it, and the same for messages, loops and exact scores."""

import math

import numpy as np
import pytest

from sottovoce.client.regression.randomize_row import randomize_beside, weighed_side
from sottovoce.protocol.channel import OUTCOMES
from sottovoce.protocol.regression.blocks import COMMON, LOW, tables_of
from sottovoce.protocol.regression.box import box
from sottovoce.protocol.regression.questions import is_up
from sottovoce.sim.randomness import dice

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
FEATURES = np.array([[0.3, -0.55, 0.8]])
POINTS = np.array([[[0.0, 0.0, 0.0, 0.0], [1.0, 0.5, -1.0, 0.25]]])
WAYS = np.array([[[1.0, 0, 0, 0], [1.0, 0, 0, 0]], [[0.2, 1.0, -1.0, 0.5], [1.0, 0.0, 0.5, 2.0]]])
STEPS = np.array([[0.5, -1.0, 1.0], [0.25, -1.0, 4.0]])
X = np.array([1.0, *FEATURES[0]])
FIT = float(POINTS[0, 1] @ X)
PRODUCT = float(WAYS[1, 0] @ X) * float(WAYS[1, 1] @ X)


def told(response: float, way: int, up: bool) -> float:
    return weighed_side(FEATURES, response, 0, POINTS, 0, 1, WAYS, STEPS, way, up)


def test_the_side_is_that_of_the_point_moved_up_or_down() -> None:
    for up in (True, False):
        moved = FIT + (0.5 if up else -0.5)
        assert told(moved - 1e-9, 0, up) == 1
        assert told(moved + 1e-9, 0, up) == -1


def test_a_product_is_turned_to_its_range_and_by_the_side() -> None:
    assert -1 < PRODUCT < 4
    place = (2 * PRODUCT - 3) / 5
    assert told(FIT - 9, 1, True) == pytest.approx(place)
    assert told(FIT + 9, 1, True) == pytest.approx(-place)
    cut = np.array([[0.25, -1.0, PRODUCT / 2]] * 2)
    assert weighed_side(FEATURES, FIT - 9, 0, POINTS, 0, 1, WAYS, cut, 1, False) == 1


@pytest.mark.parametrize("epsilon", [0.5, 2.0, math.inf])
@pytest.mark.parametrize("response", [FIT - 9, FIT + 9])
def test_a_bit_is_right_on_average(epsilon: float, response: float) -> None:
    tables = tables_of(box((0.5,), 3, epsilon, slopes=1, cells=3, width=1))
    low, common = (int(tables.outcomes[-1, j]) for j in (LOW, COMMON))
    block = len(tables.outcomes) - 1
    even = [((2 * k + 1) << 63) // 1000 for k in range(1000)]
    blind = {0: 0.0, low - 1: 0.0, low: 1.0, common - 1: 1.0} if low else {}
    for public in dice(1).words(4):
        value = (told(response, 1, bool(is_up(public))) + 1) / 2
        for die, expected in {**blind, common: value, OUTCOMES - 1: value}.items():
            bits = []
            for each in even[:: 1 if die >= common else 100]:
                words = np.array([[public, each, die << 2]], dtype=np.uint64)
                bits.append(
                    randomize_beside(
                        tables.outcomes, block, FEATURES, response, 0, POINTS, 0, 1, WAYS, STEPS, 1, words, 0
                    )
                )
            assert np.mean(bits) == pytest.approx(expected, abs=1.001e-3)

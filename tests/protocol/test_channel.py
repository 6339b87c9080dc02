"""A channel is its integers: what they cannot be, and what follows from them."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sottovoce.protocol.channel import Channel

ENDS = np.array([[0.0], [1.0]])


def channel(*weights: tuple[int, ...]) -> Channel:
    return Channel("hand-made", np.arange(float(len(weights)))[:, None], weights, np.zeros((len(weights[0]), 1)))


def test_epsilon_is_the_logarithm_of_the_worst_ratio() -> None:
    made = channel((6, 3, 1), (2, 3, 5))
    assert made.ratio == Fraction(5)
    assert made.epsilon == math.nextafter(math.log(5), 2)  # rounded up: the float nearest to log 5 lies below it
    assert made.total == 10
    assert channel((1, 2), (1, 2)).epsilon == 0.0


def test_a_letter_that_excludes_a_symbol_has_no_finite_epsilon() -> None:
    assert channel((3, 1), (4, 0)).ratio is None
    assert channel((3, 1), (4, 0)).epsilon == math.inf


def test_a_letter_that_nobody_sends_costs_nothing() -> None:
    assert channel((3, 1, 0), (1, 3, 0)).ratio == Fraction(3)


def test_epsilon_is_exact_where_floats_are_not() -> None:
    # as floats both weights are 2^61: only the integers know the difference
    assert channel(((1 << 61) + 1, (1 << 61) - 1), ((1 << 61) - 1, (1 << 61) + 1)).ratio == Fraction(
        (1 << 61) + 1, (1 << 61) - 1
    )


def test_rows_of_the_law_sum_to_one() -> None:
    assert channel((6, 3, 1), (2, 3, 5)).distribution.tolist() == [[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]]


@pytest.mark.parametrize(
    "weights",
    [((1, 2), (1, 3)), ((1, 2), (3,)), ((4, -1), (1, 2)), ((0, 0), (0, 0)), ()],
    ids=["totals", "lengths", "negative", "no sides", "empty"],
)
def test_weights_that_are_no_law_are_refused(weights: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(ValueError, match="channel weights"):
        Channel("bad", ENDS, weights, ENDS)


@pytest.mark.parametrize(("vertices", "table"), [(np.zeros((3, 1)), ENDS), (ENDS, np.zeros((3, 1)))])
def test_vertices_and_table_match_the_weights(vertices: np.ndarray, table: np.ndarray) -> None:
    with pytest.raises(ValueError, match="must match"):
        Channel("bad", vertices, ((3, 1), (1, 3)), table)


def test_a_channel_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        channel((3, 1), (1, 3)).weights = ((1, 1), (1, 1))  # type: ignore[misc]

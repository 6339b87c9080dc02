"""Bits beside the point: both sides together tell the slope, half their sum the bend, each with its variance."""

import numpy as np
import numpy.typing as npt
import pytest

from sottovoce.protocol.regression.dithered.segments import LookSegment, Stacked, stacked
from sottovoce.protocol.regression.dithered.step import AT_POINT, DOWN, GRADIENT, UP, no_sums
from sottovoce.protocol.regression.dithered.turned import curve_of, lines_of, turned
from sottovoce.protocol.regression.dithered.vech import packed
from sottovoce.sim.randomness import dice

Floats = npt.NDArray[np.float64]
MOMENTS = np.array([[1.0, 0.2, 0.0], [0.2, 0.4, 0.1], [0.0, 0.1, 0.3]])
SLOPE = 0.4 * MOMENTS + 0.02 * np.diag([0.0, 1.0, -1.0])
PAIR = np.array([[0.5, 1.0, -0.5], [1.0, 0.2, 0.7]])
TAU, RATE = 0.75, 0.6
STEPS = np.array([[0.2, -1.0, 1.0], [0.4, -1.0, 1.0], [0.4, -1.5, 2.5]])
WAYS = np.array([[[1.0, 0, 0], [1.0, 0, 0]], [[1.0, 0, 0], [1.0, 0, 0]], PAIR])
OMEGA = np.eye(3)


def told(people: float, bend: float = 0.0, off: float = 0.0, bits: Floats | None = None) -> Stacked:
    """People whose bits are what they are on average, if the distribution function is a parabola about the point."""
    sums = no_sums(1, 3, 0, 3)
    lines = lines_of(WAYS, STEPS)
    sums.ways[0] = people / 2
    whole, slope = lines @ packed(MOMENTS), lines @ packed(SLOPE)
    for side, sign in ((DOWN, -1), (UP, 1)):
        change = sign * STEPS[:, 0] * slope + (off + bend * STEPS[:, 0] ** 2 / 2) * whole
        means = (2 * TAU - 1) * whole + 2 * change
        sums.ways[1, side] = sums.ways[0, side] * (0.5 + RATE * means / 2)
    if bits is not None:
        sums.ways[1] = bits
    sums.counts[AT_POINT] = 10 * people
    sums.vectors[GRADIENT, 0, 0] = off * 10 * people
    return stacked([LookSegment(0, 100, sums, np.zeros((0, 2, 3)), np.zeros((0, 2)), WAYS, STEPS)], 1, 3)


def test_both_sides_tell_the_slope_whatever_bends_or_is_off() -> None:
    for bend, off in ((0.0, 0.0), (0.3, 0.05)):
        found = turned(told(100.0, bend, off), 0, TAU, RATE, packed(MOMENTS), False)
        assert found.values[0] == pytest.approx(found.combinations[0] @ packed(SLOPE))
        assert found.values[0, 0] == pytest.approx(0.2 * 0.4)


def test_a_line_is_the_product_less_the_middle_of_its_range() -> None:
    x = np.array([1.0, 0.3, -0.6])
    value = lines_of(WAYS, STEPS) @ packed(np.outer(x, x))
    product = float(PAIR[0] @ x) * float(PAIR[1] @ x)
    assert value.tolist() == pytest.approx([1.0, 1.0, (2 * product + 1.5 - 2.5) / 4.0])


def test_the_variance_is_that_of_the_bits() -> None:
    """The mean of (value - truth)^2 x precision over 4,000 draws of three ways is 1: within 5.3 of its errors."""
    source, expected, n = dice(9).generator(), told(400.0), 200
    chances = expected.beside[0, 1, :, 0] / expected.beside[0, 0, :, 0]
    truth = turned(expected, 0, TAU, RATE, packed(MOMENTS), False)
    squares = []
    for _ in range(4000):
        drawn = turned(
            told(400.0, bits=source.binomial(n, chances).astype(float)), 0, TAU, RATE, packed(MOMENTS), False
        )
        squares.append((drawn.values - truth.values) ** 2 * truth.precisions)
    means = np.mean(squares, axis=0)[0]
    assert np.all(np.abs(means - 1) < 5.3 * np.sqrt(2 / 4000) + 0.06)  # the slope's part of the mean is left out


def test_who_was_asked_on_one_side_only_tells_nothing() -> None:
    one = told(100.0)
    one.beside[0, :, DOWN] = 0
    assert not turned(one, 0, TAU, RATE, packed(MOMENTS), False).precisions.any()


@pytest.mark.parametrize("bend", [-0.4, 0.0, 0.7])
def test_half_the_sum_tells_the_bend_beside_the_people_at_the_point(bend: float) -> None:
    for off in (0.0, 0.1):
        one = told(1e6, bend, off)
        found = curve_of(one, turned(one, 0, TAU, RATE, packed(MOMENTS), False), 0, TAU, OMEGA)
        assert found.value == pytest.approx(bend, abs=1e-9)
        assert found.precision > 100
        assert 0.02 < found.half < 0.08


def test_without_answers_there_is_no_bend() -> None:
    nobody = stacked((), 1, 3)
    assert curve_of(nobody, turned(nobody, 0, TAU, RATE, packed(MOMENTS), False), 0, TAU, OMEGA).precision == 0

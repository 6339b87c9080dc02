"""Box channels in exact fractions: the distribution, its ratio, and the decoder, up to 2^32 letters."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.protocol.written_out import matrix

from sottovoce.core.errors import BadInput
from sottovoce.protocol.channel import OUTCOMES
from sottovoce.protocol.exact import within
from sottovoce.protocol.regression.box_channel import FINEST, LETTERS, BoxChannel, box_channel

shapes = st.tuples(
    st.integers(1, 5), st.integers(0, 6), st.integers(1, 40), st.floats(0, 1), st.floats(1e-6, 12.0, allow_nan=False)
)


@settings(deadline=None, max_examples=100)
@given(shapes)
def test_the_budget_is_kept_and_used_up(shape: tuple[int, int, int, float, float]) -> None:
    kinds, slopes, cells, part, epsilon = shape
    width = 1 + int(part * (cells - 1))
    assume(kinds * cells**slopes <= LETTERS)
    fine = OUTCOMES / (FINEST * (kinds * cells**slopes + math.expm1(epsilon) * width**slopes))
    assume(abs(fine - 1) > 1e-6)  # the edge itself
    if fine < 1:
        with pytest.raises(BadInput, match="within 1e-8"):
            box_channel("b", epsilon, kinds, slopes, cells, width)
        return
    box = box_channel("b", epsilon, kinds, slopes, cells, width)
    assert box.letters * box.low + box.inside * box.extra + box.spare == OUTCOMES
    assert within(box.ratio, epsilon)
    if box.letters > box.inside:
        assert box.ratio == Fraction(box.low + box.extra, box.low)
        assert 0 <= epsilon - box.epsilon < 1e-8
        # and next to nothing of the die is wasted
        best = Fraction(math.expm1(epsilon)) * box.inside / (box.letters + Fraction(math.expm1(epsilon)) * box.inside)
        assert abs(box.truth / best - 1) < Fraction(1, 10**7) + Fraction(2, box.extra)


@pytest.mark.parametrize(
    ("kinds", "slopes", "cells", "width"),
    [(2, 31, 2, 1), (1, 2, 1 << 16, 1 << 14), (4, 15, 4, 2), (1, 32, 2, 1), (1 << 32, 0, 1, 1)],
)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 3.0])
def test_alphabets_of_2_to_the_32_letters(kinds: int, slopes: int, cells: int, width: int, epsilon: float) -> None:
    box = box_channel("b", epsilon, kinds, slopes, cells, width)
    assert box.letters == LETTERS
    assert within(box.ratio, epsilon)
    assert epsilon - box.epsilon < 1e-8
    assert not within(Fraction(box.low + box.extra + box.low // 10**7, box.low), epsilon)
    first, last = box.parts(0), box.parts(LETTERS - 1)
    assert first == (0,) * (slopes + 1)
    assert last == (kinds - 1, *(cells - 1,) * slopes)


SMALL = {
    "bit": (2, 0, 1, 1),
    "three sides": (3, 0, 1, 1),
    "slope": (1, 1, 5, 2),
    "cq": (2, 2, 3, 1),
    "boxes": (3, 2, 5, 2),
    "no side": (1, 2, 4, 3),
}


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.0, math.inf])
@pytest.mark.parametrize("shape", SMALL.values(), ids=SMALL)
def test_the_matrix_is_the_stated_law(shape: tuple[int, int, int, int], epsilon: float) -> None:
    box = box_channel("b", epsilon, *shape)
    rows = matrix(box)
    assert {sum(row) for row in rows} == {OUTCOMES}
    assert {len(row) for row in rows} == {box.letters}
    assert len(rows) == box.kinds * box.positions**box.slopes
    if math.isinf(epsilon):
        assert box.ratio is None
        assert box.spare < box.inside  # all that does not divide
        return
    worst = max(Fraction(max(column), min(column)) for column in zip(*rows, strict=True))
    assert box.ratio is not None
    assert worst <= box.ratio
    assert within(worst, epsilon)
    assert all(sum(w > box.low + box.spare for w in row) == box.inside for row in rows)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.0, math.inf])
@pytest.mark.parametrize("shape", SMALL.values(), ids=SMALL)
def test_the_decoder_is_unbiased_letter_by_letter(shape: tuple[int, int, int, int], epsilon: float) -> None:
    box = box_channel("b", epsilon, *shape)
    sides = np.array([side - 0.75 for side in range(box.kinds)] if box.kinds > 1 else [0.75])
    values = [Fraction(float(side)) for side in sides]
    decode, steps = box.decoder(sides), max(box.positions - 1, 1)
    letters = [box.parts(letter) for letter in range(box.letters)]
    places = product(range(box.kinds), *[range(box.positions)] * box.slopes)
    for place, row in zip(places, matrix(box), strict=True):
        distribution = [Fraction(w, OUTCOMES) for w in row]
        truth = values[place[0]]
        if box.kinds > 1:
            heard = sum(
                (
                    p * (values[parts[0]] - decode.shift_side) * decode.side
                    for p, parts in zip(distribution, letters, strict=True)
                ),
                Fraction(0),
            )
            assert heard == truth
        for k in range(box.slopes):
            heard = sum(
                (
                    p * (values[parts[0]] * box.value(parts[1 + k]) - decode.shift_slope) * decode.slope
                    for p, parts in zip(distribution, letters, strict=True)
                ),
                Fraction(0),
            )
            assert heard == truth * (Fraction(2 * place[1 + k], steps) - 1)


@settings(deadline=None, max_examples=100)
@given(st.integers(1, 5), st.integers(0, 5), st.integers(1, 9), st.integers(0, LETTERS - 1))
def test_parts_name_a_letter_in_mixed_radix(kinds: int, slopes: int, cells: int, letter: int) -> None:
    box = box_channel("b", 1.0, kinds, slopes, cells, 1)
    letter %= box.letters
    side, *found = box.parts(letter)
    assert 0 <= side < kinds
    assert all(0 <= cell < cells for cell in found)
    assert side * cells**slopes + sum(cell * cells**k for k, cell in enumerate(found)) == letter


def test_cells_are_named_by_their_middle() -> None:
    box = box_channel("b", 1.0, 2, 1, 5, 2)
    assert [box.value(cell) for cell in range(5)] == [Fraction(k, 5) for k in (-4, -2, 0, 2, 4)]
    assert box.positions == 4


def test_a_box_that_says_nothing_has_no_ratio() -> None:
    silent = BoxChannel("silent", 2, 1, 2, 1, OUTCOMES // 4, 0, 0)
    assert silent.ratio == 1
    assert silent.epsilon == 0.0
    assert silent.truth == 0
    whole = box_channel("whole", 1.0, 1, 2, 3, 3)
    assert whole.ratio == 1


@pytest.mark.parametrize(
    ("kinds", "slopes", "cells", "width", "low", "extra", "spare"),
    [
        (0, 0, 1, 1, 1, OUTCOMES, 0),
        (2, -1, 1, 1, OUTCOMES // 4, OUTCOMES // 2, 0),
        (2, 1, 2, 3, OUTCOMES // 8, OUTCOMES // 2, 0),
        (2, 1, 2, 0, OUTCOMES // 8, OUTCOMES // 2, 0),
        (2, 0, 1, 1, OUTCOMES // 4, OUTCOMES // 2, 1),
        (2, 0, 1, 1, OUTCOMES // 2 + 1, -2, 0),
        (2, 32, 2, 1, 1, 1, OUTCOMES),
    ],
)
def test_a_law_that_is_none_is_refused(
    kinds: int, slopes: int, cells: int, width: int, low: int, extra: int, spare: int
) -> None:
    with pytest.raises(ValueError, match="box channel"):
        BoxChannel("b", kinds, slopes, cells, width, low, extra, spare)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan])
def test_no_budget_is_refused(epsilon: float) -> None:
    with pytest.raises(BadInput, match="epsilon must be positive"):
        box_channel("b", epsilon, 2)


def test_budgets_that_integers_cannot_express_are_refused() -> None:
    with pytest.raises(BadInput, match="more than a channel of 2 letters can express"):
        box_channel("b", 25.0, 2)
    assert box_channel("b", 24.0, 2).low >= FINEST
    with pytest.raises(BadInput, match="too small for a die"):
        box_channel("b", 1e-19, 2)
    with pytest.raises(BadInput, match=r"4,294,967,297 letters, more than the 2\^32"):
        box_channel("b", 1.0, LETTERS + 1)

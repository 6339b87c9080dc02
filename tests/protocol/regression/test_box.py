"""Finite boxes: gains, alphabets too large for a matrix, and what is refused."""

import pytest

from sottovoce.core.errors import BadInput
from sottovoce.protocol.exact import within
from sottovoce.protocol.regression.box import box
from sottovoce.protocol.regression.box_channel import BoxChannel


def test_the_face_alone_and_boxes_share_the_intercept() -> None:
    channel = box((0.75,), 4, 4.0, slopes=2, cells=10, width=4, alone=0.2)
    boxes, side = channel.blocks
    assert boxes.gains.tolist() == [[1.0, 2.5, 2.5, 2.5, 2.5]]
    assert side.gains.tolist() == [[1.0, 0.0, 0.0, 0.0, 0.0]]
    assert side.slopes == ()
    assert boxes.slopes is None


def test_boxes_without_the_face_leave_the_intercept_to_the_face() -> None:
    channel = box((0.75,), 2, 2.0, slopes=2, cells=5, width=2, side=False, alone=0.25)
    boxes, side = channel.blocks
    assert not boxes.side
    assert boxes.slopes == (1, 2)
    assert side.gains[0, 0] == 4.0


def test_several_levels_have_a_face_between_each_two() -> None:
    channel = box((0.25, 0.5, 0.75), 2, 4.0, slopes=2, cells=8, width=3)
    (block,) = channel.blocks
    assert isinstance(block.channel, BoxChannel)
    assert block.channel.kinds == 4
    assert block.gains.shape == (3, 3)


@pytest.mark.parametrize(("slopes", "cells", "width"), [(5, 73, 23), (20, 2, 1), (8, 14, 6), (1, 1 << 16, 1 << 14)])
def test_up_to_2_to_the_32_letters_need_no_matrix(slopes: int, cells: int, width: int) -> None:
    channel = box((0.5,), slopes, 6.0, slopes=slopes, cells=cells, width=width)
    assert 10_000 < channel.letters <= 1 << 32
    assert within(channel.ratio, 6.0)
    assert 0 <= 6.0 - channel.epsilon < 1e-8


def test_a_letter_more_than_a_word_is_refused() -> None:
    with pytest.raises(BadInput, match=r"more than the 2\^32 a report can carry; give fewer slopes"):
        box((0.5,), 8, 6.0, slopes=8, cells=15, width=6)


def test_boxes_without_any_face_are_refused() -> None:
    with pytest.raises(BadInput, match="give alone > 0"):
        box((0.5,), 2, 1.0, slopes=1, cells=3, width=1, side=False)


@pytest.mark.parametrize(("cells", "width"), [(5, 5), (5, 6), (5, 0), (1, 1)])
def test_a_box_without_a_choice_is_refused(cells: int, width: int) -> None:
    with pytest.raises(BadInput, match=f"a box of {width} out of {cells} cells tells nothing of a slope; give a width"):
        box((0.5,), 2, 1.0, slopes=1, cells=cells, width=width)


def test_an_alphabet_beyond_measure_is_told_in_short() -> None:
    with pytest.raises(BadInput, match=r"make 2\.0e\+120 letters, more than the 2\^32"):
        box((0.5,), 120, 1.0, slopes=120, cells=10, width=4)


@pytest.mark.parametrize(("slopes", "alone"), [(0, 0.0), (3, 0.0), (-1, 0.0), (1, 1.0), (1, -0.1)])
def test_boxes_that_leave_slopes_untold_are_refused(slopes: int, alone: float) -> None:
    with pytest.raises(BadInput, match="give slopes from 1 to 2, and alone from 0"):
        box((0.5,), 2, 1.0, slopes=slopes, cells=5, width=2, alone=alone)

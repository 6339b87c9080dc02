"""A regression channel: gains that are unbiased together, sides, and the largest budget of its blocks."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.protocol.channel import OUTCOMES, Channel
from sottovoce.protocol.regression.blocks import Block, Open, RegressionChannel
from sottovoce.protocol.regression.box_channel import box_channel

SIDE = box_channel("side", 1.0, 2)
BOX = box_channel("box", 0.5, 2, 2, 4, 2)
SLOPE = box_channel("slope", 2.0, 1, 1, 3)
ONE, TWO, THREE = (quarters * OUTCOMES // 4 for quarters in (1, 2, 3))
MATRIX = Channel("m", np.zeros((4, 2)), ((THREE, ONE), (ONE, THREE), (TWO, TWO), (ONE, THREE)), np.zeros((2, 2)))


def gains(*values: float) -> Any:
    return np.array([values])


def mixed() -> RegressionChannel:
    blocks = (
        Block(0.25, SIDE, (), gains(2.0, 0, 0, 0)),
        Block(0.25, BOX, None, gains(2.0, 3.0, 3.0, 3.0)),
        Block(0.5, SLOPE, None, gains(0.0, 3.0, 3.0, 3.0)),
    )
    return RegressionChannel("mixed", (0.75,), 3, blocks)


def test_a_block_speaks_of_what_its_channel_holds() -> None:
    assert [Block(1.0, c, None, gains(1, 1, 1)).count for c in (SIDE, BOX, SLOPE, MATRIX, Open())] == [0, 2, 1, 1, 2]
    assert [Block(1.0, c, None, gains(1, 1, 1)).side for c in (SIDE, BOX, SLOPE, MATRIX, Open())] == [
        True, True, False, True, True,
    ]  # fmt: skip


def test_inclusion() -> None:
    assert Block(1.0, SIDE, (), gains(1, 0, 0)).inclusion(2).tolist() == [1, 0, 0]
    assert Block(1.0, BOX, None, gains(1, 1)).inclusion(5).tolist() == [1, 0.4, 0.4, 0.4, 0.4, 0.4]
    assert Block(1.0, BOX, (3, 1), gains(1, 1)).inclusion(3).tolist() == [1, 1, 0, 1]
    assert Block(1.0, SLOPE, None, gains(1, 1)).inclusion(2).tolist() == [0, 0.5, 0.5]
    assert Block(1.0, SIDE, None, gains(1)).inclusion(0).tolist() == [1]


def test_gains_must_add_up_for_every_coordinate() -> None:
    # 0.25 x 2 + 0.25 x 2 for the intercept; 0.25 x 2/3 x 3 + 0.5 x 1/3 x 3 for a slope
    channel = mixed()
    for block, axis in ((0, 0), (1, 2), (2, 3)):
        blocks = list(channel.blocks)
        changed = blocks[block].gains.copy()
        changed[0, axis] += 1e-6
        blocks[block] = Block(blocks[block].probability, blocks[block].channel, blocks[block].slopes, changed)
        with pytest.raises(ValueError, match="unbiased"):
            RegressionChannel("off", (0.75,), 3, tuple(blocks))


@pytest.mark.parametrize("taus", [(0.5, 0.25), (0.5, 0.5)])
def test_levels_ascend(taus: tuple[float, float]) -> None:
    three = box_channel("side", 1.0, 3)
    with pytest.raises(ValueError, match="ascend"):
        RegressionChannel("bad", taus, 0, (Block(1.0, three, (), np.ones((2, 1))),))


def test_the_channel_promises_its_weakest_block() -> None:
    channel = mixed()
    assert channel.epsilon == SLOPE.epsilon
    assert channel.ratio == SLOPE.ratio
    assert channel.letters == 2 * 4**2
    assert channel.widest == 2


def test_without_a_channel_there_is_no_ratio() -> None:
    channel = RegressionChannel("open", (0.5,), 1, (Block(1.0, Open(), (1,), np.ones((1, 2))),))
    assert channel.ratio is None
    assert math.isinf(channel.epsilon)
    assert channel.letters == 0
    half = RegressionChannel(
        "half", (0.5,), 0, (Block(0.5, SIDE, (), np.ones((1, 1))), Block(0.5, Open(), (), np.ones((1, 1))))
    )
    assert half.ratio is None


def test_a_matrix_has_its_own_ratio() -> None:
    channel = RegressionChannel("m", (0.5,), 1, (Block(1.0, MATRIX, (1,), np.ones((1, 2))),))
    assert channel.ratio == Fraction(3)
    assert channel.letters == 2


def test_faces_count_the_quantiles_at_or_above_the_response() -> None:
    three = box_channel("side", 1.0, 4)
    channel = RegressionChannel("sides", (0.25, 0.5, 0.9), 0, (Block(1.0, three, (), np.ones((3, 1))),))
    # one quantile at or above the response: it is the highest, so level 2 alone has its indicator on
    assert channel.side_scores(2) == pytest.approx(np.array([-0.9, 0.1, 0.1, 0.1]))
    assert channel.side_scores(1) == pytest.approx(np.array([-0.5, -0.5, 0.5, 0.5]))
    assert channel.side_scores(0) == pytest.approx(np.array([-0.25, -0.25, -0.25, 0.75]))
    assert channel.radius == 0.9


SMALL = Channel("s", np.zeros((4, 2)), ((3, 1), (1, 3), (2, 2), (1, 3)), np.zeros((2, 2)))
ODD = Channel("o", np.zeros((3, 2)), ((THREE, ONE), (ONE, THREE), (TWO, TWO)), np.zeros((2, 2)))


@pytest.mark.parametrize(
    ("taus", "p", "block"),
    [
        ((0.25, 0.75), 0, Block(1.0, SIDE, (), np.ones((2, 1)))),  # a third side would have a letter of its own
        ((0.25, 0.75), 1, Block(1.0, MATRIX, (1,), np.ones((2, 2)))),
        ((0.5,), 1, Block(1.0, SMALL, (1,), np.ones((1, 2)))),  # a die of four faces, thrown with 2^62
        ((0.5,), 1, Block(1.0, ODD, (1,), np.ones((1, 2)))),
        ((0.5,), 1, Block(1.0, MATRIX, (2,), np.ones((1, 2)))),
        ((0.5,), 1, Block(1.0, BOX, None, np.ones((1, 2)))),
        ((0.5,), 3, Block(1.0, BOX, (1, 1), np.ones((1, 4)))),
        ((0.5,), 1, Block(1.0, MATRIX, (1,), np.ones((2, 2)))),
        ((0.5,), 1, Block(-1.0, MATRIX, (1,), -np.ones((1, 2)))),
    ],
)
def test_a_block_that_the_encoder_would_not_sample_is_refused(taus: tuple[float, ...], p: int, block: Block) -> None:
    with pytest.raises(BadInput, match="could cost more than it says"):
        RegressionChannel("bad", taus, p, (block,))


def test_a_block_that_costs_more_than_the_budget_is_refused() -> None:
    blocks = mixed().blocks
    assert RegressionChannel("mixed", (0.75,), 3, blocks, budget=2.0).ratio == SLOPE.ratio
    with pytest.raises(BadInput, match=r"'mixed' would cost 2\.0, more than its epsilon 1\.5"):
        RegressionChannel("mixed", (0.75,), 3, blocks, budget=1.5)

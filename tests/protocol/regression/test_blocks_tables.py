"""The tables of a regression channel hold its integers and nothing else."""

import math

import numpy as np
import pytest

from sottovoce.protocol.channel import OUTCOMES
from sottovoce.protocol.exact import exponential
from sottovoce.protocol.regression.blocks import (
    BOX,
    COMMON,
    EXTRA,
    FIXED,
    FORM,
    INSIDE,
    LOW,
    MATRIX,
    OPEN,
    SLOPES,
    Block,
    RegressionChannel,
    open_channel,
    tables_of,
)
from sottovoce.protocol.regression.box import box
from sottovoce.protocol.regression.box_channel import BoxChannel, box_channel
from sottovoce.protocol.regression.lp import lp_pair


def pairs(epsilon: float = 1.0) -> RegressionChannel:
    """A pair channel for either slope, of different shapes, beside the side alone."""
    first, second = lp_pair(0.75, epsilon, 9.0), lp_pair(0.75, epsilon, 1.0)
    side = box_channel("side", epsilon, 2)
    return RegressionChannel(
        "pairs",
        (0.75,),
        2,
        (
            Block(0.3, first, (1,), np.array([[1.0, 1 / 0.3, 0.0]])),
            Block(0.3, second, (2,), np.array([[1.0, 0.0, 1 / 0.3]])),
            Block(0.4, side, (), np.array([[1.0, 0.0, 0.0]])),
        ),
    )


def test_a_box_is_four_numbers() -> None:
    channel = box((0.25, 0.75), 3, 4.0, slopes=2, cells=6, width=3, alone=0.25)
    tables = tables_of(channel)
    for i, block in enumerate(channel.blocks):
        distribution = block.channel
        assert isinstance(distribution, BoxChannel)
        assert tables.plan[i, :FIXED].tolist() == [
            BOX,
            3,
            distribution.slopes,
            distribution.cells,
            distribution.width,
            distribution.positions,
        ]
        low, common, extra, inside = (int(x) for x in tables.outcomes[i])
        assert (low, extra) == (distribution.low, distribution.extra)
        assert common == distribution.low * distribution.letters
        assert inside == distribution.extra * distribution.inside
        assert common + inside + distribution.spare == OUTCOMES
    assert tables.upto.tolist() == [0.75, 1.0]
    assert tables.score.tolist() == [channel.side_scores(0).tolist(), channel.side_scores(1).tolist()]


def test_a_matrix_is_its_steps() -> None:
    channel = pairs()
    tables = tables_of(channel)
    assert tables.plan[:, FORM].tolist() == [MATRIX, MATRIX, BOX]
    for i in range(2):
        distribution = channel.blocks[i].channel
        assert not isinstance(distribution, BoxChannel)
        weights = getattr(distribution, "weights")  # noqa: B009 - a matrix, as mypy cannot see
        letters = len(weights[0])
        steps = [[int(x) for x in row] for row in tables.steps[i]]
        common = np.diff([0, *steps[0]]).tolist()
        for j, row in enumerate(weights):
            own = [b - a for a, b in zip([0, *steps[1 + j]], steps[1 + j], strict=False)]
            assert [c + o for c, o in zip(common, own, strict=True)][:letters] == list(row)
            assert steps[0][-1] + steps[1 + j][-1] == OUTCOMES
        # letters are common to all symbols as far as any can be: else the record would speak more than it has to
        assert common[:letters] == [min(column) for column in zip(*weights, strict=True)]


def test_the_last_block_takes_what_rounding_leaves() -> None:
    side = box_channel("side", 1.0, 2)
    blocks = tuple(Block(0.1, side, (), np.ones((1, 1))) for _ in range(10))
    upto = tables_of(RegressionChannel("ten", (0.5,), 0, blocks)).upto
    assert sum([0.1] * 10) < 1.0
    assert upto[-1] == 1.0
    assert (np.diff(upto) > 0).all()


def test_fixed_slopes_are_named_and_others_drawn() -> None:
    assert tables_of(pairs()).plan[:, FIXED:].tolist() == [[1], [2], [0]]
    assert tables_of(box((0.5,), 4, 2.0, slopes=2, cells=3, width=1)).plan[0, FIXED:].tolist() == [0, 0]
    assert tables_of(box((0.5,), 2, 2.0, slopes=2, cells=3, width=1)).plan[0, FIXED:].tolist() == [1, 2]


def test_an_open_channel_has_no_faces() -> None:
    tables = tables_of(open_channel((0.25, 0.5), 3))
    assert tables.plan[0, [FORM, SLOPES]].tolist() == [OPEN, 3]
    assert not tables.outcomes[0].any()
    assert [int(x) for x in tables.outcomes[1]] == [0, 0, OUTCOMES, OUTCOMES]  # a bit about a moment is the truth, too


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
def test_the_bit_of_a_moment_keeps_the_budget_of_the_channel(epsilon: float) -> None:
    channel = box((0.5,), 2, epsilon, slopes=1, cells=3, width=1)
    low, common, extra, inside = (int(tables_of(channel).outcomes[-1, j]) for j in (LOW, COMMON, EXTRA, INSIDE))
    assert common == 2 * low
    assert extra == inside
    # on all sides above the common ones the record speaks: see `client.regression.randomize_row.randomize_product`
    assert low + (OUTCOMES - common) <= exponential(channel.epsilon) * low
    assert math.log1p((OUTCOMES - common) / low) == pytest.approx(epsilon, rel=1e-7)

"""CQ_X(q, s): the paper's special cases, its decoder, and what is refused."""

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.protocol.written_out import dense_channel, matrix

from sottovoce.core.errors import BadInput
from sottovoce.protocol.randomised_response import binary
from sottovoce.protocol.regression.blocks import Block, RegressionChannel
from sottovoce.protocol.regression.box import cq
from sottovoce.protocol.regression.box_channel import BoxChannel


def boxes(channel: RegressionChannel) -> list[tuple[Block, BoxChannel]]:
    return [(block, block.channel) for block in channel.blocks if isinstance(block.channel, BoxChannel)]


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0, 24.0, math.inf])
@pytest.mark.parametrize("tau", [0.5, 0.9])
def test_without_slopes_it_is_the_binary_channel(tau: float, epsilon: float) -> None:
    channel = cq(tau, 0, epsilon, q=7, s=1)
    ((block, side),) = boxes(channel)
    assert matrix(side) == binary(epsilon).weights
    assert block.gains.tolist() == [[1.0]]
    dense = dense_channel(side, channel.side_scores(0))
    # the score is the binary vertex less tau, and so is what is decoded
    assert dense.vertices[:, 0] == pytest.approx(binary(epsilon).vertices[:, 0] - tau, abs=1e-15)
    assert dense.table[:, 0] == pytest.approx(binary(epsilon).table[:, 0] - tau, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(("p", "q", "s"), [(1, 4, 1), (2, 2, 2), (2, 4, 3), (5, 3, 2), (8, 4, 9)])
def test_blocks_are_those_of_a_uniform_draw(p: int, q: int, s: int) -> None:
    channel = cq(0.75, p, 2.0, q, s)
    total = sum(block.probability for block in channel.blocks)
    assert total == pytest.approx(1.0, abs=1e-15)
    drawn = [block.probability * block.inclusion(p) for block in channel.blocks]
    assert sum(drawn) == pytest.approx(np.full(p + 1, s / (p + 1)), abs=1e-15)
    for block, box in boxes(channel):
        assert box.width == 1
        assert box.letters == (2 if block.side else 1) * q**box.slopes
        assert box.slopes + block.side == s
        assert set(block.gains[block.gains > 0].tolist()) == {(p + 1) / s}


def test_the_whole_score_has_one_block_and_no_inflation() -> None:
    channel = cq(0.5, 3, 4.0, q=3, s=4)
    ((block, box),) = boxes(channel)
    assert block.slopes == (1, 2, 3)
    assert block.gains.tolist() == [[1.0] * 4]
    assert box.letters == 54


def test_two_steps_are_the_ends_of_the_range() -> None:
    _, (_, slopes) = boxes(cq(0.75, 2, 1.0, q=2, s=1))
    dense = dense_channel(slopes, np.array([0.75]))
    assert dense.vertices[:, 0].tolist() == [-0.75, 0.75]


def test_no_privacy_still_rounds() -> None:
    channel = cq(0.5, 2, math.inf, q=3, s=2)
    assert channel.epsilon == math.inf
    for block, box in boxes(channel):
        dense = dense_channel(box, channel.side_scores(0) if block.side else np.array([channel.radius]))
        said = np.argmax(dense.distribution, axis=1)
        assert dense.table[said] == pytest.approx(dense.vertices, abs=1e-15)
        assert all(sorted(row) == [0] * (box.letters - 1) + [box.total] for row in matrix(box))


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_decoding_is_the_papers_equation_11(epsilon: float) -> None:
    channel = cq(0.75, 1, epsilon, q=4, s=2)
    ((_, box),) = boxes(channel)
    rate = math.expm1(epsilon) / (math.exp(epsilon) + 7)
    assert float(box.truth) == pytest.approx(rate, rel=1e-8)
    dense = dense_channel(box, channel.side_scores(0))
    centre = dense.vertices.mean(axis=0)
    assert dense.table == pytest.approx(centre + (dense.vertices - centre) / rate, rel=1e-7)


def test_the_ratio_is_exact() -> None:
    _, (_, box) = boxes(cq(0.5, 2, 2.0, q=3, s=1))
    assert box.ratio == Fraction(box.low + box.extra, box.low)


@pytest.mark.parametrize(
    ("p", "epsilon", "q", "s", "words"),
    [
        (2, 1.0, 1, 1, "at least 2 steps"),
        (2, 1.0, 2, 0, "1 to 3 of the 3 coordinates, not s = 0"),
        (2, 1.0, 2, 4, "1 to 3 of the 3 coordinates, not s = 4"),
        (40, 1.0, 2, 41, "make 2.2e+12 letters, more than the 2^32 a report can carry"),
        (20_000, 1.0, 10, 20_001, "make 2.0e+20000 letters"),
        (2, -1.0, 2, 1, "epsilon must be positive"),
        (2, 40.0, 2, 1, "is more than a channel"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(p: int, epsilon: float, q: int, s: int, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        cq(0.5, p, epsilon, q, s)
    assert words in str(caught.value)
    assert "; give" in str(caught.value)

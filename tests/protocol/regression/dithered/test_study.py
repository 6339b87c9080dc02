"""What the dithered regression is told: derived numbers follow from the channel."""

import math

import numpy as np
import pytest

from sottovoce.protocol.regression.blocks import RegressionChannel, open_channel
from sottovoce.protocol.regression.box import box, cq
from sottovoce.protocol.regression.dithered.study import DitheredStudy


def study(channel: RegressionChannel) -> DitheredStudy:
    levels, d = len(channel.taus), channel.p + 1
    return DitheredStudy(
        channel, np.array([np.eye(d)] * levels), np.ones(levels), 1.0, np.zeros((levels, d)), np.eye(d)
    )


def test_sizes_follow_from_the_channel() -> None:
    one = study(box((0.1, 0.5, 0.75), 4, 2.0, slopes=1, cells=3, width=1))
    assert (one.levels, one.d) == (3, 5)
    assert one.tails == pytest.approx(np.array([0.1, 0.5, 0.25]))
    assert one.limit == math.inf
    assert not one.known


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_a_bit_about_a_moment_is_the_records_own_as_often_as_randomised_response(epsilon: float) -> None:
    assert study(cq(0.5, 2, epsilon, 2, 1)).bit_rate == pytest.approx(math.tanh(epsilon / 2), rel=1e-7)
    assert study(cq(0.5, 2, math.inf, 2, 1)).bit_rate == 1.0


def test_only_open_blocks_are_exact() -> None:
    assert study(open_channel(0.5, 2)).exact
    assert not study(cq(0.5, 2, math.inf, 2, 1)).exact

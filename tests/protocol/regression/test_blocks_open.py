"""No channel: what it states about itself."""

import math

import pytest

from sottovoce.protocol.regression.blocks import Open, open_channel


@pytest.mark.parametrize(("taus", "p"), [(0.5, 0), (0.75, 3), ((0.1, 0.9), 2)])
def test_it_tells_every_coordinate_once_and_is_not_private(taus: float | tuple[float, ...], p: int) -> None:
    channel = open_channel(taus, p)
    (block,) = channel.blocks
    assert isinstance(block.channel, Open)
    assert block.inclusion(p).tolist() == [1.0] * (p + 1)
    assert (block.gains == 1.0).all()
    assert channel.epsilon == math.inf
    assert channel.ratio is None
    assert channel.letters == 0

"""Both sides walk alike: the server finds from the letters alone where the site's point went."""

import numpy as np
import pytest

from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.protocol.messages import Query, Study
from sottovoce.protocol.randomised_response import binary
from sottovoce.protocol.walk import moves, walk
from sottovoce.sim.randomness import dice


def test_moves_are_the_decoded_letters_less_their_target() -> None:
    channel = binary(1.0)
    assert moves(channel, 0.9) == pytest.approx(channel.table[:, 0] - 0.1)
    assert moves(binary(np.inf), 0.25).tolist() == [-0.75, 0.25]


def test_at_the_quantile_the_walk_has_no_drift() -> None:
    tau, channel = 0.7, binary(0.5)
    above = channel.distribution[1] * (1 - tau) + channel.distribution[0] * tau
    assert above @ moves(channel, tau) == pytest.approx(0.0, abs=1e-15)


def test_walk_by_hand() -> None:
    path = walk(1.0, 0.5, np.array([1, 0, 0], dtype=np.uint8), np.array([-1.0, 3.0]))
    assert path.tolist() == [1.0, 2.5, 2.0, 1.5]
    assert walk(1.0, 0.5, np.empty(0, dtype=np.uint8), np.array([-1.0, 3.0])).tolist() == [1.0]


def test_the_server_repeats_the_walk_of_a_site_record_by_record() -> None:
    records = Records(np.linspace(-2.0, 2.0, 60))
    whole = Site(records, Study(0.4, 1.0), dice(3))
    apart = Site(records, Study(0.4, 1.0), dice(3))
    letters = np.frombuffer(whole.answer(Query(1, (0.3,), (60,), 0.2)).letters, dtype=np.uint8)
    path = walk(0.3, 0.2, letters, moves(binary(1.0), 0.4))
    assert len(np.unique(path)) > 10
    for i, point in enumerate(path[:-1].tolist()):
        assert apart.answer(Query(i + 1, (point,), (1,))).letters == letters[i : i + 1].tobytes()

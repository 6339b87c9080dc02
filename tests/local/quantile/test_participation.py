"""The public coin: the right number of sites, every subset alike, the same draws in any portions."""

import itertools

import numpy as np
import pytest

from sottovoce.local.quantile.participation import Coin
from sottovoce.protocol.randomised_response import binary
from sottovoce.server.quantile.recursion.schedule import elapsed
from sottovoce.server.quantile.recursion.step_size import decay
from sottovoce.server.quantile.recursion.study import WalkStudy
from sottovoce.sim.randomness import dice


def study(participation: float) -> WalkStudy:
    return WalkStudy(
        np.full(5, 0.5),
        np.full(5, 0.2),
        (binary(1.0),) * 5,
        np.full(5, 10),
        elapsed("every:1", 10),
        0.0,
        decay([0.5]),
        participation=participation,
    )


@pytest.mark.parametrize(("participation", "chosen"), [(0.2, 1), (0.4, 2), (0.41, 3), (0.99, 5)])
def test_as_many_as_asked_for(participation: float, chosen: int) -> None:
    masks = Coin(study(participation), dice(1)).masks(100)
    assert (len(masks) == 0) == (chosen == 5)
    assert np.all(masks.sum(axis=1) == chosen)


def test_everybody_needs_no_coin() -> None:
    assert Coin(study(1.0)).masks(7).shape == (0, 5)


def test_portions_do_not_matter() -> None:
    one, other = Coin(study(0.4), dice(3)), Coin(study(0.4), dice(3))
    assert np.array_equal(one.masks(6), np.concatenate([other.masks(1), other.masks(5)]))


def test_every_pair_comes_up_alike() -> None:
    """Chi-square on 9 degrees of freedom: 48.8 is passed by chance less often than one time in 5 million."""
    masks = Coin(study(0.4), dice(4)).masks(5000)
    counts = [int(np.sum(masks[:, i] & masks[:, j])) for i, j in itertools.combinations(range(5), 2)]
    assert sum((count - 500) ** 2 / 500 for count in counts) < 48.8

"""A trajectory is short whatever the number of rounds, and open where nothing can be said yet."""

import math

import numpy as np
import pytest

from sottovoce.protocol.randomised_response import binary
from sottovoce.server.quantile.recursion import regression_root
from sottovoce.server.quantile.recursion import walk as sgd
from sottovoce.server.quantile.recursion.schedule import elapsed
from sottovoce.server.quantile.recursion.step_size import decay
from sottovoce.server.quantile.recursion.study import WalkStudy
from sottovoce.server.quantile.trajectory import Trajectory, checkpoints


@pytest.mark.parametrize("rounds", [1, 7, 200, 10_000, 10**9])
def test_at_most_two_hundred_rows_and_the_last_round(rounds: int) -> None:
    looks = checkpoints(rounds)
    assert looks[0] >= 1
    assert looks[-1] == rounds
    assert len(looks) <= 200
    assert np.all(np.diff(looks) > 0)


def test_what_cannot_be_estimated_yet_is_left_open() -> None:
    study = WalkStudy(
        np.full(1, 0.5), np.ones(1), (binary(1.0),), np.full(1, 10), elapsed("every:1", 10), 0.0, decay([0.5])
    )
    trajectory = Trajectory(study, regression_root.estimate)
    trajectory(sgd.init(study))
    (row,) = trajectory.rows
    assert (row.round, row.reports, row.low, row.high) == (0, 0, -math.inf, math.inf)
    assert math.isnan(row.average)

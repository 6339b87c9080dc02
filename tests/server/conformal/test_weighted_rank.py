"""One value of many, counted with votes."""

import math

import numpy as np
import pytest

from sottovoce.server.conformal.votes import weighted_rank
from sottovoce.sim.randomness import dice


def test_it_is_the_rank_of_the_values_written_out() -> None:
    source = dice(1).generator()
    for _ in range(200):
        n = int(source.integers(1, 8))
        values = source.choice([-1.0, 0.0, 0.5, 2.0, math.inf], size=n)
        votes = source.integers(1, 5, size=n)
        every = np.sort(np.repeat(values, votes))
        for rank in range(1, int(votes.sum()) + 1):
            assert weighted_rank(values, votes, rank) == every[rank - 1]


def test_rank_zero_is_below_everything() -> None:
    assert weighted_rank(np.array([1.0]), np.array([3]), 0) == -math.inf


def test_a_rank_beyond_all_votes_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="there are 5 votes, and rank 6 was asked for"):
        weighted_rank(np.array([1.0, 2.0]), np.array([2, 3]), 6)


def test_votes_of_nothing_do_not_count() -> None:
    assert weighted_rank(np.array([1.0, 2.0]), np.array([0, 1]), 1) == 2.0

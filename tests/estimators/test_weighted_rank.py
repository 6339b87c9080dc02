"""The server takes a rank of all values, each counted with its votes."""

import math

import numpy as np
import pytest

from sottovoce.estimators.weighted_rank import weighted_rank
from sottovoce.sim.randomness import dice


@pytest.mark.parametrize("seed", range(5))
def test_votes_are_repetitions(seed: int) -> None:
    source = dice(seed).generator()
    values = source.integers(0, 6, 12).astype(float)  # with ties
    votes = source.integers(1, 5, 12)
    written_out = np.sort(np.repeat(values, votes))
    for rank in range(1, len(written_out) + 1):
        assert weighted_rank(values, votes, rank) == written_out[rank - 1]


def test_an_infinite_answer_counts_as_the_largest() -> None:
    assert weighted_rank(np.array([math.inf, 1.0]), np.array([3, 2]), 2) == 1.0
    assert weighted_rank(np.array([math.inf, 1.0]), np.array([3, 2]), 3) == math.inf


def test_rank_zero_covers_nothing_and_a_rank_beyond_all_votes_is_a_mistake() -> None:
    assert weighted_rank(np.array([1.0]), np.array([1]), 0) == -math.inf
    with pytest.raises(ValueError, match="1 votes, and rank 2"):
        weighted_rank(np.array([1.0]), np.array([1]), 2)

"""The server's part of one round: one value of those that the sites sent, each counted with its votes."""

import numpy as np

from sottovoce.core.arrays import Floats, Ints


def weighted_rank(values: Floats, votes: Ints, rank: int) -> float:
    """Return the smallest value at or below which there are at least ``rank`` votes; minus infinity for rank 0.

    >>> weighted_rank(np.array([3.0, 1.0, 2.0]), np.array([1, 1, 5]), 6)
    2.0
    """
    if rank < 1:
        return -np.inf
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(votes[order])
    if rank > reached[-1]:
        raise ValueError(f"there are {int(reached[-1])} votes, and rank {rank} was asked for")
    return float(values[order][np.searchsorted(reached, rank)])

"""Masks cancel in the sum over all sites, and hide every single message."""

import itertools

import numpy as np
import pytest
from scipy import special

from sottovoce.client.conformal.shares import Vector, masked
from sottovoce.sim.randomness import SeededSource, dice


def all_masked(vectors: list[Vector], seed: int = 0) -> list[Vector]:
    def shared(place: int) -> dict[int, SeededSource]:
        others = (other for other in range(len(vectors)) if other != place)
        return {other: dice(seed + 1_000 * min(place, other) + max(place, other)) for other in others}

    return [masked(vector, place, shared(place)) for place, vector in enumerate(vectors)]


@pytest.mark.parametrize("sites", [1, 2, 3, 7])
def test_the_sum_is_right(sites: int) -> None:
    vectors = [np.arange(5, dtype=np.uint32) * (place + 1) - np.uint32(place) for place in range(sites)]
    hidden = all_masked(vectors)
    np.testing.assert_array_equal(np.sum(hidden, axis=0, dtype=np.uint32), np.sum(vectors, axis=0, dtype=np.uint32))


def test_every_site_is_hidden() -> None:
    vectors = [np.full(4, 3, dtype=np.uint32) for _ in range(4)]
    hidden = all_masked(vectors)
    for one, other in itertools.combinations([*hidden, vectors[0]], 2):
        assert (one != other).all()


def test_a_single_message_is_uniform() -> None:
    # chi-square on the highest and on the lowest four bits, false alarm 1e-6
    first = np.concatenate([all_masked([np.zeros(400, dtype=np.uint32)] * 3, 10_000 * k)[1] for k in range(10)])
    for nibble in (first >> np.uint32(28), first & np.uint32(15)):
        observed = np.bincount(nibble, minlength=16)
        assert special.chdtrc(15, float(np.sum((observed - 250) ** 2) / 250)) > 1e-6


def test_no_mask_with_oneself() -> None:
    with pytest.raises(ValueError, match="itself"):
        masked(np.zeros(2, dtype=np.uint32), 1, {1: dice(1)})

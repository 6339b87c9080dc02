"""A site counts what a threshold covers, and the noise that it adds has the law it should."""

import math

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.client.conformal.covered import count_covered, noisy_covered
from sottovoce.client.record import Records
from sottovoce.protocol.selection.geometric import noisy_count

SCORES = Records(np.array([0.5, 2.0, 2.0, 7.0]))


@pytest.mark.parametrize(("threshold", "count"), [(-1.0, 0), (0.5, 1), (2.0, 3), (6.9, 3), (math.inf, 4)])
def test_scores_at_the_threshold_are_covered(threshold: float, count: int) -> None:
    assert count_covered(SCORES, threshold) == count


def test_the_noise_is_two_sided_geometric() -> None:
    noise, n = noisy_count(0.8), 4000
    dice = sv.sim.dice(3)
    steps = np.array([noisy_covered(SCORES, 2.0, noise, dice) - 3 for _ in range(n)])
    edges = range(-6, 7)
    distribution = [noise.fall ** abs(k) * (1 - noise.fall) / (1 + noise.fall) for k in edges]
    expected = np.array([*distribution, 1 - sum(distribution)]) * n
    seen = np.array([*(np.sum(steps == k) for k in edges), np.sum(np.abs(steps) > 6)])
    # chi-square with 13 degrees of freedom exceeds 54 with probability 6e-7
    assert float(np.sum((seen - expected) ** 2 / expected)) < 54

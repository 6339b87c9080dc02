import os

import numpy as np
import pytest

from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.federated.abreast import Letters, begin
from sottovoce_papers.simulation.federated.laplace_noise import descend, disturb
from sottovoce_papers.simulation.federated.rounds import steps

compiled = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="too long uncompiled")


@compiled
@pytest.mark.parametrize("scales", [[0.5, 0.5, 0.5], [0.2, 1.0, 1.0], [3.0]])
def test_the_noise_is_a_sum_of_laplace_numbers(scales: list[float]) -> None:
    n = 200_000
    total = np.zeros(n)
    disturb(total, dice(1).words(4 * n).reshape(4, n), np.empty(n), np.empty(n), np.array(scales))
    variance = 2 * float(np.sum(np.square(scales)))
    fourth = 3 * variance**2 + 12 * float(np.sum(np.power(scales, 4)))
    assert abs(total.mean()) < 5 * np.sqrt(variance / n)  # false alarm 6e-7
    assert abs(total.var() - variance) < 5 * np.sqrt((fourth - variance**2) / n)


def test_without_noise_it_is_plain_descent() -> None:
    data, tau, n = dice(2).generator().standard_normal((6, 3)), 0.7, 2
    letters = Letters(np.zeros((3, 2)), 0.0, 1.0, np.zeros((3, n)), data, np.ones(3), np.zeros((3, 2)))
    each = steps(np.ones(6, dtype=np.int64), 4.0)
    lanes = begin(np.array([0.0, 1.0]), 1, dice(1).words(4 * n).reshape(4, n))
    with np.errstate(over="ignore"):
        descend(lanes, letters, np.zeros(3), tau, each)
    point = 1.0
    for row, step in zip(data, each, strict=True):
        point += step * float(np.mean(tau - (row <= point)))
    assert np.isclose(lanes.points[0, 1], point)

"""The chi-square statistics against their textbook values, and rare cells taken together."""

import numpy as np
import pytest

from sottovoce.sim import dice
from sottovoce_papers.simulation.conformal.agreement import against_distribution, against_each_other


def test_textbook_values() -> None:
    statistic, freedom = against_distribution(np.array([20, 30, 50]), np.array([0.3, 0.3, 0.4]))
    assert statistic == pytest.approx(100 / 30 + 0 + 100 / 40)
    assert freedom == 2
    # 2 x 2 table: n (ad - bc)^2 / products of the margins
    statistic, freedom = against_each_other(np.array([30, 70]), np.array([80, 120]))
    assert statistic == pytest.approx(300 * (30 * 120 - 70 * 80) ** 2 / (100 * 200 * 110 * 190))
    assert freedom == 1


def test_rare_cells_are_taken_together() -> None:
    distribution = np.array([1e-4, 2e-4, 0.5, 0.4997])
    assert against_distribution(np.array([1, 0, 49, 50]), distribution)[1] == 1
    assert against_distribution(np.array([10, 20, 49_990, 49_980]), distribution)[1] == 3
    assert against_each_other(np.array([0, 1, 40, 60]), np.array([0, 0, 50, 50]))[1] == 1


def test_one_distribution_is_not_told_from_itself_and_another_is() -> None:
    source = dice(3).generator()
    draws = [np.bincount(source.binomial(20, chance, 20_000), minlength=21) for chance in (0.5, 0.5, 0.52)]
    same, freedom = against_each_other(draws[0], draws[1])
    assert 0.3 * freedom < same < 3 * freedom
    assert against_each_other(draws[0], draws[2])[0] > 10 * freedom

"""Which part of each site lies below a score, with ties and without, and averages over a site's scores."""

import numpy as np
import pytest

from sottovoce.client.conformal.site import PooledScores
from sottovoce.client.record import Records


def pooled(*columns: list[float]) -> PooledScores:
    return PooledScores([Records(np.array(column)) for column in columns])


def test_a_score_counts_half_below_itself() -> None:
    found = pooled([3.0, 1.0, 5.0], [2.0, 4.0])
    assert len(found) == 5
    assert found.shares_at(np.arange(5)).tolist() == [
        pytest.approx([0.5 / 3, 1 / 3, 1.5 / 3, 2 / 3, 2.5 / 3]),
        pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0]),
    ]


def test_ties_do_not_lie_below_each_other() -> None:
    found = pooled([1.0, 1.0, 1.0, 2.0], [1.0, 3.0])
    assert len(found) == 3
    assert found.shares_at(np.array([0, 1, 2])).tolist() == [[0.125, 0.875, 1.0], [0.25, 0.5, 0.75]]


def test_averages_run_over_every_score_of_a_site() -> None:
    found = pooled([1.0, 1.0, 2.0, 4.0], [3.0, 4.0])
    heights = np.array([1.0, 0.7, 0.0])
    # ranks of 1, 2, 3, 4 are 0 to 3; heights are known at 0, 1 and 3
    assert found.averages(np.array([0, 1, 3]), heights) == pytest.approx([(1 + 1 + 0.7 + 0) / 4, (0.35 + 0) / 2])


def test_values_stay_hidden() -> None:
    assert repr(pooled([123456.0, 1.0])) == "PooledScores(1 sites, values hidden)"

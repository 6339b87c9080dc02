"""The baselines against sorting by hand and against the Beta distribution of split conformal prediction."""

import numpy as np
import pytest

from sottovoce.sim import dice
from sottovoce_papers.simulation.conformal.baselines import (
    alone,
    averaged,
    centralised,
    split,
    split_distribution,
    split_order,
)

SCORES = dice(5).generator().random((4, 3, 40))


@pytest.mark.parametrize("alpha", [0.1, 0.25, 0.3])
def test_thresholds_equal_those_of_sorted_scores(alpha: float) -> None:
    for threes, pooled, mean, first in zip(
        SCORES, centralised(SCORES, alpha), averaged(SCORES, alpha), alone(SCORES, alpha), strict=True
    ):
        assert pooled == sorted(threes.ravel())[split_order(120, alpha) - 1]
        own = [sorted(site)[split_order(40, alpha) - 1] for site in threes]
        assert mean == pytest.approx(sum(own) / 3)
        assert first == own[0]


def test_the_order_is_not_lost_to_rounding() -> None:
    assert split_order(9, 0.1) == 9
    assert split_order(99, 0.1) == 90  # 0.9 * 100 is 90.00000000000001 in floating point
    assert split_order(999_999, 0.3) == 700_000


def test_one_small_site_makes_the_average_infinite() -> None:
    assert np.isinf(averaged(SCORES[:, :, :8], 0.1)).all()
    assert np.isfinite(averaged(SCORES[:, :, :9], 0.1)).all()
    assert np.isinf(split(SCORES[0, :, :3], 0.1)).all()
    assert split_distribution(8, 0.1) == (1.0, 0.0, 1.0)


def test_the_distribution_of_a_split_is_met() -> None:
    found = split(dice(8).generator().random((20_000, 50)), 0.1)
    mean, spread, low = split_distribution(50, 0.1)
    # false alarm 1e-6 each: 4.9 standard errors
    assert abs(found.mean() - mean) < 4.9 * spread / np.sqrt(len(found))
    assert abs(found.std() / spread - 1) < 4.9 * 1.1 / np.sqrt(2 * len(found))
    assert abs(np.mean(found < low) - 0.05) < 4.9 * np.sqrt(0.05 * 0.95 / len(found))

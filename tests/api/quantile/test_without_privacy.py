"""The open answer: order statistics of all records, and an interval between two of them."""

import numpy as np
import pytest

from sottovoce.api.quantile.without_privacy import pooled_quantile
from sottovoce.client.reading.table import read_sites
from sottovoce.sim.randomness import dice


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.93])
def test_the_estimate_is_the_order_statistic_of_all_records(tau: float) -> None:
    values = dice(1).generator().normal(size=1001)
    found = pooled_quantile(read_sites([values[:300], values[300:]]), tau)
    assert found.estimate == np.quantile(values, tau, method="inverted_cdf")
    assert found.low < found.estimate < found.high


def test_the_interval_holds_the_right_number_of_records() -> None:
    values = np.arange(10_000.0)
    found = pooled_quantile(read_sites([values]), 0.3, 0.9)
    assert found.high - found.low == pytest.approx(2 * 1.644854 * (10_000 * 0.21) ** 0.5, abs=2)


def test_ranks_stay_among_the_records() -> None:
    found = pooled_quantile(read_sites([[1.0, 2.0, 3.0]]), 0.5, 0.999999)
    assert (found.low, found.high) == (1.0, 3.0)

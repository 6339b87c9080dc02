"""Dates, durations and rounded numbers: read, covered, shown and tested in their own words."""

import datetime
import os

import numpy as np
import pandas as pd
import pytest

import sottovoce as sv
from sottovoce.server.quantile.result import QuantileResult
from sottovoce.sim.randomness import dice

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="whole studies take minutes when not compiled"
)


LEVEL = 1 - 1e-6  # of the intervals that must cover: the stated false-alarm rate
SOURCE = dice(31).generator()
NORTH, SOUTH = SOURCE.gamma(2.0, 10.0, 20_000), SOURCE.gamma(2.0, 10.0, 20_000)
SITES = {"north": NORTH, "south": SOUTH}
MEDIAN = 16.7834699


def covers(result: QuantileResult, truth: float) -> bool:
    low, high = result.interval_at(LEVEL)
    return low <= truth <= high


def test_dates_are_whole_days_and_covered() -> None:
    start = datetime.date(2020, 1, 1)
    days = [start + datetime.timedelta(days=int(wait)) for wait in NORTH]
    result = sv.federated_quantile({"north": days}, 0.5, 3.0, randomness=dice(1))
    low, high = result.interval_at(LEVEL)
    truth = (datetime.date(2020, 1, 17) - datetime.date(1970, 1, 1)).days  # 16 whole days hold the median
    assert low <= truth <= high
    assert low == int(low)
    assert result.format(truth) == "2020-01-17"
    assert result.to_dict()["unit"] == "date"
    assert result.test("2020-01-17").pvalue > 1e-6 > result.test("2020-03-01").pvalue


def test_durations_are_read_shown_and_tested_in_their_own_words() -> None:
    waits = pd.Series(pd.to_timedelta(np.round(60 * NORTH), unit="s"))
    result = sv.federated_quantile([waits], 0.5, 3.0, resolution="1s", bounds=("1min", "2h"), randomness=dice(1))
    assert covers(result, 60 * MEDIAN)
    assert result.to_dict()["text"]["estimate"].startswith("16 min")
    assert result.test("0:16:47").pvalue > 1e-6 > result.test("30min").pvalue


@pytest.mark.parametrize("step", [0.5, 2.0, 0.1])
def test_with_a_resolution_the_atom_is_covered_and_everything_is_on_the_lattice(step: float) -> None:
    rounded = {name: np.round(values / step) * step for name, values in SITES.items()}
    result = sv.federated_quantile(rounded, 0.5, 3.0, resolution=step, randomness=dice(1))
    atom = float(np.round(MEDIAN / step) * step)
    assert covers(result, atom)
    for value in (result.estimate, *result.interval):
        assert value == float(f"{round(value / step) * step:.12g}")
    assert result.warnings == result.hints == ()
    low, high = result.interval
    inside = np.arange(round(low / step), round(high / step) + 1) * step
    assert all(result.test(value).pvalue >= 0.05 for value in inside)
    assert all(result.test(value).pvalue < 0.05 for value in (low - step, high + step))


def test_ties_without_a_resolution_are_hinted_at() -> None:
    result = sv.federated_quantile([np.round(NORTH)], 0.5, 3.0, randomness=dice(1))
    assert any("resolution=" in hint for hint in result.hints)
    assert not any("resolution=" in warning for warning in result.warnings)

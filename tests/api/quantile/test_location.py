"""Records a hundred million spreads away from zero give the same interval, moved: to 1e-4 of its length."""

import os

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.sim.randomness import dice

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="whole studies need the compiler"
)
FAR = 1e8


@pytest.mark.parametrize("seed", [5, 6, 8])
@pytest.mark.parametrize("method", ["staged", "regression"])
def test_the_interval_moves_with_the_records(method: str, seed: int) -> None:
    sites = [die.generator().normal(size=20_000) for die in dice(1).split(5)]
    near = sv.federated_quantile(sites, 0.5, 2.0, method=method, bounds=(-50, 50), randomness=dice(seed))
    moved = [np.asarray(site + FAR) for site in sites]
    far = sv.federated_quantile(moved, 0.5, 2.0, method=method, bounds=(FAR - 50, FAR + 50), randomness=dice(seed))
    length = near.interval.high - near.interval.low
    assert abs(far.interval.low - FAR - near.interval.low) < 1e-4 * length
    assert abs(far.interval.high - FAR - near.interval.high) < 1e-4 * length


@pytest.mark.parametrize("factor", [2.0**-30, 2.0**30])
def test_the_interval_scales_with_the_records(factor: float) -> None:
    sites = [die.generator().gamma(2.0, size=20_000) for die in dice(2).split(5)]
    one = sv.federated_quantile(sites, 0.7, 2.0, scale=1.0, randomness=dice(3))
    many = sv.federated_quantile([site * factor for site in sites], 0.7, 2.0, scale=factor, randomness=dice(3))
    assert many.interval.low == pytest.approx(one.interval.low * factor, rel=1e-9)
    assert many.interval.high == pytest.approx(one.interval.high * factor, rel=1e-9)

"""Methods and baselines: reproducible, near the truth where they should be, and far where the paper says so."""

from itertools import starmap

import numpy as np
import pytest

from sottovoce.core.arrays import Floats
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.baselines.divide_and_conquer import DivideAndConquer
from sottovoce_papers.simulation.baselines.dp_sgd import DpSgd
from sottovoce_papers.simulation.baselines.sample_quantile import SampleQuantile
from sottovoce_papers.simulation.baselines.single import Single
from sottovoce_papers.simulation.methods import Method, Regression, SelfNormalised
from sottovoce_papers.simulation.populations import homogeneous, population

RATES = (0.9,) * 3
METHODS: list[Method] = [
    SelfNormalised(0.5, RATES, start=0.1),
    SelfNormalised(0.5, RATES, "every:5", participation=0.6),
    Regression(0.5, RATES, "log", start=0.1),
    DpSgd(0.5, RATES, start=0.1),
    DivideAndConquer(0.5, RATES, start=0.1, decoded=True),
    Single(0.5, RATES, start=0.1),
    SampleQuantile(0.5),
]


@pytest.fixture(autouse=True)
def _wrapping_is_meant() -> object:
    with np.errstate(over="ignore"):
        yield


@pytest.fixture(scope="module")
def sample() -> list[Floats]:
    return homogeneous(population("normal"), 3).sample(dice(1).generator(), 500)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_contract(method: Method, sample: list[Floats]) -> None:
    before = [values.copy() for values in sample]
    one, again, other = (method(sample, seed, 0.9) for seed in (1, 1, 2))
    assert one == again
    assert (one == other) == isinstance(method, SampleQuantile)
    assert one.low <= one.point <= one.high
    assert one.level == 0.9
    assert abs(one.point) < 0.5  # ten standard errors of the best method, five of the worst
    assert all(starmap(np.array_equal, zip(before, sample, strict=True)))


def test_the_printed_divide_and_conquer_hardly_leaves_its_start(sample: list[Floats]) -> None:
    slow = DivideAndConquer(0.5, (0.25,) * 3, start=2.0)(sample, 1, 0.95)
    fast = DivideAndConquer(0.5, (0.25,) * 3, start=2.0, decoded=True)(sample, 1, 0.95)
    assert slow.point > fast.point > 0


def test_sample_quantile_weighs_records_by_share_over_size() -> None:
    sites = [np.arange(10.0), 100 + np.arange(1000.0)]
    assert SampleQuantile(0.3, (0.5, 0.5))(sites, 0, 0.95).point == 5.0
    assert SampleQuantile(0.3, (0.01, 0.99))(sites, 0, 0.95).point > 100

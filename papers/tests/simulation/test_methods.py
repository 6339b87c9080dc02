"""The papers' methods on sites of records: reproducible, near the truth, and their input unchanged."""

from itertools import starmap

import numpy as np
import pytest

from sottovoce.core.arrays import Floats
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.methods import Method, Regression, SelfNormalised
from sottovoce_papers.simulation.populations import homogeneous, population

RATES = (0.9,) * 3
METHODS: list[Method] = [
    SelfNormalised(0.5, RATES, start=0.1),
    SelfNormalised(0.5, RATES, "every:5", participation=0.6),
    Regression(0.5, RATES, "log", start=0.1),
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
    assert one != other
    assert one.low <= one.point <= one.high
    assert one.level == 0.9
    assert abs(one.point) < 0.5  # ten standard errors of the best method, five of the worst
    assert all(starmap(np.array_equal, zip(before, sample, strict=True)))

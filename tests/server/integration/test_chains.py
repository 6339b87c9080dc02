"""Chains step as (3.6) says, with its sign and without 1/r, and their spread is (3.7)."""

import math
from typing import Any

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.inference.self_normalised.memory import average
from sottovoce.protocol.randomised_response import binary, epsilon_of_rate
from sottovoce.server.integration.chains import SHORTEST, ChainStudy, chain, measure
from sottovoce.server.quantile.recursion import walk as sgd
from sottovoce.sim.randomness import dice

CHANNEL = binary(epsilon_of_rate(0.5))


@pytest.mark.parametrize("tau", [0.5, 0.2])
@pytest.mark.parametrize("rate", [0.25, 0.9, 1.0])
@pytest.mark.parametrize("unit", [1.0, 40.0])
def test_a_chain_is_the_recursion_of_the_paper(tau: float, rate: float, unit: float) -> None:
    study = ChainStudy(tau, binary(epsilon_of_rate(rate)), constant=1.5, power=0.7)
    one = chain(study, 3.0, unit, 120)
    state, point, total = sgd.init(one), 3.0, 0.0
    letters = (dice(4).words(120) >> np.uint64(63)).astype(np.uint8)
    for t, letter in enumerate(letters.tolist(), start=1):
        state = sgd.step(one, state, [bytes([letter])])
        below = 1 - letter  # the paper hears "at or below", we hear "above"
        bracket = (1 + rate - 2 * rate * tau) / 2 * below - (1 - rate + 2 * rate * tau) / 2 * (1 - below)
        point -= unit * 1.5 * t**-0.7 * bracket
        total += point
        assert state.points[0] == pytest.approx(point, rel=1e-9, abs=1e-9)
    assert average(state.memory) == pytest.approx(total / 120, rel=1e-9, abs=1e-9)


def test_the_spread_of_the_chains_is_the_printed_variance() -> None:
    averages, n = np.array([2.0, 2.5, 1.0, 4.0, 3.5]), 5 * 700
    printed = float(np.sum((averages - averages.mean()) ** 2) * 700 / 4)  # (3.7)
    found = measure(averages)
    assert found.estimate == pytest.approx(averages.mean())
    assert found.variance == pytest.approx(printed / n)
    assert found.df == 4


def test_the_spread_keeps_its_digits_far_from_zero() -> None:
    averages = dice(5).generator().standard_normal(12)
    near, far = measure(averages), measure(averages + 1e8)
    assert far.std_error == pytest.approx(near.std_error, rel=1e-6)
    assert far.estimate - 1e8 == pytest.approx(near.estimate, abs=1e-6)


def test_what_does_not_divide_is_not_asked() -> None:
    study = ChainStudy(0.5, CHANNEL, chains=7)
    assert study.length(7 * 150 + 6) == 150
    assert study.length(7 * SHORTEST) == SHORTEST
    with pytest.raises(BadInput, match="7 chains need at least 700 records, and there are 699"):
        study.length(7 * SHORTEST - 1)


def test_the_rate_is_the_channels() -> None:
    for rate in (0.1, 0.5, 1.0):
        study = ChainStudy(0.5, binary(epsilon_of_rate(rate)))
        assert study.rate == pytest.approx(rate)
        assert study.crowd(800).unit_variance == pytest.approx(1 / (4 * rate**2 * 800))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"tau": 0.0}, "tau lies strictly"),
        ({"tau": math.nan}, "tau lies strictly"),
        ({"chains": 1}, "give at least 2"),
        ({"constant": 0.0}, "the step constant"),
        ({"constant": math.inf}, "the step constant"),
        ({"power": 0.5}, "the power of the step"),
        ({"power": 1.0}, "the power of the step"),
        ({"start": math.nan}, "the start must be"),
        ({"unit": 0.0}, "the unit must be"),
        ({"unit": math.inf}, "the unit must be"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        ChainStudy(**{"tau": 0.5, "channel": CHANNEL, **options})

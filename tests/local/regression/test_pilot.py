"""The pilot finds location and scale in any unit, counts its people, and leaves the rest alone."""

import math

import numpy as np
import numpy.typing as npt
import pytest

from sottovoce.client.regression.rows import Rows
from sottovoce.core.errors import BadInput
from sottovoce.local.regression.pilot import Pilot
from sottovoce.protocol.randomised_response import binary, rate_of
from sottovoce.server.regression.pilot import LENGTH, searchers
from sottovoce.sim.randomness import dice

Floats = npt.NDArray[np.float64]


def rows_of(response: Floats) -> Rows:
    return Rows(np.zeros((len(response), 1)), response)


def people(n: int, seed: int = 3) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    return np.arange(n, dtype=np.uint64), dice(seed).words(3 * n).reshape(n, 3)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0, math.inf])
@pytest.mark.parametrize(("centre", "scale"), [(0.0, 1.0), (1e6, 1e-3), (-5e3, 1e4), (0.02, 1e8), (1e8, 1.0)])
def test_location_and_scale_in_any_unit(centre: float, scale: float, epsilon: float) -> None:
    n = 60_000
    pilot = Pilot((0.5,), 1, epsilon)
    taken = pilot.take(rows_of(centre + scale * dice(5).generator().standard_normal(n)), *people(n))
    assert pilot.guess is not None
    assert abs(pilot.guess.start[0, 0] - centre) < 1.2 * scale
    assert 1 / 3 < pilot.guess.size / (LENGTH * scale) < 3
    assert taken == pilot.people < 5 * searchers(rate_of(binary(epsilon)))


def test_people_after_the_search_are_not_asked() -> None:
    response = dice(5).generator().standard_normal(5000)
    pilot = Pilot((0.25, 0.75), 2, 2.0)
    rows = rows_of(response)
    where, words = people(5000)
    taken = pilot.take(rows, where, words)
    assert 0 < taken < 5000
    assert pilot.take(rows, where[taken:], words[taken:]) == 0
    assert pilot.people == taken
    # and what they would have said changes nothing
    other = response.copy()
    other[taken:] = 1e9
    again = Pilot((0.25, 0.75), 2, 2.0)
    assert again.take(rows_of(other), where, words) == taken
    assert pilot.guess is not None
    assert again.guess is not None
    assert np.array_equal(again.guess.start, pilot.guess.start)
    assert pilot.guess.start.shape == (2, 3)
    assert pilot.guess.start[0, 0] < pilot.guess.start[1, 0]


def test_people_are_asked_in_the_order_given_each_by_their_last_word() -> None:
    response = dice(5).generator().standard_normal(3000)
    where, words = people(3000)
    plain, turned, stirred = Pilot((0.5,), 1, 3.0), Pilot((0.5,), 1, 3.0), Pilot((0.5,), 1, 3.0)
    plain.take(rows_of(response), where, words)
    assert turned.take(rows_of(response[::-1].copy()), where[::-1].copy(), words) == plain.people
    other = words.copy()
    other[:, :-1] = 0
    stirred.take(rows_of(response), where, other)
    for pilot in (turned, stirred):
        assert pilot.guess is not None
        assert plain.guess is not None
        assert np.array_equal(pilot.guess.start, plain.guess.start)


def test_too_few_people_leave_the_search_under_way() -> None:
    pilot = Pilot((0.5,), 1, 1.0)
    where, words = people(50)
    assert pilot.take(rows_of(np.arange(50.0)), where, words) == 50
    assert pilot.guess is None
    assert pilot.people == 50


def test_at_epsilon_near_zero_the_responses_do_not_matter() -> None:
    states = []
    for response in (np.full(4000, -1e6), np.linspace(0, 9, 4000)):
        pilot = Pilot((0.5,), 1, 1e-6)
        pilot.take(rows_of(response), *people(4000))
        states.append(pilot.__getstate__())
    assert np.array_equal(states[0]["now"][0], states[1]["now"][0])
    assert states[0]["now"][0].sum() > 1000


def test_no_budget_no_pilot() -> None:
    with pytest.raises(BadInput, match="epsilon must be positive"):
        Pilot((0.5,), 1, 0.0)

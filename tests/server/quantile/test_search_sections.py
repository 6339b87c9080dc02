"""Cutting a bracket through noise finds the crossing, with any number of places at once and from any guess."""

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

from sottovoce.core.arrays import Floats, Ints
from sottovoce.server.quantile.asking import Ask
from sottovoce.server.quantile.search import Crossing, Cutter
from sottovoce.sim.randomness import dice


class Eye:
    """Sees sign(place - crossing) / 2 with noise, or whatever curve it is given, and counts the looks."""

    def __init__(self, crossing: float, noise: float = 0.0, flat: float = 0.0, seed: int = 0) -> None:
        self.crossing, self.noise, self.flat = crossing, noise, flat
        self.generator = dice(seed).generator()
        self.rounds, self.places = 0, 0

    def measure(self, places: Floats) -> Generator[Ask, Ints, Floats]:
        self.rounds += 1
        self.places += len(places)
        yield Ask(places, np.ones((1, len(places)), dtype=np.int64))
        beyond = places - self.crossing
        clear = np.where(np.abs(beyond) <= self.flat, 0.0, np.sign(beyond) / 2)
        return clear + self.noise * self.generator.standard_normal(len(places))


def finish(talk: Generator[Any, Any, Any]) -> Any:
    try:
        ask = next(talk)
        while True:
            ask = talk.send(ask.counts)
    except StopIteration as stop:
        return stop.value


@pytest.mark.parametrize("arity", [1, 3, 15])
@pytest.mark.parametrize("crossing", [-99.3, 0.1, 63.7])
def test_a_clear_crossing_is_bracketed(arity: int, crossing: float) -> None:
    eye = Eye(crossing)
    found: Crossing = finish(Cutter(eye.measure, arity, 0.45, 4).section(-100.0, 100.0, 0.01))
    assert found.low <= crossing <= found.high
    assert found.high - found.low <= 0.01
    assert found.place == (found.low + found.high) / 2
    assert eye.rounds == int(np.ceil(np.log(20_000) / np.log(arity + 1)))
    assert eye.places == arity * eye.rounds


@pytest.mark.parametrize("arity", [1, 3, 15])
def test_noise_is_averaged_away(arity: int) -> None:
    # Wald: each of at most 15 x 15 looked-at places errs with chance exp(-2 * 0.45 * 0.5 / 0.18^2) = 1e-6
    for seed in range(20):
        eye = Eye(37.21, noise=0.18, seed=seed)
        found = finish(Cutter(eye.measure, arity, 0.45, 8).section(-100.0, 100.0, 0.1))
        assert found.low <= 37.21 <= found.high


@pytest.mark.parametrize("arity", [1, 3, 15])
def test_a_place_that_stays_undecided_is_the_answer(arity: int) -> None:
    eye = Eye(0.0, flat=30.0)
    found = finish(Cutter(eye.measure, arity, 0.45, 4).section(-100.0, 100.0, 0.01))
    assert abs(found.place) <= 30.0 < 100.0
    assert found.low < -30.0
    assert found.high > 30.0


def test_the_nearest_of_several_undecided_places_is_taken() -> None:
    def measure(places: Floats) -> Generator[Ask, Ints, Floats]:
        yield Ask(places, np.ones((1, len(places)), dtype=np.int64))
        return places / 1000

    cutter = Cutter(measure, 4, 0.45, 3)
    assert finish(cutter.cut(np.array([-40.0, -3.0, 20.0, 900.0]))) == (-1, 3, 1)


def test_contradicting_places_still_leave_a_bracket() -> None:
    def measure(places: Floats) -> Generator[Ask, Ints, Floats]:
        yield Ask(places, np.ones((1, len(places)), dtype=np.int64))
        return np.array([1.0, -1.0, 1.0])

    assert finish(Cutter(measure, 3, 0.45, 4).cut(np.array([0.0, 1.0, 2.0]))) == (1, 2, None)


def test_decided_places_are_not_asked_again() -> None:
    asked = []

    def measure(places: Floats) -> Generator[Ask, Ints, Floats]:
        asked.append(places.tolist())
        yield Ask(places, np.ones((1, len(places)), dtype=np.int64))
        return np.where(np.abs(places) < 1.5, 0.2 * places, np.sign(places))

    left, right, near = finish(Cutter(measure, 5, 0.45, 4).cut(np.array([-2.0, -1.0, 0.0, 1.0, 2.0])))
    assert (left, right, near) == (1, 3, 2)
    assert asked[0] == [-2.0, -1.0, 0.0, 1.0, 2.0]
    assert asked[1] == [-1.0, 0.0, 1.0]
    assert asked[3] == [0.0]


@pytest.mark.parametrize("arity", [1, 3, 15])
@pytest.mark.parametrize("crossing", [-500.2, -1.7, 2.6, 500.2])
def test_a_gallop_goes_either_way(arity: int, crossing: float) -> None:
    eye = Eye(crossing)
    found = finish(Cutter(eye.measure, arity, 0.45, 4).gallop(0.0, 1.0, 0.01))
    assert found.low <= crossing <= found.high
    assert found.high - found.low <= 0.01
    assert eye.rounds <= 40


def test_a_gallop_stops_at_an_undecided_place() -> None:
    eye = Eye(9.0, flat=3.0)
    found = finish(Cutter(eye.measure, 1, 0.45, 4).gallop(0.0, 1.0, 0.01))
    assert 6.0 <= found.place <= 12.0


def test_a_gallop_after_nothing_gives_up_and_says_so() -> None:
    found = finish(Cutter(Eye(1e9).measure, 1, 0.45, 4).gallop(5.0, 1.0, 0.01))
    assert found.place == 5.0
    assert found.high == np.inf
    assert np.isfinite(found.low)

"""A footing lies near the quantile, and its density near that of the records, in any unit."""

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
from scipy import special

from sottovoce.core.arrays import Ints
from sottovoce.server.quantile.asking import Ask, SiteProfile
from sottovoce.server.quantile.pilot import Initialisation, find_initialisation

CROWD = SiteProfile(np.ones(1), np.array([0.5]), np.array([60_000]))


def answered(talk: Generator[Ask, Ints, Initialisation], location: float, scale: float) -> Initialisation:
    """Answer as many normal records would, without noise."""
    ask = next(talk)
    while True:
        above = special.ndtr((location - ask.points) / scale)
        try:
            ask = talk.send(np.rint(ask.counts * (0.25 + 0.5 * above)).astype(np.int64))
        except StopIteration as stop:
            found = stop.value
            assert isinstance(found, Initialisation)
            return found


@pytest.mark.parametrize("tau", [0.25, 0.5, 0.9])
@pytest.mark.parametrize(("location", "scale"), [(0.0, 1.0), (47_000.0, 12_000.0), (-3.0, 1e-4)])
def test_a_footing_is_near(tau: float, location: float, scale: float) -> None:
    found = answered(find_initialisation(CROWD, tau), location, scale)
    quantile = float(special.ndtri(tau))
    assert (found.point - location) / scale == pytest.approx(quantile, abs=0.3)
    density = np.exp(-(quantile**2) / 2) / np.sqrt(2 * np.pi)
    assert 0.5 < found.density * scale / density < 2
    assert found.unit == pytest.approx(0.399 / found.density)


def asked(tau: float, **knowledge: Any) -> list[int]:
    """Return how many records each ask of a search takes."""
    counts = []

    def counted() -> Generator[Ask, Ints, Initialisation]:
        talk = find_initialisation(CROWD, tau, **knowledge)
        ask = next(talk)
        while True:
            counts.append(int(ask.counts.sum()))
            ones = yield ask
            try:
                ask = talk.send(ones)
            except StopIteration as stop:
                found: Initialisation = stop.value
                return found

    answered(counted(), 5.0, 1.0)
    return counts


def test_bounds_shorten_the_search() -> None:
    assert sum(asked(0.5, bounds=(0.0, 10.0))) < sum(asked(0.5))


def test_pilots_take_no_more_than_they_may() -> None:
    plain, modest, ample = asked(0.95), asked(0.95, most=0.1), asked(0.95, most=1.9)
    assert sum(plain[-5:]) > 0.8 * 60_000
    assert abs(sum(modest[-5:]) - 0.1 * 60_000) < 5
    assert modest[:-5] == plain[:-5]
    assert ample == plain

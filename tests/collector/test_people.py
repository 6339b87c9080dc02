"""Simulated people of a collector: few are turned away as late, and all others count, whoever is missing or slow."""

import numpy as np
import pytest
from benchmarks.collector_late import METHODS, simulate
from benchmarks.collector_people import Clock, arrivals, begun, gather

from sottovoce.sim import dice


@pytest.mark.parametrize("method", METHODS)
def test_few_are_turned_away_as_late(method: str) -> None:
    found = simulate(method, rate=50.0, delay=0.5, grace=1.0, seed=7, people=1500)
    assert found.asked >= 1000
    assert found.away <= 0.05 * found.asked


def test_whoever_is_not_turned_away_counts() -> None:
    generator, clock = dice(8).generator(), Clock()
    given = {"name": "x", "people": 2000, "quantile": METHODS["sequence"], "rounds": {"grace": 0, "deadline": 100}}
    with begun(given, 8, clock) as (studies, one):
        told = gather(studies, one, clock, lambda n: np.floor(generator.gamma(4, 10, n)), generator, 0.05)
        found = one.estimate(0)
    assert found["reports"] == told["asked"] - told["away"]
    assert found["late"] > 0
    assert found["over"]


@pytest.mark.parametrize("share", [0.7, 1.0, 1.1])
def test_so_large_a_share_of_those_who_are_needed_comes(share: float) -> None:
    needs = np.array([30.0, 0.0, 70.0])
    came = arrivals(needs, share, dice(9).generator())
    assert came.sum() == round(100 * share)
    assert came[1] == 0
    assert (came <= needs).all() if share <= 1 else (came >= needs).all()

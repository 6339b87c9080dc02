"""The search finds the bulk of the data in any unit, in few rounds and with a small part of the records."""

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest

from sottovoce.core.arrays import Ints
from sottovoce.server.quantile.asking import Ask, QueryAllocator, SiteProfile
from sottovoce.server.quantile.search import HUGE, TINY, Coordinate, Found, arity_for, find
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.families import Generator as Source
from sottovoce_papers.simulation.populations import Population, blend, population

SITES, SIZE, RATE = 4, 50_000, 0.5
CROWD = SiteProfile(np.full(SITES, 1 / SITES), np.full(SITES, RATE), np.full(SITES, SIZE))

LAWS = {
    "normal at 0": population("normal"),
    "tiny unit": population("normal").moved(3e-6, 1e-6),
    "large unit": population("exponential").moved(0.0, 1e6),
    "far away": population("normal").moved(1e6, 1.0),
    "far below": population("student", 3.0).moved(-2e4, 30.0),
    "heavy": population("cauchy").moved(5.0, 2.0),
    "two modes": blend([population("normal").moved(-2.0), population("normal").moved(2.0)], [0.5, 0.5]),
    "narrow bounds": population("uniform").moved(-1.0, 2.0),
}


def answers(distribution: Population, crowd: SiteProfile, source: Source | None) -> Callable[[Ask], Ints]:
    """Answer with the expected letters, or with drawn ones."""

    def answer(ask: Ask) -> Ints:
        above = 1 - np.asarray(distribution.cdf(ask.points))
        letters = (1 - crowd.rates[:, None]) / 2 + crowd.rates[:, None] * above
        if source is None:
            return np.round(ask.counts * letters).astype(np.int64)
        drawn: Ints = source.binomial(ask.counts, np.clip(letters, 0.0, 1.0)).astype(np.int64)
        return drawn

    return answer


def drive(talk: Generator[Ask, Ints, Any], answer: Callable[[Ask], Ints]) -> Any:
    try:
        ask = next(talk)
        while True:
            assert np.all(np.isfinite(ask.points))
            ask = talk.send(answer(ask))
    except StopIteration as stop:
        return stop.value


def searched(
    distribution: Population, source: Source | None, rough: bool, **public: Any
) -> tuple[Found, QueryAllocator]:
    talker = QueryAllocator(CROWD)
    talk = find(talker, public.get("bounds"), public.get("scale"), public.get("care", 1.0), rough)
    return drive(talk, answers(distribution, CROWD, source)), talker


def check(distribution: Population, found: Found, rough: bool) -> None:
    assert 0.15 < float(distribution.cdf(found.centre)) < 0.85
    held = float(distribution.cdf(found.centre + found.scale) - distribution.cdf(found.centre - found.scale))
    if not rough:
        assert 0.1 < held < 0.95
    assert held > 0


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("rough", [True, False])
def test_the_bulk_is_found_without_noise(name: str, rough: bool) -> None:
    distribution = LAWS[name]
    found, talker = searched(distribution, None, rough)
    check(distribution, found, rough)
    assert len(talker.heard) <= 30
    assert talker.spent < 0.12
    assert sum(len(heard.points) for heard in found.heard) == sum(len(heard.points) for heard in talker.heard)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("rough", [True, False])
def test_the_bulk_is_found_through_noise(name: str, rough: bool) -> None:
    distribution = LAWS[name]
    for seed in range(8):
        found, talker = searched(distribution, dice(seed).generator(), rough)
        check(distribution, found, rough)
        assert len(talker.heard) <= 60
        assert talker.spent < 0.2


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_public_knowledge_works_in_any_unit(factor: float) -> None:
    distribution = population("normal").moved(30.0 * factor, factor)
    for public in ({"bounds": (26 * factor, 38 * factor)}, {"scale": factor}):
        found, talker = searched(distribution, None, True, **public)
        check(distribution, found, True)
        assert len(talker.heard) <= 30
        assert talker.spent < 0.12


def test_public_bounds_shorten_the_search_for_data_far_away() -> None:
    distribution = population("student", 3.0).moved(1e6, 1.0)
    _, alone = searched(distribution, None, False)
    _, helped = searched(distribution, None, False, bounds=(1e6 - 40, 1e6 + 40))
    assert helped.spent < alone.spent
    assert len(helped.heard) < len(alone.heard)


def test_bounds_are_never_left_by_the_location() -> None:
    _, talker = searched(population("normal").moved(30.0), None, True, bounds=(20.0, 60.0))
    assert all(20.0 < point < 60.0 for point in talker.heard[0].points)


@pytest.mark.parametrize("rough", [True, False])
def test_powers_of_two_only_move_the_points_within_bounds(rough: bool) -> None:
    distribution = population("normal").moved(3.0, 0.05)
    plain, one = searched(distribution, None, rough, bounds=(-8.0, 24.0))
    moved, two = searched(distribution.moved(0.0, 2.0**20), None, rough, bounds=(-8.0 * 2**20, 24.0 * 2**20))
    assert [heard.points.tolist() for heard in two.heard] == [
        pytest.approx((heard.points * 2**20).tolist(), rel=1e-12) for heard in one.heard
    ]
    assert moved.centre == pytest.approx(plain.centre * 2**20)
    assert moved.scale == pytest.approx(plain.scale * 2**20)


@pytest.mark.parametrize(("tiny", "far"), [(TINY, HUGE), (1.0, HUGE), (1e9, 1e9 * HUGE), (1e200, 1e200 * HUGE)])
def test_the_range_grows_with_a_large_public_scale(tiny: float, far: float) -> None:
    coordinate = Coordinate(None, tiny, far)
    assert coordinate.ends == (-far, far)
    places = np.array([coordinate.of(value) for value in (-far, 0.0, far)])
    assert coordinate.back(places) == pytest.approx([-far, 0.0, far], rel=1e-12)


def test_data_farther_than_the_range_is_found_with_a_public_scale() -> None:
    distribution = population("normal").moved(3e15, 1e9)
    found, talker = searched(distribution, None, True, scale=1e9)
    check(distribution, found, True)
    assert talker.spent < 0.12


def test_more_care_asks_more_records() -> None:
    assert searched(LAWS["heavy"], None, True, care=0.6)[1].spent > searched(LAWS["heavy"], None, True)[1].spent


def test_more_cuts_at_once_where_records_are_plenty() -> None:
    arities = [arity_for(fraction) for fraction in (1e-8, 1e-5, 1e-4, 3e-4, 1e-3, 1e-1)]
    assert arities == sorted(arities, reverse=True)
    assert arities[0] == 15
    assert arities[-1] == 1

"""The pilot brackets the quantile whatever the guide believed, and says so when it cannot."""

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest

from sottovoce.core.arrays import Floats, Ints
from sottovoce.server.quantile.asking import Ask, Decoded, QueryAllocator, SiteProfile
from sottovoce.server.quantile.pilot import brackets, find_pilot, read_quantiles
from sottovoce.server.quantile.working_model import WorkingModel
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.populations import population

CROWD = SiteProfile(np.full(4, 0.25), np.full(4, 0.5), np.full(4, 100_000))


def drive(talk: Generator[Ask, Ints, Any], letters: Callable[[Floats], Floats], seed: int | None = None) -> Any:
    source = None if seed is None else dice(seed).generator()
    try:
        ask = next(talk)
        while True:
            chance = 0.25 + 0.5 * np.clip(letters(ask.points), 0.0, 1.0)
            expected = ask.counts * chance
            ones = np.round(expected) if source is None else source.binomial(ask.counts, chance)
            ask = talk.send(np.asarray(ones, dtype=np.int64))
    except StopIteration as stop:
        return stop.value


def three(below: list[float], variance: float = 1e-6) -> Decoded:
    counts = np.ones((1, 3), dtype=np.int64)
    return Decoded(np.array([-1.0, 0.0, 1.0]), np.array(below), np.full(3, variance), counts, counts)


@pytest.mark.parametrize(
    ("below", "tau", "usable"),
    [
        ([0.2, 0.5, 0.8], 0.5, True),
        ([0.04, 0.1, 0.16], 0.1, True),
        ([0.55, 0.6, 0.9], 0.5, False),  # all above
        ([0.1, 0.2, 0.45], 0.5, False),  # all below
        ([0.49, 0.5, 0.51], 0.5, False),  # no mass between them
        ([0.0, 0.5, 1.0], 0.5, False),  # all the mass between them
        ([0.2, 0.21, 0.79], 0.5, False),  # the middle far from the level
        ([0.8, 0.5, 0.2], 0.5, False),  # falling
    ],
)
def test_three_points_bracket_or_not(below: list[float], tau: float, usable: bool) -> None:
    assert brackets(three(below), tau) is usable
    mirrored = [1 - value for value in reversed(below)]
    assert brackets(three(mirrored), 1 - tau) is usable


def test_noise_alone_is_not_taken_for_mass() -> None:
    assert brackets(three([0.3, 0.5, 0.7]), 0.5)
    assert not brackets(three([0.3, 0.5, 0.7], variance=0.09), 0.5)


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("name", ["exponential", "normal", "uniform"])
@pytest.mark.parametrize("mistake", [0.3, 1.0, 4.0])
def test_a_pilot_is_found_though_the_scale_was_mistaken(name: str, tau: float, mistake: float) -> None:
    distribution = population(name)
    centre = float(distribution.quantile(0.5))
    guide = WorkingModel(centre, mistake * (float(distribution.quantile(0.75)) - centre), tau)
    talker = QueryAllocator(CROWD)
    pilot = drive(find_pilot(talker, tau, guide), lambda x: 1 - distribution.cdf(x), seed=5)
    assert pilot is talker.heard[-1]
    assert len(pilot.points) == 3
    assert float(distribution.cdf(pilot.points[0])) < tau < float(distribution.cdf(pilot.points[2]))
    assert talker.spent < 0.35
    assert talker.reports == sum(int(heard.counts.sum()) for heard in talker.heard)


def test_answers_that_make_no_sense_end_in_none_with_records_left() -> None:
    talker = QueryAllocator(CROWD)
    pilot = drive(find_pilot(talker, 0.5, WorkingModel(0.0, 1.0, 0.5)), lambda x: np.full(len(x), 0.9))
    assert pilot is None
    assert talker.left > 0.2


def heard_of(points: list[float], below: list[float], variances: list[float] | None = None) -> Decoded:
    counts = np.ones((1, len(points)), dtype=np.int64)
    spread = np.array(variances) if variances else np.full(len(points), 0.01)
    return Decoded(np.array(points), np.array(below), spread, counts, counts)


def test_clean_answers_are_interpolated_in_any_order() -> None:
    answers = [heard_of([4.0, 0.0], [0.8, 0.2]), heard_of([2.0], [0.5])]
    assert read_quantiles(answers, np.array([0.2, 0.35, 0.5, 0.65, 0.8])) == pytest.approx([0.0, 1.0, 2.0, 3.0, 4.0])


def test_levels_beyond_the_answers_stay_at_the_outermost_points() -> None:
    assert read_quantiles([heard_of([1.0, 3.0], [0.4, 0.6])], np.array([0.1, 0.9])).tolist() == [1.0, 3.0]


def test_a_violation_is_pooled_by_its_weights() -> None:
    heard = heard_of([0.0, 1.0, 2.0, 10.0], [0.1, 0.6, 0.4, 0.9], [0.01, 0.01, 0.03, 0.01])
    # the block of 1 and 2 has weights 3 and 1: level .55 at 1.25
    assert read_quantiles([heard], np.array([0.55, 0.1, 0.9])) == pytest.approx([1.25, 0.0, 10.0])


def test_answers_in_reverse_order_pool_to_one_step() -> None:
    levels: Floats = np.array([0.1, 0.5, 0.9])
    assert read_quantiles([heard_of([1.0, 2.0, 3.0], [0.9, 0.5, 0.1])], levels) == pytest.approx([2.0, 2.0, 2.0])


def test_noisy_answers_give_ascending_quantiles_near_the_truth() -> None:
    source = dice(3).generator()
    points = source.uniform(0.0, 1.0, 400)
    below = points + 0.2 * source.standard_normal(400)
    levels = np.linspace(0.2, 0.8, 13)
    found = read_quantiles([heard_of(points.tolist(), below.tolist())], levels)
    assert np.all(np.diff(found) >= 0)
    assert np.max(np.abs(found - levels)) < 0.25


def test_points_that_coincide_bracket_nothing() -> None:
    counts = np.full((1, 3), 100, dtype=np.int64)
    below, variances = np.array([0.2, 0.5, 0.8]), np.full(3, 1e-4)
    assert brackets(Decoded(np.array([0.0, 5e-324, 1e-323]), below, variances, counts, counts), 0.5)
    assert not brackets(Decoded(np.array([0.0, 5e-324, 5e-324]), below, variances, counts, counts), 0.5)


def test_points_that_nobody_answered_say_nothing() -> None:
    heard, silent = three([0.3, 0.5, 0.7]), three([1.0, 1.0, 1.0], variance=0.0)
    levels = np.array([0.4, 0.5, 0.6])
    assert read_quantiles([heard, silent], levels) == pytest.approx(read_quantiles([heard], levels))
    told, alone = WorkingModel(0.0, 1.0, 0.5), WorkingModel(0.0, 1.0, 0.5)
    for model, answers in ((told, [heard, silent]), (alone, [heard])):
        for each in answers:
            model.hear(each)
    assert told.quantiles(levels) == pytest.approx(alone.quantiles(levels))

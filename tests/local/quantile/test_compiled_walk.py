"""The fused kernel equals the message path bit for bit, whatever the schedule, sizes, dither and participation."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from sottovoce.client.door import Door
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.core.errors import BadInput
from sottovoce.local.quantile import compiled_walk as fused
from sottovoce.local.quantile.compiled_walk import Coin
from sottovoce.local.quantile.source import Source
from sottovoce.local.runner import run_to_end
from sottovoce.protocol.messages import Study
from sottovoce.protocol.randomised_response import binary, epsilon_of_rate
from sottovoce.server.quantile.recursion import regression_root
from sottovoce.server.quantile.recursion import walk as sgd
from sottovoce.server.quantile.recursion.method import WalkMethod, metropolis, ring
from sottovoce.server.quantile.recursion.schedule import StepSize, constant, decay, elapsed
from sottovoce.server.quantile.recursion.walk import Trajectory, WalkStudy, Watch, horizon
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.populations import population

RATES = (0.25, 0.6, 0.9)
EQUAL, UNEQUAL = (150, 150, 150), (210, 130, 17)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make pieces shorter than a site and than a long round; uncompiled, the order's arithmetic wraps round aloud."""
    monkeypatch.setattr(fused, "PIECE", 64)
    monkeypatch.setattr(fused, "BLOCK", 50)
    with np.errstate(over="ignore"):
        yield


def study_of(sizes: tuple[int, ...], schedule: str | list[int], participation: float = 1.0) -> WalkStudy:
    return WalkStudy(
        np.array([0.3, 0.5, 0.4]),
        np.array([0.5, 0.2, 0.3]),
        tuple(binary(epsilon_of_rate(rate)) for rate in RATES),
        np.array(sizes),
        elapsed(schedule, horizon(max(sizes), 3, participation)),
        0.4,
        decay(RATES),
        participation=participation,
    )


def values_of(study: WalkStudy, location: float = 0.0) -> list[np.ndarray[tuple[int], np.dtype[np.float64]]]:
    distribution = population("normal")
    return [
        distribution.sample(die.generator(), int(n)) + location
        for die, n in zip(dice(11).split(len(study.sizes)), study.sizes, strict=True)
    ]


def run_fused(study: WalkStudy, resolution: float = 0.0, watch: Watch | None = None) -> sgd.WalkState:
    sources = [
        Source(values, channel, die, resolution)
        for values, channel, die in zip(values_of(study), study.channels, dice(5).split(3), strict=True)
    ]
    return fused.run(study, sources, Coin(study, dice(6)), watch)


def run_messages(study: WalkStudy, resolution: float = 0.0, watch: Watch | None = None) -> sgd.WalkState:
    sites = [
        Site(Records(values), Study(float(tau), channel.epsilon, resolution), die, channel)
        for values, tau, channel, die in zip(
            values_of(study), study.taus, study.channels, dice(5).split(3), strict=True
        )
    ]
    method = WalkMethod(study, Coin(study, dice(6)).by_round(len(study.elapsed)))
    end = run_to_end(method, [Door(site, b"study") for site in sites])
    for state in end.seen.states if watch is not None else ():
        watch(state)  # type: ignore[misc]
    return method.outcome(end)


def assert_same(one: sgd.WalkState, other: sgd.WalkState) -> None:
    for name, mine, theirs in zip(one._fields, one, other, strict=True):
        assert np.asarray(mine).tobytes() == np.asarray(theirs).tobytes(), name


@pytest.mark.parametrize("sizes", [EQUAL, UNEQUAL])
@pytest.mark.parametrize("schedule", ["every:1", "every:5", "log", [1, 100, 3]])
@pytest.mark.parametrize("resolution", [0.0, 0.25])
def test_equals_the_message_path(sizes: tuple[int, ...], schedule: str | list[int], resolution: float) -> None:
    study = study_of(sizes, schedule)
    assert_same(run_fused(study, resolution), run_messages(study, resolution))


@pytest.mark.parametrize("schedule", ["every:1", "every:4"])
@pytest.mark.parametrize("participation", [0.3, 0.6])
def test_equals_the_message_path_with_some_sites_absent(schedule: str, participation: float) -> None:
    study = study_of(UNEQUAL, schedule, participation)
    state = run_fused(study)
    assert_same(state, run_messages(study))
    assert state.clock.sum() == study.chosen * study.elapsed.sum()


def test_equals_the_message_path_when_sites_run_out() -> None:
    study = replace(study_of(EQUAL, "every:1", 0.6), elapsed=elapsed("every:1", 300))
    state = run_fused(study)
    assert sgd.reports(study, state) < state.clock.sum()
    assert_same(state, run_messages(study))


@pytest.mark.parametrize("pace", [decay(RATES, unit=3.0), constant(210, 0.3)])
def test_equals_the_message_path_over_a_graph(pace: StepSize) -> None:
    study = study_of(UNEQUAL, "every:3")
    study = replace(study, mixing=metropolis(ring(3), study.shares), pace=pace)
    state = run_fused(study)
    assert len(set(state.points.tolist())) == 3
    assert_same(state, run_messages(study))


def test_keeps_the_same_trajectory() -> None:
    study = study_of(UNEQUAL, "every:2")
    kept = [Trajectory(study, estimate) for estimate in (sgd.estimate, regression_root.estimate)]
    run_fused(study, watch=kept[0])
    run_messages(study, watch=kept[1])
    assert [row[:2] for row in kept[0].rows] == [row[:2] for row in kept[1].rows]
    again = Trajectory(study, sgd.estimate)
    run_messages(study, watch=again)
    assert kept[0].rows == again.rows
    assert kept[0].rows[-1].reports == sum(UNEQUAL)


def test_scaling_the_data_scales_every_bit() -> None:
    study = study_of(UNEQUAL, "every:3")
    scale = 2.0**27
    larger = replace(study, start=study.start * scale, pace=decay(RATES, unit=scale))
    ends = []
    for one, factor in ((study, 1.0), (larger, scale)):
        sources = [
            Source(values * factor, channel, die)
            for values, channel, die in zip(values_of(one), one.channels, dice(5).split(3), strict=True)
        ]
        ends.append(regression_root.line(one, fused.run(one, sources)))
    assert ends[1].centre == ends[0].centre * scale
    assert ends[1].slope == ends[0].slope / scale


def test_a_location_of_a_hundred_million_costs_no_digits() -> None:
    study = study_of(EQUAL, "every:1")
    found = []
    for location in (0.0, 1e8):
        one = replace(study, start=location + 0.5)
        sources = [
            Source(values, channel, die)
            for values, channel, die in zip(values_of(one, location), one.channels, dice(5).split(3), strict=True)
        ]
        found.append((location, sgd.estimate(one, fused.run(one, sources))))
    (_, near), (location, far) = found
    assert far.point - location == pytest.approx(near.point, abs=1e-5)
    assert far.length == pytest.approx(near.length, rel=1e-4)


def test_goes_on_after_records_that_were_spent_before() -> None:
    study = study_of(EQUAL, "every:1")
    with pytest.raises(BadInput, match="plan the study on what is left"):
        fused.run(study, [Source(values, study.channels[0], dice(1), taken=3) for values in values_of(study)])


def study(participation: float) -> WalkStudy:
    return WalkStudy(
        np.full(5, 0.5),
        np.full(5, 0.2),
        (binary(1.0),) * 5,
        np.full(5, 10),
        elapsed("every:1", 10),
        0.0,
        decay([0.5]),
        participation=participation,
    )


@pytest.mark.parametrize(("participation", "chosen"), [(0.2, 1), (0.4, 2), (0.41, 3), (0.99, 5)])
def test_as_many_as_asked_for(participation: float, chosen: int) -> None:
    masks = Coin(study(participation), dice(1)).masks(100)
    assert (len(masks) == 0) == (chosen == 5)
    assert np.all(masks.sum(axis=1) == chosen)


def test_everybody_needs_no_coin() -> None:
    assert Coin(study(1.0)).masks(7).shape == (0, 5)


def test_portions_do_not_matter() -> None:
    one, other = Coin(study(0.4), dice(3)), Coin(study(0.4), dice(3))
    assert np.array_equal(one.masks(6), np.concatenate([other.masks(1), other.masks(5)]))


def test_every_pair_comes_up_alike() -> None:
    """Chi-square on 9 degrees of freedom: 48.8 is passed by chance less often than one time in 5 million."""
    masks = Coin(study(0.4), dice(4)).masks(5000)
    counts = [int(np.sum(masks[:, i] & masks[:, j])) for i, j in itertools.combinations(range(5), 2)]
    assert sum((count - 500) ** 2 / 500 for count in counts) < 48.8

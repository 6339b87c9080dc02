"""The walk over sites: pure, replayable, blind to the order of the sites, and fair to small ones."""

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.protocol.randomised_response import binary, epsilon_of_rate
from sottovoce.server.quantile.recursion import regression_root
from sottovoce.server.quantile.recursion import walk as sgd
from sottovoce.server.quantile.recursion.method import metropolis, ring
from sottovoce.server.quantile.recursion.schedule import constant, decay, elapsed
from sottovoce.server.quantile.recursion.walk import Estimate, Letters, Trajectory, WalkState, WalkStudy, checkpoints
from sottovoce.sim.randomness import dice

RATES = (0.25, 0.5, 0.9)
STUDY = WalkStudy(
    np.full(3, 0.3),
    np.array([0.2, 0.3, 0.5]),
    tuple(binary(epsilon_of_rate(rate)) for rate in RATES),
    np.array([120, 60, 33]),
    elapsed("every:4", 120),
    0.2,
    decay(RATES),
)


def letters_for(study: WalkStudy, state: WalkState, seed: int) -> list[Letters]:
    return [
        (die.words(query.counts[0]) >> np.uint64(63)).astype(np.uint8)
        for die, query in zip(dice(seed).split(len(study.channels)), sgd.query(study, state), strict=True)
    ]


def run(study: WalkStudy, rounds: int | None = None) -> tuple[list[WalkState], list[list[Letters]]]:
    states, log = [sgd.init(study)], []
    for m in range(len(study.elapsed) if rounds is None else rounds):
        log.append(letters_for(study, states[-1], m))
        states.append(sgd.step(study, states[-1], log[-1]))
    return states, log


def same(one: WalkState, other: WalkState) -> bool:
    return all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(one, other, strict=True))


def test_one_round_is_algorithm_one() -> None:
    study = replace(STUDY, elapsed=elapsed([2], 120), sizes=np.array([120] * 3), burn=0.0)
    state = sgd.init(study)
    letters = [np.array(pair, dtype=np.uint8) for pair in ((1, 0), (1, 1), (0, 0))]
    after = sgd.step(study, state, letters)
    tau, eta, ends = 0.3, 20 * float(np.mean(RATES)) / (1 + 100) / 2, []
    for r, sent in zip(RATES, letters, strict=True):
        point = 0.2
        for s in sent:
            point += eta * ((1 - r + 2 * tau * r) / (2 * r) if s else -(1 + r - 2 * tau * r) / (2 * r))
        ends.append(point)
    assert np.allclose(after.points, np.dot(STUDY.shares, ends), rtol=1e-13)
    assert after.iteration == 2
    assert sgd.estimate(study, after).point == pytest.approx(after.points[0])


def test_inputs_are_left_alone_and_any_prefix_can_be_replayed() -> None:
    states, log = run(STUDY)
    again, _ = run(STUDY)
    assert all(same(a, b) for a, b in zip(states, again, strict=True))
    for start in (0, 7, len(log) - 1):
        state = states[start]
        for letters in log[start:]:
            state = sgd.step(STUDY, state, letters)
        assert same(state, states[-1])


@pytest.mark.parametrize("mixed", [False, True])
def test_merging_does_not_depend_on_the_order_of_sites(mixed: bool) -> None:
    shares = np.array([0.1, 0.2, 0.3, 0.4])
    points, ends = np.full(4, 1e8), 1e8 + np.array([0.3, -2.0, 0.7, 5.0])
    order = np.array([2, 0, 3, 1])
    mixing = metropolis(ring(4), shares) if mixed else np.empty((0, 0))
    turned = mixing[np.ix_(order, order)] if mixed else mixing
    one, other = np.empty(4), np.empty(4)
    average = sgd.merge(points, ends, shares, 1.0, mixing, one)
    assert sgd.merge(points, ends[order], shares[order], 1.0, turned, other) == pytest.approx(average, abs=3e-8)
    assert np.allclose(one[order], other, rtol=0, atol=3e-8)
    assert average - 1e8 == pytest.approx(shares @ (ends - 1e8), abs=3e-8)


def test_a_site_that_says_nothing_does_not_pull_towards_zero() -> None:
    points, merged = np.full(10, 1e8 + 1 / 3), np.empty(10)
    assert sgd.merge(points, points.copy(), np.full(10, 0.1), 1.0, np.empty((0, 0)), merged) == points[0]


def test_every_site_answers_the_same_fraction_all_the_time() -> None:
    states, log = run(STUDY)
    spent: npt.NDArray[np.float64] = np.cumsum([[len(sent) for sent in letters] for letters in log], axis=0)
    assert spent[-1].tolist() == [120, 60, 33]
    ideal = np.cumsum(STUDY.elapsed)[:, None] / 120 * STUDY.sizes
    assert np.abs(spent - ideal).max() < 1
    assert sgd.reports(STUDY, states[-1]) == 213
    steps = [query.step for query in sgd.query(STUDY, states[0])]
    assert np.allclose(np.array(steps) / steps[0], 120 / STUDY.sizes)


def test_who_is_absent_is_not_asked_and_the_rest_is_unbiased() -> None:
    study = replace(STUDY, participation=0.6, sizes=np.array([120] * 3))
    state, here = sgd.init(study), np.array([True, False, True])
    queries = sgd.query(study, state, here)
    assert [query.counts for query in queries] == [(1,), (0,), (1,)]
    one, none = np.ones(1, dtype=np.uint8), np.empty(0, dtype=np.uint8)
    after = sgd.step(study, state, [one, none, one], here)
    moved = [queries[k].step * study.plan.moves[k, 1] for k in (0, 2)]
    assert after.points[0] - 0.2 == pytest.approx(1.5 * (0.2 * moved[0] + 0.5 * moved[1]))
    assert after.clock.tolist() == [1, 0, 1]


def test_sums_restart_after_the_burn_in_and_are_centred_there() -> None:
    study = replace(STUDY, burn=0.2)
    states, log = run(study)
    assert study.burnt == 7
    assert states[7].sums.sum() == 0
    assert states[7].origin == states[7].points[0]
    counts = np.sum([[len(sent) for sent in letters] for letters in log[7:]], axis=0)
    assert states[-1].sums[:, 0].tolist() == counts.tolist()


def test_numbers_of_rounds_go_on_where_others_stopped() -> None:
    assert sgd.query(replace(STUDY, first=40), sgd.init(STUDY))[0].round == 41


@pytest.mark.parametrize("sent", [np.empty(0, dtype=np.uint8), np.array([2], dtype=np.uint8), b"\x01\x00"])
def test_letters_of_another_round_are_refused(sent: Letters | bytes) -> None:
    letters = letters_for(STUDY, sgd.init(STUDY), 0)
    with pytest.raises(BadInput, match="round 1, site 0"):
        sgd.step(STUDY, sgd.init(STUDY), [sent, *letters[1:]])


def test_constant_pace_learns_the_density() -> None:
    rows = np.zeros((1, 5))
    path = np.tile([-1.0, 1.0], 500)
    sgd.observe(rows[0], path, np.tile(np.array([1, 0, 1, 1], dtype=np.uint8), 250), 0.0)
    # the share of ones is 1 at -1 and 1/2 at +1: a slope of 1/4, seen through a channel of rate 1/2
    assert sgd.learnt(rows, np.ones(1), np.array([0.5]), 0.4) == pytest.approx(0.5)
    assert sgd.learnt(rows, np.ones(1), np.array([0.5]), 0.1) == pytest.approx(0.2)
    assert sgd.learnt(np.zeros((1, 5)), np.ones(1), np.array([0.5]), 0.1) == 0.1
    states, _ = run(replace(STUDY, pace=constant(120, 1.0)))
    assert states[-1].slope > 0


def test_estimate_uses_the_clock_of_its_schedule() -> None:
    states, _ = run(STUDY)
    own, printed = sgd.estimate(STUDY, states[-1]), sgd.estimate(STUDY, states[-1], own=False)
    assert own.point == printed.point
    assert own.length < printed.length


@pytest.mark.parametrize(("value", "inside"), [(0.0, True), (2.0, True), (-0.001, False), (2.001, False)])
def test_covers_its_ends_and_nothing_beyond(value: float, inside: bool) -> None:
    assert Estimate(1.0, 0.0, 2.0, 0.95, 10).covers(value) is inside


def test_length() -> None:
    assert Estimate(1.0, 0.5, 2.0, 0.95, 10).length == 1.5


@pytest.mark.parametrize("rounds", [1, 7, 200, 10_000, 10**9])
def test_at_most_two_hundred_rows_and_the_last_round(rounds: int) -> None:
    looks = checkpoints(rounds)
    assert looks[0] >= 1
    assert looks[-1] == rounds
    assert len(looks) <= 200
    assert np.all(np.diff(looks) > 0)


def test_what_cannot_be_estimated_yet_is_left_open() -> None:
    study = WalkStudy(
        np.full(1, 0.5), np.ones(1), (binary(1.0),), np.full(1, 10), elapsed("every:1", 10), 0.0, decay([0.5])
    )
    trajectory = Trajectory(study, regression_root.estimate)
    trajectory(sgd.init(study))
    (row,) = trajectory.rows
    assert (row.round, row.reports, row.low, row.high) == (0, 0, -math.inf, math.inf)
    assert math.isnan(row.average)

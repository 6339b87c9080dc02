"""The state of a dithered run: looks at fixed people, designs within bounds, and knowing that changes nothing."""

import math
from itertools import pairwise

import numpy as np
import pytest

from sottovoce.protocol.regression.blocks import RegressionChannel, open_channel
from sottovoce.protocol.regression.box import box, cq
from sottovoce.protocol.regression.dithered.asking import DITHERED, MOMENTS, MOST
from sottovoce.protocol.regression.dithered.density import reach
from sottovoce.protocol.regression.dithered.knowledge import learn_all
from sottovoce.protocol.regression.dithered.segments import INTERCEPT_WAYS
from sottovoce.protocol.regression.dithered.state import (
    FIRST,
    RATIO,
    DitheredState,
    design_after,
    init,
    know,
    look,
    under_way,
)
from sottovoce.protocol.regression.dithered.step import AT_POINT
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.protocol.regression.questions import LEAST, STEP
from sottovoce.protocol.regression.questions import MOST as MOST_OF

GUESS = np.array([[1.0, 0.2, 0.0], [0.2, 0.4, 0.1], [0.0, 0.1, 0.3]])


def study(channel: RegressionChannel | None = None, known: bool = False, unit: float = 1.0) -> DitheredStudy:
    channel = cq(0.9, 2, 2.0, 3, 2) if channel is None else channel
    levels = len(channel.taus)
    start = np.array([[7.0 + level, 1.0, -1.0] for level in range(levels)]) * unit
    noise = np.array([np.diag([1.0, 3.0, 3.0])] * levels)
    return DitheredStudy(channel, noise, np.full(levels, 0.4 / unit), 2.0 * unit, start, GUESS, known)


def flat(value: object) -> list[object]:
    """Every number of a state, in order."""
    if isinstance(value, tuple):
        return [one for part in value for one in flat(part)]
    return list(np.asarray(value, dtype=float).ravel())


def asked(state: DitheredState, n: int) -> DitheredState:
    """A state after ``n`` more people whose sums are plausible."""
    counts, ways = state.sums.counts.copy(), state.sums.ways.copy()
    counts[AT_POINT] += 0.9 * n
    ways[0, :, 0] += 0.05 * n
    ways[1, :, 0] += 0.025 * n
    return state._replace(people=state.people + n, sums=state.sums._replace(counts=counts, ways=ways))


def test_the_beginning_is_always_the_same() -> None:
    one, other = init(study()), init(study())
    assert flat(one) == flat(other)
    assert (one.people, one.begun, one.until, one.behind) == (0, 0, FIRST, ())
    assert np.array_equal(one.point, study().start)
    assert not any(part.any() for part in one.sums)


def test_the_start_of_a_study_is_not_moved_by_its_run() -> None:
    one = study()
    point = init(one).point
    point += 1
    assert np.array_equal(one.start, study().start)


def test_looks_come_at_fixed_numbers_of_people() -> None:
    state, looks = init(study()), []
    for _ in range(8):
        state = asked(state, state.until - state.people)
        looks.append(state.people)
        state = look(study(), state)
    expected = [FIRST]
    for _ in range(7):
        expected.append(int(expected[-1] * RATIO) + 1)
    assert looks == expected
    assert [one.first for one in state.behind] == [0, *looks[:-1]]
    assert [one.last for one in state.behind] == looks


def test_a_look_closes_the_segment_and_keeps_the_point() -> None:
    state = asked(init(study()), FIRST)
    point = state.point
    point += 0.25
    after = look(study(), state)
    assert after.begun == after.people == FIRST
    assert np.array_equal(after.point, state.point)
    assert after.behind[-1].sums is state.sums
    assert np.array_equal(after.behind[-1].ways, state.design.ways)
    assert not any(part.any() for part in after.sums)
    assert state.behind == ()


def test_knowing_changes_nothing() -> None:
    state = look(study(), asked(init(study()), FIRST))
    state = asked(state, 10)
    before = flat(state)
    first, second = know(study(), state), know(study(), state)
    assert flat(state) == before
    assert np.array_equal(first.slopes[0].matrix, second.slopes[0].matrix)
    assert first.whole.people == pytest.approx(0.9 * (FIRST + 10))
    assert under_way(state).first == FIRST
    assert under_way(state).last == FIRST + 10


CHANNELS = {
    "cq": lambda: cq(0.9, 2, 2.0, 3, 2),
    "three levels": lambda: box((0.05, 0.5, 0.9), 2, 4.0, slopes=2, cells=4, width=2),
    "open": lambda: open_channel(0.5, 2),
}


@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.parametrize("known", [False, True])
def test_designs_stay_within_bounds(name: str, known: bool) -> None:
    one = study(CHANNELS[name](), known)
    state = init(one)
    for number in range(16):
        design, known_now = state.design, know(one, state)
        bits = len(design.upto) - len(design.ways)
        of_moments, beside = design.upto[bits - 1], design.upto[-1] - design.upto[bits - 1]
        if known or one.exact:
            assert of_moments == 0
        else:
            assert MOMENTS[0] * (number > 14) <= of_moments + 1e-12
        # the first people are needed to come near, all later ones to learn the slope as well
        assert DITHERED * one.levels * (number > 14) <= beside + 1e-12
        assert design.upto[-1] <= 1.5 * MOST + MOMENTS[1] + DITHERED * one.levels + 1e-12
        assert (np.diff(design.upto) >= 0).all()
        assert (state.gain.needs > 0).all()
        assert (design.ranges[:, 1] > design.ranges[:, 0]).all()
        for level in range(one.levels):
            # the side alone, near and farther; then a pair for each coefficient, farther
            each = len(design.ways) // one.levels
            ways, steps = (part[level * each : (level + 1) * each] for part in (design.ways, design.steps))
            assert each == INTERCEPT_WAYS + one.d
            assert (ways[:2, :, 0] == 1).all()
            assert not ways[:2, :, 1:].any()
            assert steps[:2, LEAST].tolist() == [-1, -1]
            assert np.array_equal(ways[2:], design.pairs[level * one.d : (level + 1) * one.d])
            assert (steps[:, MOST_OF] > steps[:, LEAST]).all()
            shifts = known_now.slopes[level].density.value * steps[:, STEP]
            assert shifts.max() <= reach(float(one.tails[level])) * (1 + 1e-9)
            assert 0 < shifts[0] <= shifts[1] == shifts[2:].max() == shifts[2:].min()
        state = look(one, asked(state, state.until - state.people))


def test_the_first_step_is_small_and_later_ones_smaller() -> None:
    one, steps = study(), []
    for people in (0, 100, 1000, 100_000):
        _, onwards = design_after(one, people, learn_all(one, ()))
        left, right, needs = onwards.gains[0, 0], onwards.gains[1, 0], onwards.needs[0]
        steps.append(float(np.linalg.norm(left @ np.diag(1 / (needs[:3] + people * needs[3])) @ right)))
    assert steps[0] < one.size
    assert all(later < earlier for earlier, later in pairwise(steps))
    assert steps[-1] < steps[0] / 100


@pytest.mark.parametrize("unit", [1e-8, 1e8])
def test_designs_move_along_with_the_unit(unit: float) -> None:
    before, after = init(study()), init(study(unit=unit))
    (plain, one), (moved, other) = (before.design, before.gain), (after.design, after.gain)
    assert other.needs == pytest.approx(one.needs, rel=1e-9)
    assert moved.upto == pytest.approx(plain.upto, rel=1e-9)
    assert moved.ways == pytest.approx(plain.ways, rel=1e-9)
    assert moved.steps[:, STEP] / unit == pytest.approx(plain.steps[:, STEP], rel=1e-9)
    assert moved.steps[:, LEAST:] == pytest.approx(plain.steps[:, LEAST:], rel=1e-9)
    assert moved.ranges == pytest.approx(plain.ranges, rel=1e-9)
    steps = [o.gains[0, 0] @ np.diag(1 / o.needs[0, :3]) @ o.gains[1, 0] for o in (one, other)]
    assert steps[1] / unit == pytest.approx(steps[0], rel=1e-9)


def test_the_limit_is_handed_on() -> None:
    one = study()
    assert math.isinf(init(one).gain.limit)
    held = DitheredStudy(one.channel, one.omega, one.density, one.size, one.start, one.moments, limit=3.0)
    assert init(held).gain.limit == 3.0

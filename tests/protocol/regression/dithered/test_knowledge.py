"""What segments tell together: sums, noise, and how much of the slope is still in doubt."""

import math

import numpy as np
import numpy.typing as npt
import pytest

from sottovoce.protocol.regression.blocks import RegressionChannel, open_channel
from sottovoce.protocol.regression.box import box, cq
from sottovoce.protocol.regression.dithered.knowledge import (
    DROPS,
    PRIOR_PEOPLE,
    TOO_FAR,
    coefficients_size,
    learn_all,
)
from sottovoce.protocol.regression.dithered.segments import LookSegment
from sottovoce.protocol.regression.dithered.state import init
from sottovoce.protocol.regression.dithered.step import AT_POINT, POINT, PRODUCTS, Sums, no_sums
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.protocol.regression.dithered.turned import lines_of
from sottovoce.protocol.regression.dithered.vech import packed, unpacked
from sottovoce.protocol.regression.questions import STEP
from sottovoce.sim.randomness import dice

Floats = npt.NDArray[np.float64]
MOMENTS = np.array([[1.0, 0.2, 0.0], [0.2, 0.4, 0.1], [0.0, 0.1, 0.3]])


def study(channel: RegressionChannel | None = None, known: bool = False) -> DitheredStudy:
    channel = cq(0.75, 2, 2.0, 3, 2) if channel is None else channel
    levels, d = len(channel.taus), channel.p + 1
    omega = np.array([(1 + level) * np.eye(d) for level in range(levels)])
    return DitheredStudy(channel, omega, np.full(levels, 0.4), 1.0, np.zeros((levels, d)), MOMENTS, known)


def segment(
    first: int, last: int, seed: int, one: DitheredStudy | None = None, longer: float = 1.0, wild: float = 1.0
) -> LookSegment:
    """Sums that some people could have left: seven in ten at the point, a tenth beside it, the others about moments."""
    one = study() if one is None else one
    generator, levels, d, n = dice(seed).generator(), one.levels, one.d, last - first
    design = init(one).design
    sums = no_sums(levels, d, len(design.pairs), len(design.ways))
    steps = design.steps * np.array([longer, 1.0, 1.0])
    sums.counts[:] = 0.7 * n, 0.1 * n
    sums.vectors[:] = generator.standard_normal(sums.vectors.shape)
    noise = generator.standard_normal((levels, 400, d))
    sums.squares[PRODUCTS] = np.tril(0.7 * n / 400 * np.transpose(noise, (0, 2, 1)) @ noise)
    sums.ways[0] = 0.05 * n / len(steps)
    lines = one.bit_rate * lines_of(design.ways, steps) @ packed(MOMENTS)
    change, middle = 0.4 * steps[:, STEP] * lines, (np.repeat(one.taus, len(steps) // levels) - 0.5) * lines
    sides = np.stack([middle - change, middle + change]) + wild * generator.normal(0, 0.02, sums.ways[1].shape)
    sums.ways[1] = sums.ways[0] * np.clip(0.5 + sides, 0, 1)
    sums.products[0] = np.triu(np.full((d, d), 0.02 * n), 0)
    sums.products[1] = sums.products[0] * 0.6
    sums.pairs[0] = 0.08 * n / sums.pairs.shape[1]
    sums.pairs[1] = 0.55 * sums.pairs[0]
    return LookSegment(first, last, sums, design.pairs, design.ranges, design.ways, steps)


ALL = math.ceil(1000 / DROPS[0])  # people, of whom the first thousand are left out
SEGMENTS = (segment(0, 64, 1), segment(64, 1000, 2), segment(1000, ALL, 3))


def tight(*segments: LookSegment) -> float:
    return float(sum(one.sums.counts[AT_POINT] for one in segments))


def test_the_segments_are_left_as_they_were() -> None:
    before = [part.copy() for one in SEGMENTS for part in one.sums]
    learn_all(study(), SEGMENTS)
    assert all(np.array_equal(a, b) for a, b in zip(before, (p for s in SEGMENTS for p in s.sums), strict=True))


def test_the_windows_leave_out_the_first_people() -> None:
    found = learn_all(study(), SEGMENTS)
    assert 1000 <= DROPS[0] * ALL < 1001
    assert found.whole.people == pytest.approx(tight(*SEGMENTS))
    assert found.windows[0].people == pytest.approx(tight(SEGMENTS[2]))


def test_of_several_runs_each_leaves_out_its_first_people() -> None:
    other = (segment(0, 100, 4), segment(100, 1_500, 5), segment(1_500, 3_300, 6))
    found = learn_all(study(), SEGMENTS, other, drops=DROPS)
    assert found.windows[0].people == pytest.approx(tight(SEGMENTS[2], *other))  # 3 % of 3,300 are 99
    assert found.windows[-1].people == pytest.approx(tight(SEGMENTS[2], other[2]))
    assert found.whole.people == pytest.approx(tight(*SEGMENTS, *other))


def test_noise_is_measured_and_starts_as_predicted() -> None:
    assert learn_all(study(), ()).omegas == pytest.approx(study().omega)
    lower = SEGMENTS[2].sums.squares[PRODUCTS, 0]
    n = tight(SEGMENTS[2])
    prior = (PRIOR_PEOPLE * 3) ** 2 / (PRIOR_PEOPLE * 3 + n)  # so that it does not fill what is nearly empty
    whole = lower + lower.T - np.diag(np.diag(lower))
    found = learn_all(study(), SEGMENTS).omegas[0]
    assert found == pytest.approx((whole + prior * np.eye(3)) / (n + prior))
    assert np.linalg.eigvalsh(found).min() > 0


def test_moments_are_learnt_unless_they_are_known() -> None:
    learnt = learn_all(study(), SEGMENTS).moments
    assert np.abs(learnt.matrix - MOMENTS).max() > 1e-3
    assert np.diag(learnt.covariance).max() > 0
    told = learn_all(study(known=True), SEGMENTS).moments
    assert np.array_equal(told.matrix, MOMENTS)
    assert not told.covariance.any()


def test_exact_scores_show_the_moments() -> None:
    one = study(open_channel(0.75, 2))
    one = DitheredStudy(one.channel, 0.75 * 0.25 * MOMENTS[None], one.density, 1.0, one.start, MOMENTS)
    assert learn_all(one, ()).moments.matrix == pytest.approx(MOMENTS)
    found = learn_all(one, SEGMENTS)
    assert found.moments.matrix == pytest.approx(found.omegas[0] / (0.75 * 0.25))


def test_people_who_went_too_far_are_not_read() -> None:
    plain = learn_all(study(known=True), SEGMENTS).slopes[0].matrix
    for longer, same in ((1.0, False), (2 * math.sqrt(TOO_FAR), True)):
        wild = segment(0, 900, 9, longer=longer, wild=10.0)
        wild.sums.ways[..., :2] = 0
        found = learn_all(study(known=True), (wild, *SEGMENTS)).slopes[0].matrix
        assert np.allclose(found, plain, rtol=1e-3) == same


def spread(contrast: Floats, slope: Floats, omega: Floats) -> float:
    """The standard error of a contrast."""
    along = np.linalg.solve(slope, contrast)
    return math.sqrt(float(along @ omega @ along))


@pytest.mark.parametrize("contrast", [[1.0, 0, 0], [0, 1.0, 0], [0.3, -1.0, 2.0]])
def test_doubt_is_the_relative_variance_of_the_standard_error(contrast: list[float]) -> None:
    found = learn_all(study(), SEGMENTS)
    slope, omega, a = found.slopes[0], found.omegas[0], np.array(contrast)
    entries, step = packed(slope.matrix), 1e-6
    change = np.zeros(len(entries))  # of the logarithm of the standard error with each entry of the packed slope
    for k in range(len(entries)):
        nudge = np.eye(len(entries))[k] * step
        up, down = (spread(a, unpacked(entries + s * nudge, 3), omega) for s in (1, -1))
        change[k] = (up - down) / (2 * step) / spread(a, slope.matrix, omega)
    assert found.relative_variance(0, a) == pytest.approx(change @ slope.covariance @ change, rel=1e-5)


def test_the_worst_relative_sd_is_that_of_a_coefficient() -> None:
    found = learn_all(study(), SEGMENTS)
    worst = max(found.relative_variance(0, axis) for axis in np.eye(3))
    assert found.worst_relative_sd() == pytest.approx(math.sqrt(worst))
    assert found.steady_sd(0) < found.worst_relative_sd()


def test_levels_are_learnt_apart() -> None:
    one = study(box((0.25, 0.5), 2, 4.0, slopes=2, cells=4, width=2))
    found = learn_all(one, (segment(0, 500, 4, one),))
    assert len(found.slopes) == 2
    assert not np.allclose(found.slopes[0].matrix, found.slopes[1].matrix)
    assert not np.allclose(found.omegas[0], found.omegas[1])


def settled(off: Floats, unit: float = 1.0, n: int = 10**8) -> LookSegment:
    """People so many that noise is nothing, about a point that lies ``off`` the start, with a mean gradient of zero."""
    one = segment(0, n, 1)
    sums = Sums(*(part.copy() for part in one.sums))
    sums.vectors[:] = 0
    sums.vectors[POINT, 0] = sums.counts[AT_POINT] * off
    return one._replace(sums=sums, steps=one.steps * np.array([unit, 1.0, 1.0]))


def test_the_size_of_the_coefficients_starts_below_the_guess_and_is_found() -> None:
    one = study()
    at_first = coefficients_size(one, learn_all(one, ()), 0)
    assert 0.3 * one.size < at_first <= one.size
    far = np.array([3.0, -4.0, 12.0])  # of length 13
    found = coefficients_size(one, learn_all(one, (settled(far),)), 0)
    assert 0.75 * 13 < found < 1.05 * 13
    near = coefficients_size(one, learn_all(one, (settled(far / 1000),)), 0)
    assert 0.01 < near < at_first


@pytest.mark.parametrize("unit", [1e-8, 1e8])
def test_the_size_of_the_coefficients_moves_along_with_the_unit(unit: float) -> None:
    one, far = study(), np.array([3.0, -4.0, 12.0])
    moved = DitheredStudy(one.channel, one.omega, one.density / unit, unit * one.size, one.start, MOMENTS)
    plain, other = settled(far), settled(unit * far, unit)
    sizes = [coefficients_size(a, learn_all(a, (b,)), 0) for a, b in ((one, plain), (moved, other))]
    assert sizes[1] == pytest.approx(unit * sizes[0], rel=1e-9)

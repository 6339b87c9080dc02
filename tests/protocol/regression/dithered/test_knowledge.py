"""What segments tell together: sums, noise, dithers, and how much of the slope is still in doubt."""

import math

import numpy as np
import numpy.typing as npt
import pytest

from sottovoce.protocol.regression.blocks import RegressionChannel, open_channel
from sottovoce.protocol.regression.box import box, cq
from sottovoce.protocol.regression.dithered.knowledge import (
    DROPPED,
    PRIOR_PEOPLE,
    LookSegment,
    coefficients_size,
    learn_all,
    total,
)
from sottovoce.protocol.regression.dithered.step import GRADIENT, POINT, PRODUCT, no_sums
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.protocol.regression.questions import FAR, NEAR, TIGHT
from sottovoce.sim.randomness import dice

Floats = npt.NDArray[np.float64]
MOMENTS = np.array([[1.0, 0.2, 0.0], [0.2, 0.4, 0.1], [0.0, 0.1, 0.3]])


def study(channel: RegressionChannel | None = None, known: bool = False) -> DitheredStudy:
    channel = cq(0.75, 2, 2.0, 3, 2) if channel is None else channel
    levels, d = len(channel.taus), channel.p + 1
    omega = np.array([(1 + level) * np.eye(d) for level in range(levels)])
    return DitheredStudy(channel, omega, np.full(levels, 0.4), 1.0, np.zeros((levels, d)), MOMENTS, known)


def segment(first: int, last: int, seed: int, levels: int = 1, size: float = 0.3) -> LookSegment:
    """Sums that some people could have left; ``last - first`` of them, a tenth near and a tenth far."""
    generator, d = dice(seed).generator(), 3
    sums, n = no_sums(levels, d), last - first
    sums.counts[:] = n * np.array([0.7, 0.1, 0.1, 0.1, 0.1])
    sums.vectors[:] = generator.standard_normal(sums.vectors.shape)
    sums.squares[:2] = 0.05 * n * MOMENTS + generator.standard_normal((2, levels, d, d))
    noise = generator.standard_normal((levels, 400, d))
    sums.squares[PRODUCT] = np.tril(0.7 * n / 400 * np.transpose(noise, (0, 2, 1)) @ noise)
    sums.moments[0] = np.triu(np.full((d, d), 0.02 * n))
    sums.moments[1] = sums.moments[0] * 0.6
    ways = np.array([np.linalg.inv(np.linalg.cholesky(MOMENTS)).T / math.sqrt(d)] * levels)
    return LookSegment(first, last, sums, ways, np.full((2, levels), size) * np.array([[0.5], [1.0]]))


ALL = math.ceil(1000 / DROPPED)  # people, of whom the first thousand are left out
SEGMENTS = (segment(0, 64, 1), segment(64, 1000, 2, size=0.4), segment(1000, ALL, 3))


def test_sums_add_up() -> None:
    whole = total(SEGMENTS, 1, 3)
    assert whole.counts == pytest.approx(sum(s.sums.counts for s in SEGMENTS))
    assert whole.squares == pytest.approx(np.sum([s.sums.squares for s in SEGMENTS], axis=0))
    assert not total((), 2, 3).counts.any()


def test_the_segments_are_left_as_they_were() -> None:
    before = [part.copy() for one in SEGMENTS for part in one.sums]
    learn_all(study(), SEGMENTS)
    assert all(np.array_equal(a, b) for a, b in zip(before, (p for s in SEGMENTS for p in s.sums), strict=True))


def test_the_window_leaves_out_the_first_people() -> None:
    found = learn_all(study(), SEGMENTS)
    assert 1000 <= DROPPED * ALL < 1001
    assert found.whole.counts.sum() > found.window.counts.sum() == SEGMENTS[2].sums.counts.sum()


def test_of_several_runs_each_leaves_out_its_first_people() -> None:
    other = (segment(0, 100, 4), segment(100, 3_000, 5), segment(3_000, 3_300, 6))
    found = learn_all(study(), SEGMENTS, other)
    kept = (SEGMENTS[2], other[0], other[1], other[2])  # 3 % of 3,300 are 99
    assert found.window.counts == pytest.approx(sum(s.sums.counts for s in kept))
    assert found.whole.counts == pytest.approx(sum(s.sums.counts for s in (*SEGMENTS, *other)))
    assert found.dithers[0].people == pytest.approx(found.whole.counts[1:3])


def test_noise_is_measured_and_starts_as_predicted() -> None:
    assert learn_all(study(), ()).omegas == pytest.approx(study().omega)
    lower = SEGMENTS[2].sums.squares[PRODUCT, 0]
    n, prior = SEGMENTS[2].sums.counts[TIGHT], PRIOR_PEOPLE * 3
    whole = lower + lower.T - np.diag(np.diag(lower))
    expected = (whole + prior * np.eye(3)) / (n + prior)
    found = learn_all(study(), SEGMENTS).omegas[0]
    assert found == pytest.approx(expected)
    assert np.linalg.eigvalsh(found).min() > 0


def test_dithers_of_several_looks_are_weighed_by_their_people() -> None:
    (found,) = learn_all(study(), SEGMENTS).dithers
    for size, kind in enumerate((NEAR, FAR)):
        n = np.array([s.sums.counts[kind] for s in SEGMENTS])
        h = np.array([s.sizes[size, 0] for s in SEGMENTS])
        assert found.people[size] == pytest.approx(n.sum())
        gram = sum(k * x**2 * s.directions[0] @ s.directions[0].T for k, x, s in zip(n, h, SEGMENTS, strict=True))
        assert found.gram[size] == pytest.approx(gram)
        assert found.square[size] == pytest.approx((n * h**4).sum() / (n * h**2).sum())
        cross = sum(x * s.sums.squares[size, 0] @ s.directions[0].T for x, s in zip(h, SEGMENTS, strict=True))
        assert found.cross[size] == pytest.approx(cross)


def test_moments_are_learnt_unless_they_are_known() -> None:
    learnt = learn_all(study(), SEGMENTS).moments
    assert np.abs(learnt.matrix - MOMENTS).max() > 1e-3
    assert learnt.variances.max() > 0
    told = learn_all(study(known=True), SEGMENTS).moments
    assert np.array_equal(told.matrix, MOMENTS)
    assert not told.variances.any()


def test_exact_scores_show_the_moments() -> None:
    one = study(open_channel(0.75, 2))
    one = DitheredStudy(one.channel, 0.75 * 0.25 * MOMENTS[None], one.density, 1.0, one.start, MOMENTS)
    assert learn_all(one, ()).moments.matrix == pytest.approx(MOMENTS)
    found = learn_all(one, SEGMENTS)
    assert found.moments.matrix == pytest.approx(found.omegas[0] / (0.75 * 0.25))


def spread(contrast: Floats, slope: Floats, omega: Floats) -> float:
    """The standard error of a contrast."""
    along = np.linalg.solve(slope, contrast)
    return math.sqrt(float(along @ omega @ along))


@pytest.mark.parametrize("contrast", [[1.0, 0, 0], [0, 1.0, 0], [0.3, -1.0, 2.0]])
@pytest.mark.parametrize("confident", [False, True])
def test_doubt_is_the_relative_variance_of_the_standard_error(contrast: list[float], confident: bool) -> None:
    found = learn_all(study(), SEGMENTS)
    slope, omega, a = found.slopes[0], found.omegas[0], np.array(contrast)
    back = np.linalg.inv(slope.root)
    variances = slope.confident if confident else slope.variances
    # by the delta method, with the whitened entries on and above the diagonal varying on their own
    variance, step = 0.0, 1e-6
    for i in range(3):
        for j in range(i, 3):
            nudge = np.zeros((3, 3))
            nudge[i, j] = nudge[j, i] = step
            up, down = (spread(a, slope.matrix + s * slope.density * back @ nudge @ back, omega) for s in (1, -1))
            variance += ((up - down) / (2 * step) / spread(a, slope.matrix, omega)) ** 2 * variances[i, j]
    density = 0.0 if confident else slope.density_variance
    assert found.relative_variance(0, a, confident) == pytest.approx(variance + density, rel=1e-5)


def test_the_worst_relative_sd_is_that_of_a_coefficient() -> None:
    found = learn_all(study(), SEGMENTS)
    worst = max(found.relative_variance(0, axis) for axis in np.eye(3))
    assert found.worst_relative_sd() == pytest.approx(math.sqrt(worst))
    assert found.worst_relative_sd(confident=True) < found.worst_relative_sd()


def test_levels_are_learnt_apart() -> None:
    channel = box((0.25, 0.5), 2, 4.0, slopes=2, cells=4, width=2)
    found = learn_all(study(channel), (segment(0, 500, 4, levels=2),))
    assert len(found.slopes) == len(found.dithers) == 2
    assert not np.allclose(found.slopes[0].matrix, found.slopes[1].matrix)
    assert not np.allclose(found.omegas[0], found.omegas[1])


def settled(off: Floats, n: int = 10**8) -> LookSegment:
    """People so many that noise is nothing, about a point that lies ``off`` the start, with a mean gradient of zero."""
    one = segment(0, n, 1)
    one.sums.vectors[:] = 0
    for kind in (TIGHT, NEAR, FAR):
        one.sums.vectors[kind, POINT, 0] = one.sums.counts[kind] * off
        assert not one.sums.vectors[kind, GRADIENT].any()
    return one


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
    plain, other = settled(far), settled(unit * far)
    other = other._replace(sizes=unit * other.sizes)
    sizes = [coefficients_size(a, learn_all(a, (b,)), 0) for a, b in ((one, plain), (moved, other))]
    assert sizes[1] == pytest.approx(unit * sizes[0], rel=1e-9)

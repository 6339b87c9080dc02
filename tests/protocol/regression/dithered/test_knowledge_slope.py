"""The slope from dithers without noise, its bend, and what garbage cannot break."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest

from sottovoce.protocol.regression.dithered.knowledge import CURVATURE, FLATTEST, HIGHEST, LOWEST, Dithers, learn_slope
from sottovoce.protocol.regression.dithered.moments import certain, learn_moments
from sottovoce.sim.randomness import dice

Floats = npt.NDArray[np.float64]
MOMENTS = np.array([[1.0, 0.2, 0.0], [0.2, 0.4, 0.1], [0.0, 0.1, 0.3]])
TRUE = np.array([[0.5, 0.12, 0.02], [0.12, 0.17, 0.06], [0.02, 0.06, 0.16]])  # close to 0.5 x moments
OMEGA = np.diag([0.3, 0.5, 0.4])
SQUARES = np.array([0.05, 0.2])  # the far dither is twice as far
NO_CURVATURE = (0.0, 0.3)


def dithers(people: Floats, slope: Floats = TRUE, bend: float = 0.0) -> Dithers:
    """Sums over people whose mean gradient is exactly what the slope, and its bend at the far dither, say."""
    ways = np.linalg.inv(MOMENTS) / 3
    gram = np.array([n * h * ways for n, h in zip(people, SQUARES, strict=True)])
    cross = np.array([(1 + bend * h / SQUARES[1]) * slope @ g for h, g in zip(SQUARES, gram, strict=True)])
    return Dithers(people, cross, gram, np.where(people > 0, SQUARES, 0.0))


def nothing(d: int = 3) -> Dithers:
    return Dithers(np.zeros(2), np.zeros((2, d, d)), np.zeros((2, d, d)), np.zeros(2))


MANY = np.array([1e9, 1e9])


def test_the_slope_is_recovered() -> None:
    found = learn_slope(dithers(MANY), OMEGA, certain(MOMENTS), 0.4, NO_CURVATURE)
    assert np.abs(found.matrix - TRUE).max() < 1e-4
    assert found.density_variance < 1e-6
    assert found.variances.max() < 1e-6
    root = found.root
    assert found.density == pytest.approx(np.trace(root @ TRUE @ root) / 3, rel=0.05)


@pytest.mark.parametrize("bend", [-0.4, 0.5, 1.2])
def test_the_bend_is_taken_out(bend: float) -> None:
    found = learn_slope(dithers(MANY, bend=bend), OMEGA, certain(MOMENTS), 0.4, NO_CURVATURE)
    assert np.abs(found.matrix - TRUE).max() < 1e-3
    blind = dithers(MANY, bend=bend)
    straight = blind.cross.sum(axis=0) @ np.linalg.inv(blind.gram.sum(axis=0))
    assert np.abs(straight - TRUE).max() > 0.05


def test_noise_in_the_gradient_averages_out() -> None:
    people = np.array([1e6, 1e6])
    noiseless = dithers(people)
    generator = dice(5).generator()
    noise = np.array([np.linalg.cholesky(OMEGA) @ generator.standard_normal((3, 3)) for _ in range(2)])
    noise = np.array([z @ np.linalg.cholesky(gram).T for z, gram in zip(noise, noiseless.gram, strict=True)])
    heard = noiseless._replace(cross=noiseless.cross + noise)
    found = learn_slope(heard, OMEGA, certain(MOMENTS), 0.4, NO_CURVATURE)
    assert 1e-5 < np.abs(found.matrix - TRUE).max() < 0.05
    assert found.matrix == pytest.approx(found.matrix.T, abs=1e-14)


def test_nobody_beside_the_point_leaves_density_times_moments() -> None:
    found = learn_slope(nothing(), OMEGA, certain(MOMENTS), 0.4, NO_CURVATURE)
    assert found.matrix == pytest.approx(0.4 * MOMENTS)
    assert found.density == pytest.approx(0.4)
    assert found.density_variance == pytest.approx(0.25)  # of a density guessed within half of itself
    assert (found.variances > found.confident).all()


@pytest.mark.parametrize("people", [(50.0, 0.0), (0.0, 50.0), (1e8, 0.0), (0.0, 1e8), (4.0, 4.0), (1.0, 1e8)])
def test_one_size_of_dither_is_enough_to_go_on(people: tuple[float, float]) -> None:
    found = learn_slope(dithers(np.array(people)), OMEGA, certain(MOMENTS), 0.4, NO_CURVATURE)
    assert np.isfinite(found.matrix).all()
    assert np.linalg.eigvalsh(found.matrix).min() > 0
    assert np.linalg.norm(found.matrix - TRUE) < np.linalg.norm(TRUE)
    if max(people) > 1e6:  # the bend is not seen, so it stays in doubt
        assert 0.0 < found.density_variance < 0.3


def test_people_lower_the_doubt() -> None:
    variances = [
        learn_slope(dithers(np.array([n, n])), OMEGA, certain(MOMENTS), 0.4, NO_CURVATURE).density_variance
        for n in (1e2, 1e3, 1e4, 1e5, 1e6)
    ]
    assert all(later < earlier for earlier, later in pairwise(variances))


def test_doubtful_moments_leave_a_doubtful_slope() -> None:
    nobody = np.zeros((3, 3))
    vague = learn_moments(nobody, nobody, 0.3, MOMENTS)
    few = dithers(np.array([100.0, 100.0]))
    sure, unsure = (learn_slope(few, OMEGA, m, 0.4, NO_CURVATURE) for m in (certain(MOMENTS), vague))
    assert (unsure.variances > sure.variances).all()


@pytest.mark.parametrize("seed", range(12))
def test_garbage_leaves_a_slope_that_can_be_inverted(seed: int) -> None:
    generator = dice(seed).generator()
    people = np.array([(10.0, 1e3, 1e7)[seed % 3], (0.0, 30.0, 1e6)[seed // 3 % 3]])
    clean = dithers(people)
    wild = clean._replace(cross=clean.cross * 0 + 1e3 * people.max() * generator.standard_normal((2, 3, 3)))
    found = learn_slope(wild, OMEGA, certain(MOMENTS), 0.4, NO_CURVATURE)
    assert np.isfinite(found.matrix).all()
    assert found.matrix == pytest.approx(found.matrix.T, rel=1e-9)
    whitened = found.root @ found.matrix @ found.root / found.density
    assert np.linalg.eigvalsh(whitened).min() >= FLATTEST * (1 - 1e-6)
    assert LOWEST * 0.4 <= found.density <= HIGHEST * 0.4
    assert found.density_variance >= 0


@pytest.mark.parametrize(("factor", "edge"), [(1e6, HIGHEST), (-3.0, LOWEST)])
def test_the_density_stays_within_reach_of_its_guess(factor: float, edge: float) -> None:
    found = learn_slope(dithers(MANY, factor * TRUE), OMEGA, certain(MOMENTS), 0.4, NO_CURVATURE)
    assert found.density == pytest.approx(edge * 0.4)
    assert np.linalg.eigvalsh(found.matrix).min() > 0


def test_a_wild_bend_is_cut_off() -> None:
    found = learn_slope(dithers(MANY, bend=50.0), OMEGA, certain(MOMENTS), 0.4, (0.0, 100.0))
    assert np.isfinite(found.matrix).all()
    assert CURVATURE[1] == 1.5
    # more than the largest bend is believed to be density
    assert np.trace(found.matrix) > 2 * np.trace(TRUE)


@pytest.mark.parametrize("unit", [1e-8, 1e-3, 1e6])
def test_units_of_the_response_do_not_matter(unit: float) -> None:
    plain = dithers(np.array([300.0, 200.0]))
    moved = Dithers(plain.people, plain.cross * unit, plain.gram * unit**2, plain.square * unit**2)
    one = learn_slope(plain, OMEGA, certain(MOMENTS), 0.4, NO_CURVATURE)
    other = learn_slope(moved, OMEGA, certain(MOMENTS), 0.4 / unit, NO_CURVATURE)
    assert other.matrix * unit == pytest.approx(one.matrix, rel=1e-9)
    assert other.density_variance == pytest.approx(one.density_variance, rel=1e-9)
    assert other.variances == pytest.approx(one.variances, rel=1e-9)

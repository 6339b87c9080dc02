"""The slope from dithered people: found where they are many, shrunk where they are few, and as doubtful as it is."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest

from sottovoce.protocol.regression.dithered.density import (
    BENDS,
    FARTHEST,
    HIGHEST,
    LOWEST,
    STEEP,
    SWING,
    Density,
    bend_prior,
    guess_sd,
    learn_density,
    reach,
)
from sottovoce.protocol.regression.dithered.moments import certain
from sottovoce.protocol.regression.dithered.slope import FLATTEST, Heard, Slope, learn_slope
from sottovoce.protocol.regression.dithered.vech import congruence, packed, product, unpacked
from sottovoce.sim.randomness import dice

Floats = npt.NDArray[np.float64]
MOMENTS = np.array([[1.0, 0.2, 0.0], [0.2, 0.4, 0.1], [0.0, 0.1, 0.3]])
OMEGA = np.array([[0.3, 0.05, 0.0], [0.05, 0.9, 0.1], [0.0, 0.1, 1.5]])
F = 0.4
SURE = Density(F, 0.0, 1e-4, 0.0, 0.01)
WAYS = 0.5 * np.linalg.inv(np.linalg.cholesky(MOMENTS)).T


def heard(slope: Floats, people: float, seed: int | None = None) -> Heard:
    """What people beside the point say of a slope along three ways, with their noise if there is a seed."""
    ways, about = (np.concatenate([WAYS, WAYS]), np.concatenate([WAYS, WAYS[[1, 2, 0]]]) / 2)
    combinations, precisions = product(about, ways), np.full(6, people)
    values = combinations @ packed(slope)
    if seed is not None:
        values = values + dice(seed).generator().normal(0, 1 / np.sqrt(people), 6)
    return Heard(combinations, np.zeros(6), values, precisions, np.zeros(6))


def bent(by: float) -> Floats:
    """A slope that is not the density times the moments; its first entry is the density."""
    shape = MOMENTS.copy()
    shape[1, 1] += by * 0.4
    shape[0, 2] = shape[2, 0] = by * 0.3
    return F * shape


def found(slope: Floats, people: float, seed: int | None = None) -> Slope:
    return learn_slope(heard(slope, people, seed), OMEGA, certain(MOMENTS), SURE)


def test_nobody_leaves_the_density_times_the_moments() -> None:
    nobody = found(bent(0.3), 0.0)
    assert nobody.matrix == pytest.approx(F * MOMENTS)
    assert nobody.steady == pytest.approx(F * MOMENTS)
    assert np.linalg.eigvalsh(nobody.covariance).min() > -1e-12


@pytest.mark.parametrize("by", [-0.2, 0.0, 0.3])
def test_many_people_tell_the_slope(by: float) -> None:
    assert found(bent(by), 1e9).matrix == pytest.approx(bent(by), rel=1e-3, abs=1e-4)


def test_doubt_falls_with_people() -> None:
    doubts = [np.diag(found(bent(0.2), people).covariance) for people in (0.0, 1e3, 1e5, 1e7)]
    assert all((later < before).all() for before, later in pairwise(doubts))
    assert doubts[-1].max() < 1e-3 * doubts[0].max()


def test_the_posterior_is_as_far_from_the_truth_as_it_says() -> None:
    # 200 runs of 6 entries: the mean of chi2 / 6 lies within 4.9 of its standard deviations, a false alarm in a million
    truth, chi2 = bent(0.1), []
    for seed in range(200):
        one = found(truth, 3e4, seed)
        away = packed(one.matrix - truth)
        chi2.append(away @ np.linalg.solve(one.covariance, away))
    assert np.mean(chi2) / 6 < 1 + 4.9 * np.sqrt(2 / (6 * 200))


@pytest.mark.parametrize("rate", [0.5, 0.3, 0.1])
def test_a_density_that_leans_along_a_covariate_is_foreseen(rate: float) -> None:
    mean, by, deviation = 2 * rate - 1, 0.1, np.sqrt(rate * (1 - rate))
    moments = np.array([[1.0, mean], [mean, 1.0]])  # a column of -1 and 1
    shares, ends = np.array([1 - rate, rate]), np.array([-1.0, 1.0])
    rows = np.stack([np.ones(2), ends], axis=1)
    leant = shares * (1 + by * (ends - mean) / (2 * deviation))  # by a tenth a standard deviation
    silence = Heard(np.zeros((1, 3)), *np.zeros((4, 1)))
    nobody = learn_slope(silence, np.eye(2), certain(moments), SURE)
    moved = packed((rows.T * leant) @ rows - moments)
    spread = nobody.covariance[1:, 1:] / F**2
    assert moved[0] == pytest.approx(0)
    assert np.linalg.eigvalsh(spread).min() > 0
    assert moved[1:] @ np.linalg.solve(spread, moved[1:]) < 0.2  # .16 for even halves, .42 if all entries were alone


def test_a_slope_without_a_direction_is_lifted() -> None:
    lifted = found(np.zeros((3, 3)), 1e7).matrix
    back = np.linalg.inv(np.linalg.cholesky(MOMENTS))
    assert np.linalg.eigvalsh(back @ lifted @ back.T).min() == pytest.approx(FLATTEST * F, rel=1e-6)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_slope_moves_along_with_the_unit(unit: float) -> None:
    plain, told = found(bent(0.2), 1e4, 3), heard(bent(0.2), 1e4, 3)
    told = told._replace(combinations=told.combinations * unit)
    moved = learn_slope(told, OMEGA, certain(MOMENTS), SURE._replace(value=F / unit))
    assert moved.matrix * unit == pytest.approx(plain.matrix, rel=1e-9)
    assert moved.covariance * unit**2 == pytest.approx(plain.covariance, rel=1e-6, abs=1e-15)


def test_packed_matrices_multiply_like_whole_ones() -> None:
    source = dice(5).generator()
    h, right, root = (source.normal(size=(4, 4)) for _ in range(3))
    h = h + h.T
    assert unpacked(packed(h), 4) == pytest.approx(h)
    assert congruence(root) @ packed(h) == pytest.approx(packed(root @ h @ root.T))
    assert product(root, right) @ packed(h) == pytest.approx(np.einsum("aj,jk,ak->a", root, h, right))


def dithered(f: float, bend: float, people: float, tail: float = 0.25, swing: float = 0.0) -> Density:
    sizes = np.array([0.5, 1.0]) * reach(tail) / F
    squares = np.square(sizes) + SWING * swing
    seen = f * (1 + bend * squares * (f / reach(tail)) ** 2)
    return learn_density(seen, people * np.square(sizes), squares, F, tail)


def test_many_people_tell_the_density_and_its_bend() -> None:
    for f, bend in ((0.4, 0.0), (0.3, 0.3), (0.6, -0.1)):
        one = dithered(f, bend, 1e9)
        assert one.value == pytest.approx(f, rel=1e-3)
        assert one.bend == pytest.approx(bend, abs=5e-3)
        assert one.variance < 1e-5


def test_nobody_leaves_the_guess() -> None:
    one = dithered(0.9, 0.3, 0.0)
    assert one.value == pytest.approx(F)
    assert one.variance == pytest.approx(0.25, rel=0.1)
    assert one.bend == pytest.approx(bend_prior(0.25)[0])


def test_density_and_bend_stay_within_bounds() -> None:
    assert dithered(100.0, 0.0, 1e9).value == pytest.approx(HIGHEST * F)
    assert dithered(-1.0, 0.0, 1e9).value == pytest.approx(LOWEST * F)
    assert BENDS[0] <= dithered(0.4, 9.0, 1e9).bend <= BENDS[1]


def test_a_point_that_swings_sees_the_bend_from_farther_off() -> None:
    """For a density f (1 + 3 c u^2) the mean slope over [-h, h] about a point off by r is f (1 + c (h^2 + 3 r^2))."""
    f, c, h, off = 0.4, 0.05, 0.6, np.array([-0.5, 0.5])

    def below(u: Floats) -> Floats:
        return f * (u + c * u**3)

    assert np.mean(below(off + h) - below(off - h)) / (2 * h) == pytest.approx(f * (1 + c * (h**2 + SWING * 0.25)))
    one = dithered(0.4, 0.1, 1e9, swing=0.02)
    assert one.value == pytest.approx(0.4, rel=1e-3)
    assert one.bend == pytest.approx(0.1, abs=5e-3)


def test_where_the_bend_is_not_known_far_answers_leave_doubt_of_the_density() -> None:
    combinations = product(np.eye(3)[:1], 0.5 * np.eye(3)[:1])
    found = {}
    for distance in (0.0, 1.0):
        told = Heard(
            combinations, np.array([distance]), combinations @ packed(F * MOMENTS), np.array([1e9]), np.ones(1)
        )
        found[distance] = (
            learn_slope(told, OMEGA, certain(MOMENTS), SURE._replace(prior_sd=0.2)).covariance[0, 0] / F**2
        )
    assert found[0.0] < 1e-6
    assert found[1.0] == pytest.approx(0.2**2, rel=0.2)


def test_the_far_dither_stays_within_the_tail() -> None:
    for tail in (0.01, 0.1, 0.25, 0.5):
        assert reach(tail) == min(FARTHEST, (STEEP + tail) * tail) < tail
        mean, narrow, wide = bend_prior(tail)
        assert 0 < narrow < wide
        assert abs(mean) < 1
    assert bend_prior(0.5)[0] < 0 < bend_prior(0.05)[0]


def test_a_guess_far_out_in_a_tail_yields_to_few_people() -> None:
    guess, truth, far = 0.03, 0.01, 0.4
    told = np.full(4, truth), np.full(4, 2.5e3), np.full(4, far**2)
    assert learn_density(*told, guess, 0.01).value == pytest.approx(truth, rel=0.35)
    assert learn_density(*told, guess, 0.01).spread > learn_density(*told, guess, 0.1).spread
    assert guess_sd(0.3) == guess_sd(0.1) < guess_sd(0.02)

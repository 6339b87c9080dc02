"""The two geometric baselines: private, and unbiased or shifted as the theory says (|z| < 5.6 in 20 comparisons)."""

import math
import os

import numpy as np
import pytest

from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.regression import face_exponential, laplace
from sottovoce_papers.simulation.regression.designs import paper
from sottovoce_papers.simulation.regression.geometry import default_scale, diameter

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
SCORE = np.array([-0.75, 0.3, -0.6])


def test_the_diameter_is_that_of_the_two_faces() -> None:
    for tau, p in ((0.5, 3), (0.75, 8), (0.1, 2)):
        ends = [s * np.array([1.0, *[z] * p]) for s in (1 - tau, -tau) for z in (-1.0, 1.0)]
        assert diameter(tau, p) == pytest.approx(max(np.abs(a - b).sum() for a in ends for b in ends))


def test_laplace_reports_are_unbiased_with_the_papers_variance() -> None:
    scale = diameter(0.75, 2) / 2.0
    u = dice(31).generator().random((20_000 if COMPILED else 2_000, 3))
    reports = np.array([laplace.encode(SCORE, scale, row) for row in u])
    error = reports.std(axis=0) / math.sqrt(len(u))
    assert np.all(np.abs(reports.mean(axis=0) - SCORE) < 5.6 * error)
    squares = (reports - SCORE) ** 2
    error = squares.std(axis=0) / math.sqrt(len(u))
    assert np.all(np.abs(squares.mean(axis=0) - 2 * scale**2) < 5.6 * error)


@pytest.mark.parametrize("normalised", [True, False])
def test_face_exponential_reports_lie_on_the_faces_with_the_density(normalised: bool) -> None:
    """Mean face and slopes against the density summed over a fine grid of both faces."""
    tau, rate = 0.75, 8.0 / (2 * diameter(0.75, 2))
    u = dice(32).generator().random((20_000 if COMPILED else 2_000, 3))
    reports = np.array([face_exponential.encode(SCORE, tau, rate, normalised, row) for row in u])
    assert set(np.unique(reports[:, 0])) == {-tau, 1 - tau}
    assert np.all(np.abs(reports[:, 1:]) <= np.abs(reports[:, :1]))
    middle = (np.arange(400) + 0.5) / 200 - 1
    total, expected = 0.0, np.zeros(3)
    for face in (-tau, 1 - tau):
        side = abs(face) * middle
        heights = [np.exp(-rate * np.abs(side - SCORE[j])) for j in (1, 2)]
        area = (1.0 if normalised else (2 * abs(face)) ** 2) * math.exp(-rate * abs(face - SCORE[0]))
        masses = [float(h.mean()) for h in heights]
        total += area * masses[0] * masses[1]
        firsts = [float((h * side).mean()) for h in heights]
        expected += area * np.array([face * masses[0] * masses[1], firsts[0] * masses[1], masses[0] * firsts[1]])
    error = reports.std(axis=0) / math.sqrt(len(u))
    assert np.all(np.abs(reports.mean(axis=0) - expected / total) < 5.6 * error + 1e-4)


def test_the_root_shifts_are_those_of_the_notes() -> None:
    shift = face_exponential.intercept_shift
    assert abs(shift(0.75, 2, 8.0) - 0.2048) < 1e-4
    assert abs(shift(0.75, 2, 16.0) - 0.0067) < 5e-5
    assert math.isinf(shift(0.75, 2, 4.0))
    assert math.isinf(shift(0.75, 2, 8.0, normalised=False))
    assert abs(shift(0.75, 2, 16.0, normalised=False) - 0.83) < 5e-3
    for normalised in (True, False):
        assert abs(shift(0.5, 2, 1.0, normalised=normalised)) < 1e-12
        assert shift(0.75, 0, 2.0, normalised=normalised) == shift(0.75, 0, 2.0)


def test_the_mirror_level_shifts_the_other_way() -> None:
    assert face_exponential.intercept_shift(0.25, 2, 8.0) == pytest.approx(-0.2048, abs=1e-4)


@pytest.mark.skipif(not COMPILED, reason="walks of this length need the compiler")
def test_the_recursion_goes_to_the_shifted_root() -> None:
    """Intercepts of 6 walks of 200,000 reports have mean .2048 within .02 (standard error below .004)."""
    found = face_exponential.replicate(paper(2), 0.75, 8.0, (200_000,), 6, seed=33).deviations[:, 0]
    assert abs(found[:, 0].mean() - 0.2048) < 0.02
    assert found[:, 0].std() / math.sqrt(6) < 0.004


@pytest.mark.skipif(not COMPILED, reason="walks of this length need the compiler")
def test_laplace_walks_reach_the_truth() -> None:
    """Errors over their asymptotic size sqrt(trace / n), 6 walks: their mean passes 2 less than once in a million."""
    n, tau, epsilon = 300_000, 0.5, 8.0
    omega = tau * (1 - tau) * np.array([1, 1 / 3, 1 / 3]) + 2 * (diameter(tau, 2) / epsilon) ** 2
    size = math.sqrt(float((omega * np.array([1, 9, 9])).sum()) / 0.25 / n)
    errors = laplace.replicate(paper(2), tau, epsilon, (n,), 6, seed=34).errors[:, 0]
    assert 0.3 * size < errors.mean() < 2 * size


def test_the_seed_decides() -> None:
    for module in (laplace, face_exponential):
        one, two, other = (module.replicate(paper(1), 0.5, 2.0, (50, 120), 2, seed=s).deviations for s in (1, 1, 2))
        np.testing.assert_array_equal(one, two)
        assert not np.any(one == other)
    assert default_scale(0.5, 2, 2.0) == pytest.approx(2.54, abs=0.01)

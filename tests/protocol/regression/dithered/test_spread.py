"""What is not known of many covariates' moments and slopes: the same numbers as a whole covariance gives."""

import numpy as np
import pytest

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.dithered.functionals import answers, banned
from sottovoce.protocol.regression.dithered.moments import BitAnswers, learn_moments
from sottovoce.protocol.regression.dithered.segments import stacked
from sottovoce.protocol.regression.dithered.slope import CROSSES, DIAGONAL
from sottovoce.protocol.regression.dithered.spread import WHOLE, about_product, apart, carried, is_apart, moved, nothing
from sottovoce.protocol.regression.dithered.vech import congruence, places, product
from sottovoce.sim.randomness import dice

D = WHOLE + 1
ENTRIES = D * (D + 1) // 2


def parts() -> tuple[Floats, Floats, Floats, Floats]:
    """Two sets of rows, variances and a direction."""
    source = dice(1).generator()
    u, w = source.normal(size=(2, 5, D))
    return u, w, source.uniform(0, 1, ENTRIES), source.normal(size=ENTRIES)


def test_many_covariates_are_kept_apart() -> None:
    assert is_apart(D)
    assert not is_apart(WHOLE)
    assert nothing(D).shape == (2, ENTRIES)


def test_variances_are_those_of_the_whole_covariance() -> None:
    u, w, variances, way = parts()
    gradients, whole = product(u, w), np.diag(variances) + np.outer(way, way)
    expected = np.diag(gradients @ whole @ gradients.T)
    assert carried(u, w, apart(variances, way)) == pytest.approx(expected)


def test_what_a_vector_is_moved_by_is_that_of_the_whole_covariance() -> None:
    u, w, variances, way = parts()
    moves, whole = product(u, w[0][None, :]), np.diag(variances) + np.outer(way, way)
    np.testing.assert_allclose(moved(u, w[0], apart(variances, way)), moves @ whole @ moves.T)


def test_the_spread_about_a_matrix_is_nearly_the_whole_one_s() -> None:
    source = dice(2).generator()
    rows = source.normal(size=(40, 6))
    matrix = rows.T @ rows / 40
    eigenvalues, eigenvectors = np.linalg.eigh(matrix)
    turn = congruence((eigenvectors * np.sqrt(eigenvalues)) @ eigenvectors.T)
    first, second, _ = places(6)
    exact = (turn**2 * np.where(first == second, DIAGONAL, CROSSES) ** 2).sum(axis=1)
    found = about_product(matrix, DIAGONAL, CROSSES)
    assert found[0] == 0
    assert (np.abs(found[1:] / exact[1:] - 1) < 0.15).all()


def test_moments_of_many_covariates_are_learnt_one_by_one() -> None:
    guess = np.diag([1.0, *[1 / 3] * (D - 1)])
    asked = np.triu(np.full((D, D), 1e9))
    truth = guess + 0.2 * (1 - np.eye(D))
    ones = asked * np.where(np.eye(D) > 0, truth, (1 + truth) / 2)
    told = stacked((), 1, D)
    without = banned(told, 1.0)
    pairs = answers(told, without, 1.0)
    assert isinstance(pairs, BitAnswers)
    assert len(pairs.values) == 0
    found = learn_moments(np.stack([asked, ones]), 1.0, guess, pairs)
    np.testing.assert_allclose(found.matrix, truth, atol=0.01)
    assert found.covariance.shape == found.steady_covariance.shape == (2, ENTRIES)
    assert (found.covariance[0, 1:] < 1e-8).all()
    untold = learn_moments(np.zeros((2, *asked.shape)), 1.0, guess, pairs)
    assert untold.covariance[0, 1:D] == pytest.approx(0.4**2)  # of means little is presumed
    assert untold.covariance[0, D:] == pytest.approx(0.15**2)

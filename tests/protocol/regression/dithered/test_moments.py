"""Moments from bits: right with many people, the guess with few, and always possible."""

import numpy as np
import numpy.typing as npt
import pytest

from sottovoce.protocol.regression.dithered.moments import (
    SMALLEST_ROOT,
    SMALLEST_SQUARE,
    certain,
    learn_moments,
    whitened,
    whitener,
)
from sottovoce.sim.randomness import dice

Floats = npt.NDArray[np.float64]
GUESS = np.diag([1.0, 1 / 3, 1 / 3])
TRUTH = np.array([[1.0, 0.3, -0.2], [0.3, 0.5, 0.1], [-0.2, 0.1, 0.2]])


def bits(n: float, rate: float, truth: Floats = TRUTH) -> tuple[Floats, Floats]:
    """As many as ``n`` people for each product, whose bits are what they are on average."""
    asked = np.triu(np.full(truth.shape, float(n)))
    asked[0, 0] = 0
    return asked, asked * (1 + rate * truth) / 2


@pytest.mark.parametrize("rate", [1.0, 0.46, 0.05])
def test_many_people_tell_the_moments(rate: float) -> None:
    found = learn_moments(*bits(1e9 / rate**2, rate), rate, GUESS)
    assert np.abs(found.matrix - TRUTH).max() < 1e-3
    assert np.abs(found.open_minded - TRUTH).max() < 1e-3
    assert found.variances.max() < 1e-5


def test_drawn_bits_lie_within_their_variance() -> None:
    n, rate = 20_000, 0.5
    asked, mean = bits(n, rate)
    ones = dice(3).generator().binomial(asked.astype(np.int64), mean / np.maximum(asked, 1)).astype(float)
    found = learn_moments(asked, ones, rate, GUESS)
    away = np.abs(found.matrix - TRUTH)[np.triu_indices(3)][1:]
    raw = found.raw[np.triu_indices(3)][1:]
    assert raw == pytest.approx(np.full(5, 1 / (rate**2 * n)))
    assert (away < 5.5 * np.sqrt(raw)).all()  # false alarm 1e-6, with room for the pull to the guess
    assert away.max() > 0


def test_nobody_leaves_the_guess() -> None:
    nobody = np.zeros((3, 3))
    found = learn_moments(nobody, nobody, 0.4, GUESS)
    assert found.matrix == pytest.approx(GUESS)
    assert found.open_minded == pytest.approx(GUESS)
    assert (found.variances > 0).sum() == 8  # all but the constant
    assert found.variances[0, 0] == 0


def test_few_people_barely_move_the_guess() -> None:
    few, many = (learn_moments(*bits(n, 0.2), 0.2, GUESS) for n in (5, 500_000))
    assert np.abs(few.matrix - GUESS).max() < 0.05
    assert np.abs(many.matrix - GUESS).max() > 0.15
    # an open mind believes the bits more, and doubts more
    assert (np.abs(few.open_minded - GUESS) >= np.abs(few.matrix - GUESS) - 1e-12).all()
    assert (few.variances >= few.confident).all()
    assert (few.raw[few.raw > 0] >= few.variances[few.raw > 0]).all()


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_said_the_matrix_is_possible(seed: int) -> None:
    generator = dice(seed).generator()
    d = 2 + seed % 5
    asked = np.triu(generator.integers(0, 40, (d, d))).astype(float)
    ones = np.floor(asked * generator.uniform(size=(d, d)))
    rate = (1.0, 0.5, 0.02)[seed % 3]
    found = learn_moments(asked, ones, rate, np.diag([1.0, *[0.3] * (d - 1)]))
    for matrix in (found.matrix, found.open_minded):
        assert np.array_equal(matrix, matrix.T) or matrix == pytest.approx(matrix.T, abs=1e-14)
        assert np.linalg.eigvalsh(matrix).min() > 0.9 * SMALLEST_SQUARE * SMALLEST_ROOT
        assert np.isfinite(matrix).all()
    for part in (found.variances, found.confident, found.raw):
        assert np.array_equal(part, part.T)
        assert part.min() >= 0


@pytest.mark.parametrize("said", [0.0, 1.0])
def test_unanimous_people_leave_a_matrix_that_can_be_inverted(said: float) -> None:
    asked, _ = bits(1e6, 1.0)
    found = learn_moments(asked, said * asked, 1.0, GUESS)
    assert np.linalg.eigvalsh(found.matrix).min() > 0.9 * SMALLEST_SQUARE * SMALLEST_ROOT
    assert np.isfinite(whitener(found.matrix)).all()


def test_certain_moments_have_no_variance() -> None:
    found = certain(TRUTH)
    assert np.array_equal(found.matrix, TRUTH)
    assert np.array_equal(found.open_minded, TRUTH)
    assert not found.variances.any()
    assert not found.confident.any()
    assert not found.raw.any()


def test_the_whitener_whitens() -> None:
    root = whitener(TRUTH)
    assert root @ TRUTH @ root == pytest.approx(np.eye(3), abs=1e-12)
    assert root == pytest.approx(root.T, abs=1e-14)


def test_whitened_variances_are_those_of_a_whitened_matrix() -> None:
    # for a diagonal whitener, exactly
    root, variances = np.diag([1.0, 2.0, 3.0]), np.arange(9.0).reshape(3, 3)
    scale = np.array([1.0, 2.0, 3.0])
    assert whitened(variances, root) == pytest.approx(variances * np.outer(scale, scale) ** 2)

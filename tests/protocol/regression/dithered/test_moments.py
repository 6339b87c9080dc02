"""Moments from bits: right with many people, the guess with few, and always possible."""

import numpy as np
import numpy.typing as npt
import pytest

from sottovoce.protocol.regression.dithered.functionals import ranges_of, scaled_pairs
from sottovoce.protocol.regression.dithered.moments import (
    SMALLEST_ROOT,
    SMALLEST_SQUARE,
    BitAnswers,
    certain,
    heard_of,
    learn_moments,
    roots,
    values_of,
)
from sottovoce.protocol.regression.dithered.vech import packed, product
from sottovoce.sim.randomness import dice

Floats = npt.NDArray[np.float64]
GUESS = np.diag([1.0, 1 / 3, 1 / 3])
TRUTH = np.array([[1.0, 0.3, -0.2], [0.3, 0.5, 0.1], [-0.2, 0.1, 0.2]])
NOTHING = BitAnswers(np.zeros((0, 6)), np.zeros(0), np.zeros(0))


def bits(n: float, rate: float, truth: Floats = TRUTH) -> Floats:
    """As many as ``n`` people for each product, whose bits are what they are on average: squares lie in [0, 1]."""
    asked = np.triu(np.full(truth.shape, float(n)))
    asked[0, 0] = 0
    told = np.where(np.eye(len(truth)) > 0, 2 * truth - 1, truth)
    return np.stack([asked, asked * (1 + rate * told) / 2])


@pytest.mark.parametrize("rate", [1.0, 0.46, 0.05])
def test_many_people_tell_the_moments(rate: float) -> None:
    found = learn_moments(bits(1e9 / rate**2, rate), rate, GUESS, NOTHING)
    assert np.abs(found.matrix - TRUTH).max() < 1e-3
    assert np.abs(found.steady - TRUTH).max() < 1e-3
    assert np.diag(found.covariance).max() < 1e-5


def test_drawn_bits_lie_within_their_variance() -> None:
    n, rate = 20_000, 0.5
    asked, mean = bits(n, rate)
    ones = dice(3).generator().binomial(asked.astype(np.int64), mean / np.maximum(asked, 1)).astype(float)
    found = learn_moments(np.stack([asked, ones]), rate, GUESS, NOTHING)
    away = np.abs(packed(found.matrix - TRUTH))[1:]
    noise = np.array([1, 1, 0.25, 1, 0.25]) / (rate**2 * n)
    assert (np.diag(found.covariance)[1:] <= noise + 1e-12).all()
    assert (away < 5.5 * np.sqrt(noise)).all()  # false alarm 1e-6, with room for the pull to the guess
    assert away.max() > 0


def test_nobody_leaves_the_guess() -> None:
    found = learn_moments(np.zeros((2, 3, 3)), 0.4, GUESS, NOTHING)
    assert found.matrix == pytest.approx(GUESS)
    assert found.steady == pytest.approx(GUESS)
    doubts = np.diag(found.covariance)
    assert doubts[0] == 0 < doubts[1:].min()
    assert (doubts >= np.diag(found.steady_covariance)).all()


def test_few_people_barely_move_the_guess() -> None:
    few, many = (learn_moments(bits(n, 0.2), 0.2, GUESS, NOTHING) for n in (5, 500_000))
    assert np.abs(few.steady - GUESS).max() < 0.05
    assert np.abs(many.steady - GUESS).max() > 0.15
    # an open mind believes the bits more
    assert (np.abs(few.matrix - GUESS) >= np.abs(few.steady - GUESS) - 1e-12).all()


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_said_the_matrix_is_possible(seed: int) -> None:
    generator = dice(seed).generator()
    d = 2 + seed % 5
    asked = np.triu(generator.integers(0, 40, (d, d))).astype(float)
    ones = np.floor(asked * generator.uniform(size=(d, d)))
    rate = (1.0, 0.5, 0.02)[seed % 3]
    combinations = generator.normal(0, 1, (4, d * (d + 1) // 2))
    told = BitAnswers(combinations, generator.normal(0, 1, 4), np.full(4, 9.0))
    found = learn_moments(np.stack([asked, ones]), rate, np.diag([1.0, *[0.3] * (d - 1)]), told)
    for matrix, least in ((found.matrix, 0.0), (found.steady, 0.9 * SMALLEST_SQUARE * SMALLEST_ROOT)):
        assert matrix == pytest.approx(matrix.T, abs=1e-14)
        assert np.linalg.eigvalsh(matrix).min() > least
        assert np.isfinite(matrix).all()
    for part in (found.covariance, found.steady_covariance):
        assert np.linalg.eigvalsh((part + part.T) / 2).min() > -1e-10


@pytest.mark.parametrize("said", [0.0, 1.0])
def test_unanimous_people_leave_a_matrix_that_can_be_inverted(said: float) -> None:
    asked, _ = bits(1e6, 1.0)
    found = learn_moments(np.stack([asked, said * asked]), 1.0, GUESS, NOTHING)
    assert np.linalg.eigvalsh(found.matrix).min() > 0
    assert np.linalg.eigvalsh(found.steady).min() > 0.9 * SMALLEST_SQUARE * SMALLEST_ROOT
    for matrix in (found.matrix, found.steady):
        assert np.isfinite(roots(matrix)[1]).all()


@pytest.mark.parametrize("width", [0.2, 0.04, 0.008])
def test_columns_far_narrower_than_their_bounds_are_found_as_narrow(width: float) -> None:
    truth = np.array([[1.0, -0.9, 0.0], [-0.9, 0.81 + width**2 / 12, 0.0], [0.0, 0.0, 1 / 3]])
    told = packed(truth)[1:]
    found = learn_moments(np.zeros((2, 3, 3)), 1.0, GUESS, NOTHING, (told, np.full(len(told), 1e14)))
    assert np.linalg.eigvalsh(found.matrix)[0] == pytest.approx(np.linalg.eigvalsh(truth)[0], rel=0.02)


@pytest.mark.parametrize("people", [1e3, 1e5])
def test_along_a_direction_within_its_noise_nothing_is_known(people: float) -> None:
    truth = np.array([[1.0, 0.0, 0.0], [0.0, 1 / 3, 1 / 3], [0.0, 1 / 3, 1 / 3]])  # two columns that are one
    told = packed(truth)[1:]
    found = learn_moments(np.zeros((2, 3, 3)), 1.0, GUESS, NOTHING, (told, np.full(len(told), people)))
    way = np.array([0.0, 1.0, -1.0])
    lies = product(way, way)
    noise = np.sqrt(lies @ found.covariance @ lies)
    assert 0 < way @ found.matrix @ way < 0.6 * noise


def test_covariates_that_are_all_alike_are_shrunk_to_each_other() -> None:
    d = 7
    truth = np.full((d, d), 0.2)
    truth[0, 1:] = truth[1:, 0] = 0.0
    nothing = BitAnswers(np.zeros((0, 28)), np.zeros(0), np.zeros(0))
    np.fill_diagonal(truth, 0.4)
    truth[0, 0] = 1.0
    found = learn_moments(bits(300, 1.0, truth), 1.0, np.diag([1.0, *[1 / 3] * 6]), nothing)
    crosses = found.matrix[np.triu_indices(d, 1)]
    assert crosses[6:].min() > 0.17


def test_certain_moments_have_no_variance() -> None:
    found = certain(TRUTH)
    assert np.array_equal(found.matrix, TRUTH)
    assert np.array_equal(found.steady, TRUTH)
    assert not found.covariance.any()
    assert not found.steady_covariance.any()


def test_roots_are_those_of_the_matrix() -> None:
    root, back = roots(TRUTH)
    assert root @ root == pytest.approx(TRUTH)
    assert root @ back == pytest.approx(np.eye(3), abs=1e-12)


def test_people_asked_about_a_pair_tell_its_mean() -> None:
    u, w = np.array([[1.0, 2.0, -1.0]]), np.array([[-0.5, 1.0, 0.3]])
    pairs, correlation = scaled_pairs(u, w, TRUTH)
    assert pairs[0, 0] @ TRUTH @ pairs[0, 0] == pytest.approx(1)
    assert pairs[0, 0] @ TRUTH @ pairs[0, 1] == pytest.approx(correlation[0])
    low, high = ranges_of(pairs, correlation)[1]
    told = (correlation - low) / (high - low)
    value, precision = values_of(np.array([1e9]), 1e9 * ((told - 0.5) * 0.4 + 0.5), low, high, 0.4)
    answer = BitAnswers(product(pairs[:, 0], pairs[:, 1]), value, precision)
    found = learn_moments(np.zeros((2, 3, 3)), 0.4, GUESS, answer)
    assert pairs[0, 0] @ found.matrix @ pairs[0, 1] == pytest.approx(correlation[0], abs=1e-3)
    assert np.abs(found.matrix - TRUTH).max() > 0.01  # one number is known, the others are not


def test_what_letters_tell_counts_by_its_precision() -> None:
    sums = np.stack([np.full((3, 3), 1e8), 1e8 * TRUTH])
    told = heard_of(np.triu(sums), 0.0)
    assert told[0] == pytest.approx(packed(TRUTH)[1:])
    found = learn_moments(np.zeros((2, 3, 3)), 0.4, GUESS, NOTHING, told)
    assert np.abs(found.matrix - TRUTH).max() < 1e-3
    assert np.diag(found.covariance)[1:] == pytest.approx(1e-8, rel=1e-3)
    wrong = packed(TRUTH)[1:] + 0.1, np.full(5, 1e8)
    both = learn_moments(bits(1e8, 1.0), 1.0, GUESS, NOTHING, wrong)  # a bit's own: 1, of a square 4
    apart = packed(both.matrix - TRUTH)[1:]
    assert apart == pytest.approx(0.1 / (1 + np.array([1, 1, 4, 1, 4])), abs=1e-3)


def test_squares_that_are_rounded_are_never_surer_than_the_grid() -> None:
    sums = np.triu(np.stack([np.full((3, 3), 1e12), 1e12 * TRUTH]))
    _, precisions = heard_of(sums, 0.005)
    assert precisions[2] == precisions[4] == pytest.approx(1 / 0.005**2, rel=1e-6)
    assert precisions[0] == 1e12


def test_a_pair_that_is_badly_known_is_scaled_so_that_little_is_cut() -> None:
    u, w = np.array([[1.0, 2.0, -1.0]]), np.array([[-0.5, 1.0, 0.3]])
    sure, _ = scaled_pairs(u, w, TRUTH)
    unsure, _ = scaled_pairs(u, w, TRUTH, 0.04 * np.eye(6))
    assert (np.abs(unsure) < np.abs(sure)).all()
    assert scaled_pairs(u, w, TRUTH, np.zeros((6, 6)))[0] == pytest.approx(sure)


def test_the_whole_range_holds_the_product_at_every_corner_of_the_box() -> None:
    source = dice(8).generator()
    pairs, correlation = scaled_pairs(source.normal(size=(20, 3)), source.normal(size=(20, 3)), TRUTH)
    ranges = ranges_of(pairs, correlation)
    corners = np.column_stack([np.ones(400), source.choice([-1.0, 1.0], (400, 2)) * source.uniform(0.5, 1, (400, 1))])
    products = (corners @ pairs[:, 0].T) * (corners @ pairs[:, 1].T)
    assert (products >= ranges[20:, 0] - 1e-12).all()
    assert (products <= ranges[20:, 1] + 1e-12).all()
    assert (ranges[:20, 0] >= ranges[20:, 0]).all()
    assert (ranges[:20, 1] <= ranges[20:, 1]).all()
    assert (ranges[:, 1] > ranges[:, 0]).all()


def test_answers_that_letters_contradict_are_not_read() -> None:
    truth = np.array([[1.0, -0.94, 0.0], [-0.94, 1.0, 0.0], [0.0, 0.0, 1 / 3]])  # the first column is rare
    told = packed(truth)[1:]
    letters = told, np.full(len(told), 1e5)
    way = np.array([1.0, 1.0, 0.0])
    cut = BitAnswers(product(way, way)[None], np.array([0.01]), np.array([1e8]))  # a short range hides the rare ones
    found = learn_moments(np.zeros((2, 3, 3)), 1.0, GUESS, cut, letters).matrix
    assert way @ found @ way == pytest.approx(way @ truth @ way, rel=0.1)
    right = cut._replace(values=np.array([0.125]))
    assert way @ learn_moments(np.zeros((2, 3, 3)), 1.0, GUESS, right, letters).matrix @ way == pytest.approx(
        0.125, rel=0.02
    )

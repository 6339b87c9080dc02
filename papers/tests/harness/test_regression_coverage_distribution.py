"""The Gaussian distribution of the paper's recursion: its integrals, its moments step by step, and simulation."""

import math

import numpy as np
import pytest

from sottovoce_papers.simulation.regression import moments, predicted
from sottovoce_papers.simulation.regression.cell import Cell
from sottovoce_papers.simulation.regression.inferred import simulate
from sottovoce_papers.simulation.regression.mean_field import covariate_points, field
from sottovoce_papers.simulation.regression.moments import noise_of, spans
from sottovoce_papers.simulation.regression.paper import replicate
from sottovoce_papers.simulation.regression.walk import EXPONENT, OFFSET

LOOSE = 5.5  # standard errors: false alarm below 1e-7 each


def test_swing_bends_the_intercept_by_half_the_second_derivative() -> None:
    tau, swing = 0.75, np.diag([4e-4, 9e-4, 1e-4])
    score, slope = field(tau, covariate_points(2), np.zeros(3), swing)
    bend = 4 * tau * (1 - tau) * (1 - 2 * tau)  # F'' of logistic errors of scale 1/2
    square = 4e-4 + (9e-4 + 1e-4) / 3
    assert score[0] == pytest.approx(bend * square / 2, rel=1e-2)
    assert np.abs(score[1:]).max() < 1e-12
    assert slope[0, 0] == pytest.approx(2 * tau * (1 - tau), rel=1e-2)


@pytest.mark.parametrize("z", [(1e-7, 3e-6), (1e-4, 0.3), (2.0, 80.0)])
def test_integrals_of_a_block(z: tuple[float, float]) -> None:
    rates = np.array(z)
    s = (np.arange(200_000) + 0.5) / 200_000
    fading = np.exp(-rates[:, None] * s)
    grown = -np.expm1(-rates[:, None] * s) / rates[:, None]
    first = -np.expm1(-rates) / rates
    both = rates[:, None] + rates[None, :]
    joint = -np.expm1(-both) / both
    assert moments._mixed(rates, first, joint) == pytest.approx(fading @ grown.T / len(s), rel=1e-4)
    assert moments._summed(rates, first, joint) == pytest.approx(grown @ grown.T / len(s), rel=1e-4)


def test_moments_are_those_of_the_recursion_step_by_step() -> None:
    cell, n = Cell(0.75, 1, 4.0, 4, 2), 3000
    x, spread, d = covariate_points(1), noise_of(cell), 2
    mean, swing = -cell.beta, np.zeros((d, d))
    total, mixed, summed = np.zeros(d), np.zeros((d, d)), np.zeros((d, d))
    for i in range(1, n + 1):
        step = cell.scale / (i**EXPONENT + OFFSET)
        score, slope = field(cell.tau, x, mean, swing)
        onward = np.eye(d) - step * slope
        mean, swing = mean - step * score, onward @ swing @ onward.T + step**2 * spread
        mixed = onward @ mixed + swing  # cov(point, sum of points up to it)
        total, summed = total + mean, summed + mixed + mixed.T - swing
    found = spans(cell, [1000, n])
    joined = predicted._joined({1000: found[0], n: found[1]}, 0, n)
    assert joined.total == pytest.approx(total, rel=1e-3, abs=1.0)  # sums and integrals differ by half a point
    assert joined.noise[d:, d:] == pytest.approx(summed, rel=5e-3, abs=1e-3 * summed.max())
    assert joined.noise[:d, :d] == pytest.approx(swing, rel=5e-3, abs=1e-3 * swing.max())


@pytest.mark.parametrize("cell", [Cell(0.75, 2, 4.0, 3, 2), Cell(0.5, 1, 1.0)])
def test_simulated_averages_have_the_predicted_mean_and_spread(cell: Cell) -> None:
    n, runs = 600, 150
    found = replicate(cell, (n,), runs, seed=5, normaliser=False, threads=1).deviations[:, 0]
    distribution = spans(cell, [n])[0]
    spread = np.sqrt(np.diag(distribution.noise)[cell.p + 1 :]) / n
    assert np.abs(found.mean(0) - distribution.total / n).max() < LOOSE * spread.max() / math.sqrt(runs)
    assert found.std(0) == pytest.approx(spread, rel=LOOSE / math.sqrt(2 * runs))


def test_a_long_unbiased_recursion_covers_as_it_says() -> None:
    found = predicted.predict(Cell(0.5, 1, math.inf), 3 * 10**8, 500, seed=3, trees=((4, 4),))
    for covered in found.values():
        for hits in (covered.coordinates, covered.ellipsoid):
            assert abs(hits.mean() - 0.95) < LOOSE * math.sqrt(0.95 * 0.05 / hits.size)


def test_a_short_bent_one_does_not() -> None:
    found = predicted.predict(Cell(0.75, 2, 2.0, 4, 1), 10**6, 300, seed=3, trees=((4, 4, 4),))
    assert found["HiGrad [4, 4, 4]"].ellipsoid.mean() < 0.7
    assert found["SN"].coordinates.mean() > 0.87


def test_simulation_is_repeatable_and_of_its_seed() -> None:
    cell = Cell(0.75, 1, 4.0, 4, 2)
    one, two, other = (simulate(cell, 420, 2, seed, ((4, 4),))["HiGrad [4, 4]"].lengths for seed in (1, 1, 2))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)

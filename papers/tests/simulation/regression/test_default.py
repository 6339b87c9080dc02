"""Replications of the default: fresh people each time, and the same from the same seed."""

import math
import os

import numpy as np
import pytest

from sottovoce.server.regression.dithered.fit import DitheredFit
from sottovoce_papers.simulation.regression.catalogue import design
from sottovoce_papers.simulation.regression.default import Setting, replicate, sandwich
from sottovoce_papers.simulation.regression.designs import paper

compiled = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="too long uncompiled")


def points(fit: DitheredFit) -> list[float]:
    return [float(x) for x in fit.point[0]]


def test_replications_differ_and_can_be_repeated() -> None:
    setting = Setting(paper(1), 0.5, 4.0, "cq:2,1")
    first = replicate(setting, [150], points, 3, seed=8)
    assert first == replicate(setting, [150], points, 3, seed=8, threads=1)
    assert first[:2] == replicate(setting, [150], points, 2, seed=8)
    assert len({tuple(run[0]) for run in first}) == 3
    assert first != replicate(setting, [150], points, 3, seed=9)


def test_what_is_kept_at_a_number_of_people_does_not_depend_on_later_ones() -> None:
    setting = Setting(paper(1), 0.5, 4.0, "cq:2,1")
    counts = replicate(setting, [100, 250], lambda fit: fit.people, 1, seed=8)
    assert counts == [[100, 250]]
    short = replicate(setting, [100], points, 2, seed=8)
    long = replicate(setting, [100, 250], points, 2, seed=8)
    assert [run[0] for run in long] == [run[0] for run in short]
    assert long[0][0] != long[0][1]


def test_guesses_are_wrong_by_the_given_factors() -> None:
    plain = Setting(paper(2), 0.75, 2.0, "cq:2,1").study()
    wrong = Setting(paper(2), 0.75, 2.0, "cq:2,1", density_factor=3.0, size_factor=0.25).study()
    assert plain.density == pytest.approx([paper(2).density(0.75)])
    assert wrong.density == pytest.approx(3 * plain.density)
    assert wrong.size == 0.25 * plain.size
    assert plain.moments == pytest.approx(paper(2).second_moments)


def test_known_moments_are_the_designs() -> None:
    setting = Setting(design("correlated-gumbel"), 0.75, 2.0, "cq:2,1", known=True)
    assert setting.study().known
    assert setting.study().moments == pytest.approx(design("correlated-gumbel").second_moments)


@compiled
@pytest.mark.parametrize("epsilon", [4.0, math.inf])
def test_the_sandwich_is_that_of_the_paper(epsilon: float) -> None:
    setting = Setting(paper(1), 0.5, epsilon)
    inverse = np.linalg.inv(paper(1).hessian(0.5))
    predicted = inverse @ setting.study().omega[0] @ inverse.T
    found = sandwich(setting, draws=100_000)
    # uniform covariates and the true density are what the prediction supposes; noise of 1e5 squares, and 1e-6
    assert np.diag(found) == pytest.approx(np.diag(predicted), rel=0.05)


@compiled
def test_estimates_spread_as_the_sandwich_says() -> None:
    setting, n, runs = Setting(paper(1), 0.5, math.inf), 2000, 60
    found = np.array([run[0] for run in replicate(setting, [n], points, runs, seed=5)])
    squares = np.mean((found - paper(1).beta) ** 2, axis=0)
    expected = np.diag(sandwich(setting, draws=30_000)) / n
    # a mean of 60 squares lies between half and twice what it should be, with false alarm below 1e-6 on either side
    assert (squares < 2.2 * expected).all()
    assert (squares > 0.35 * expected).all()

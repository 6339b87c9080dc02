"""Designs: bounded covariates, the level at the true line, and Hessians that are slopes.

Statistical tests allow |z| up to 6.2 in some 1,500 comparisons: a false alarm in a million.
"""

import math

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.regression.catalogue import DESIGNS, HELD_OUT, TUNING, design
from sottovoce_papers.simulation.regression.covariates import Covariates, Margin
from sottovoce_papers.simulation.regression.designs import Design, paper

EVERY = pytest.mark.parametrize("one", DESIGNS.values(), ids=list(DESIGNS))
N = 20_000


@EVERY
@pytest.mark.parametrize("tau", [0.25, 0.9])
def test_samples_have_the_truth_that_is_claimed(one: Design, tau: float) -> None:
    z, y = one.sample(dice(17).generator(), N, tau)
    assert z.shape == (N, one.p)
    assert np.abs(z).max() <= 1.0
    x = np.column_stack([np.ones(N), z])
    score = x * ((y <= np.einsum("ij,j->i", x, one.beta)).astype(float) - tau)[:, None]
    assert np.all(np.abs(score.mean(axis=0)) < 6.2 * score.std(axis=0) / math.sqrt(N))
    other = 0.6
    score = x * ((y <= np.einsum("ij,j->i", x, one.beta_at(other, tau))).astype(float) - other)[:, None]
    assert np.all(np.abs(score.mean(axis=0)) < 6.2 * score.std(axis=0) / math.sqrt(N))


@EVERY
def test_moments_are_those_of_the_sample(one: Design) -> None:
    z, _ = one.sample(dice(18).generator(), N, 0.5)
    x = np.column_stack([np.ones(N), z])
    products = np.einsum("ij,ik->ijk", x, x)
    error = products.std(axis=0) / math.sqrt(N)
    assert np.all(np.abs(products.mean(axis=0) - one.second_moments) < 6.2 * error + 3e-4)
    assert np.linalg.eigvalsh(one.second_moments)[0] > 0.01


@EVERY
@pytest.mark.parametrize("tau", [0.25, 0.75])
def test_the_hessian_is_the_slope_of_the_expected_score(one: Design, tau: float) -> None:
    """A shift of the line in each direction moves the mean score by the Hessian's column, up to the density's bend."""
    z, _ = one.sample(dice(19).generator(), N, tau)
    x = np.column_stack([np.ones(N), z])
    spread = 1.0 + (one.tilt * z[:, 0] if one.tilt else 0.0)
    centre, h = float(one.errors.quantile(tau)), 1e-4
    for k in range(one.p + 1):
        ends = [np.asarray(one.errors.cdf(centre + side * h * x[:, k] / spread)) for side in (1, -1)]
        column = x * ((ends[0] - ends[1]) / (2 * h))[:, None]
        error = column.std(axis=0) / math.sqrt(N)
        assert np.all(np.abs(column.mean(axis=0) - one.hessian(tau)[:, k]) < 6.2 * error + 1e-3 * one.density(tau))


def test_the_papers_hessian_is_closed() -> None:
    np.testing.assert_allclose(paper(8).hessian(0.5), 0.5 * np.diag([1.0] + [1 / 3] * 8), atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(paper(5).beta), 1.0)


def test_the_notes_designs_are_recognised() -> None:
    first = design("correlated-gumbel")
    roots = np.linalg.eigvalsh(first.second_moments)
    assert abs(roots[0] - 0.064) < 1e-3
    assert abs(roots[-1] - 1.406) < 1e-3
    assert abs(first.density(0.25) - 0.495) < 1e-3


def test_a_tilt_is_integrated_exactly_where_covariates_are_independent() -> None:
    """E 1 / (1 + a z) = log((1 + a) / (1 - a)) / 2a for a uniform covariate."""
    found = Covariates((Margin("uniform"), Margin("uniform"))).moments(0.5)
    zeroth = math.log(3.0)
    first = (1 - zeroth) / 0.5
    np.testing.assert_allclose(found[0], [zeroth, first, 0.0], atol=1e-9)
    np.testing.assert_allclose(found[1:, 1:], [[-first / 0.5, 0.0], [0.0, zeroth / 3]], atol=1e-9)


def test_correlation_agrees_with_its_closed_form() -> None:
    """Uniform margins of normal correlation r have correlation (6 / pi) asin(r / 2)."""
    found = Covariates((Margin("uniform"),) * 2, 0.6).second_moments[1, 2]
    assert abs(3 * found - 6 / math.pi * math.asin(0.3)) < 1e-5
    signs = Covariates((Margin("sign", (0.5,)),) * 2, 0.6).second_moments[1, 2]
    assert abs(signs - 2 / math.pi * math.asin(0.6)) < 2e-4


def test_what_is_tuned_on_is_not_held_out() -> None:
    assert len(TUNING) >= 5
    assert len(HELD_OUT) >= 5
    assert not set(TUNING) & set(HELD_OUT)
    assert all(DESIGNS[name].held_out for name in HELD_OUT)
    assert not any(DESIGNS[name].held_out for name in TUNING)
    distributions = " ".join(one.errors.name for one in DESIGNS.values())
    for distribution in (
        "logistic",
        "normal",
        "student",
        "gumbel",
        "laplace",
        "exponential",
        "lognormal",
        "cauchy",
        "|",
    ):
        assert distribution in distributions


@pytest.mark.parametrize(
    "make",
    [
        lambda: Margin("triangle"),
        lambda: Covariates((Margin("uniform"),) * 3, -0.6),
        lambda: Design("short", Covariates((Margin("uniform"),)), (1.0,), paper(1).errors),
        lambda: design("nowhere"),
    ],
)
def test_impossible_designs_are_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(BadInput):
        make()

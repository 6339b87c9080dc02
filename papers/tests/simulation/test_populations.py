"""Every population's four functions agree with each other, and the papers' settings have their truths."""

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.families import FAMILIES
from sottovoce_papers.simulation.populations import (
    Population,
    blend,
    evenly,
    hete_d,
    hete_l,
    homogeneous,
    population,
    rounded,
)

SHAPES = {"lognormal": (0.7,), "gamma": (2.5,), "student": (3.0,), "weibull": (1.5,), "lomax": (2.0,)}
DISTRIBUTIONS = [population(name, *SHAPES.get(name, ())) for name in sorted(FAMILIES)]
DISTRIBUTIONS += [
    population("normal").moved(1e3, 20.0),
    blend([population("normal").moved(-2), population("normal").moved(1.0, 0.5)], [0.4, 0.6]),
]
LEVELS = np.array([0.01, 0.2, 0.5, 0.75, 0.99])


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda distribution: distribution.name)
def test_quantile_inverts_the_distribution_function(distribution: Population) -> None:
    assert np.allclose(distribution.cdf(distribution.quantile(LEVELS)), LEVELS, atol=1e-9)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda distribution: distribution.name)
def test_density_is_the_derivative(distribution: Population) -> None:
    at = distribution.quantile(LEVELS)
    h = 1e-5 * float(distribution.quantile(0.75) - distribution.quantile(0.25))
    assert np.allclose(
        distribution.density(at), (distribution.cdf(at + h) - distribution.cdf(at - h)) / (2 * h), rtol=1e-4
    )


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda distribution: distribution.name)
def test_samples_follow_the_distribution(distribution: Population) -> None:
    """Kolmogorov-Smirnov: sqrt(n) D passes 2.7 by chance with probability 2 exp(-2 2.7^2) < 1e-6."""
    u = np.sort(distribution.cdf(distribution.sample(dice(8).generator(), 4000)))
    grid = np.arange(1, 4001) / 4000
    assert np.sqrt(4000) * max(np.max(grid - u), np.max(u - grid + 1 / 4000)) < 2.7


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda distribution: distribution.name)
def test_far_out_nothing_warns(distribution: Population) -> None:
    far = np.array([-1e3, -1.0, 0.0])
    assert np.all((distribution.cdf(far) >= 0) & (distribution.cdf(far) <= 1))
    assert np.all(distribution.density(far) >= 0)


def test_rounded_values_lie_on_the_grid_with_their_mass() -> None:
    distribution = rounded(population("normal"), 0.5)
    values = distribution.sample(dice(3).generator(), 100)
    assert np.all(values * 2 == np.round(values * 2))
    plain = population("normal")
    assert distribution.cdf(0.5) == distribution.cdf(0.7) == plain.cdf(0.75)


def test_settings_of_the_paper() -> None:
    assert hete_d().quantile(0.5) == pytest.approx(0.0, abs=1e-12)
    assert len(hete_d().populations) == 10
    assert homogeneous(population("cauchy")).quantile(0.75) == pytest.approx(1.0)
    sites = hete_l(population("normal"), dice(1).generator())
    again = hete_l(population("normal"), dice(1).generator())
    assert sites.quantile(0.3) == again.quantile(0.3)
    assert np.mean(sites.probabilities(sites.quantile(0.3))) == pytest.approx(0.3, abs=1e-12)


def test_shares_move_the_quantile() -> None:
    sites = evenly([population("normal"), population("normal").moved(5.0)])
    assert sites.quantile(0.5, [0.999, 0.001]) == pytest.approx(0.0, abs=0.01)
    assert [len(values) for values in sites.sample(dice(1).generator(), [3, 4])] == [3, 4]


def test_unknown_names_are_refused() -> None:
    with pytest.raises(BadInput, match="'gauss'"):
        population("gauss")

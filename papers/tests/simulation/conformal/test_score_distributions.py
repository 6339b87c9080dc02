"""Distributions of scores: quantiles invert distribution functions, with ties and gaps too."""

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce_papers.simulation.conformal.score_distributions import DISTRIBUTIONS, empirical, score_distribution

LEVELS = np.linspace(0.001, 0.999, 333)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_quantile_is_the_smallest_score_that_reaches_its_level(name: str) -> None:
    distribution = score_distribution(name)
    found = distribution.quantile(LEVELS)
    assert np.all(np.diff(found) >= 0)
    assert np.all(distribution.cdf(found) >= LEVELS - 1e-9)
    assert np.all(distribution.cdf(found - 1e-6) <= LEVELS + 1e-9)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_grids_end_at_the_public_score(name: str) -> None:
    edges = score_distribution(name).edges(50)
    assert len(edges) == 50
    assert score_distribution(name).cdf(edges[-1]) == pytest.approx(1 - 1 / 5000, abs=2e-4)
    assert np.all(np.diff(edges) > 0)


def test_rounded_scores_lie_on_their_steps() -> None:
    distribution = score_distribution("ten values")
    assert distribution.quantile([0.05, 0.1, 0.3, 0.31, 1.0]) == pytest.approx([0.1, 0.1, 0.3, 0.4, 1.0])
    assert distribution.cdf([0.0, 0.1, 0.1999, 0.3]) == pytest.approx([0.0, 0.1, 0.1, 0.3])


def test_an_empirical_distribution_counts_ties() -> None:
    distribution = empirical("few", [2.0, 2.0, 1.0, 5.0])
    assert distribution.cdf([1.0, 1.9, 2.0, 9.0]).tolist() == [0.25, 0.25, 0.75, 1.0]
    assert distribution.quantile([0.25, 0.26, 0.75, 0.76, 1.0]).tolist() == [1.0, 2.0, 2.0, 5.0, 5.0]


def test_an_unknown_distribution_is_refused() -> None:
    with pytest.raises(BadInput, match="no distribution of scores 'cauchy'"):
        score_distribution("cauchy")

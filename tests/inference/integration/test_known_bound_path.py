"""The path starts at pooling, ends at the target, and its shortest place does not depend on who else is asked."""

import math

import numpy as np
import pytest

from sottovoce.inference.common.measured import SiteEstimate, t_value
from sottovoce.inference.integration.known_bound import START, caution_of, folded_value, precisions_of, shortest, walk

TARGET = SiteEstimate(0.0, 2.0, 15.0)
SOURCES = [SiteEstimate(0.0, 1.0, 30.0), SiteEstimate(0.0, 4.0, 8.0), SiteEstimate(0.0, 0.5, math.inf)]


def test_both_ends() -> None:
    found = walk(precisions_of(TARGET, SOURCES, 0.95), np.array([[0.1, 1.0, 0.5]]), np.array([[START, 800.0]]))
    careful = [site.std_error**-2.0 / caution_of(site.df) for site in SOURCES]
    precision = np.array([TARGET.std_error**-2.0, *careful])
    assert [found.target[0, 0], *found.sources[0, 0]] == pytest.approx(precision / precision.sum())
    assert [found.target[0, 1], *found.sources[0, 1]] == [1.0, 0.0, 0.0, 0.0]
    assert found.half[0, 1] == pytest.approx(t_value(0.95, 15.0))
    assert found.bias[0, 1] == 0.0


def test_several_problems_are_solved_as_if_alone() -> None:
    sites = precisions_of(TARGET, SOURCES, 0.95)
    bounds = np.array([[0.0, 0.0, 0.0], [0.1, 5.0, 0.5], [math.inf, 1.0, math.inf], [9.0, 9.0, 9.0]])
    halves, places = shortest(sites, bounds)
    for row, half, place in zip(bounds, halves, places, strict=True):
        alone = shortest(sites, row[None, :])
        assert alone[0][0] == pytest.approx(half, rel=1e-12)
        assert alone[1][0] == pytest.approx(place, abs=1e-2)  # the valley is flat


def test_the_search_finds_the_valley() -> None:
    sites = precisions_of(TARGET, SOURCES, 0.95)
    bounds = np.array([[0.2, 0.7, 0.4]])
    everywhere = walk(sites, bounds, np.linspace(-20.0, 20.0, 50_001)[None, :]).half.min()
    assert shortest(sites, bounds)[0][0] <= everywhere * (1 + 1e-9)


@pytest.mark.parametrize("error", [1e-6, 1e-3])
def test_precise_sources_count_to_the_last(error: float) -> None:
    # With an exact source the weight that a bound of two errors leaves it is far from all and far from nothing.
    sites = precisions_of(SiteEstimate(0.0, 1.0), [SiteEstimate(0.0, error)], 0.95)
    bounds = np.array([[2.0]])
    half, place = shortest(sites, bounds)
    weights = np.linspace(0.0, 0.99, 10_000)
    lengths = (1 - weights) * folded_value(2 * weights / (1 - weights), 0.95)
    assert half[0] == pytest.approx(lengths.min(), rel=1e-5)
    assert 0.1 < walk(sites, bounds, place[:, None]).sources[0, 0, 0] < 0.5

"""Forecasts of answers against exact enumeration: cells that sites name, ranks of them, and counts."""

import itertools
import math

import numpy as np
import pytest
from scipy import special

from sottovoce.core.arrays import Floats
from sottovoce.protocol.selection.sparse_vector import SparseVector, sparse_vector
from sottovoce.server.conformal.coverage.counted import choose_counts, crowds_of, sum_distribution
from sottovoce.server.conformal.coverage.pooled import PooledChoice
from sottovoce.server.conformal.coverage.predicted import (
    expected_range,
    forecast,
    named,
    reached_by_cells,
    reached_by_counts,
    tails_of,
)


def enumerated(mechanism: SparseVector, tails: list[float]) -> list[float]:
    """Return the chance of each cell by adding up all counts of a site's scores in cells."""
    mass = -np.diff([1.0, *tails, 0.0])
    found = np.zeros(mechanism.cells)
    for counts in itertools.product(range(mechanism.size + 1), repeat=mechanism.cells):
        if sum(counts) == mechanism.size:
            ways = math.factorial(mechanism.size) / math.prod(map(math.factorial, counts))
            found += ways * float(np.prod(mass ** np.array(counts))) * mechanism.distribution(np.array(counts))
    return [float(each) for each in found]


@pytest.mark.parametrize(("size", "order", "epsilon"), [(6, 5, 4.0), (5, 7, 1.5), (7, 2, 2.0), (3, 3, 0.8)])
def test_the_cells_that_a_site_names(size: int, order: int, epsilon: float) -> None:
    mechanism, tails = sparse_vector(size, order, 5, epsilon), [0.7, 0.3, 0.3, 0.05]
    # noise of the threshold beyond exp(-8) is left out of a forecast
    np.testing.assert_allclose(named(mechanism, np.array(tails)), enumerated(mechanism, tails), atol=5e-4)


def test_a_rank_of_many_sites() -> None:
    mechanism, tails = sparse_vector(6, 5, 4, 3.0), np.array([0.6, 0.2, 0.0])
    one = np.cumsum(named(mechanism, tails))[:-1]
    for sites, rank in ((1, 1), (5, 2), (9, 9)):
        expected = [1 - special.bdtr(rank - 1, sites, chance) for chance in one]
        assert reached_by_cells(mechanism, sites, rank, tails).tolist() == pytest.approx(expected)


def test_counts_pass_from_the_highest_edge_down() -> None:
    sizes = [20] * 12 + [50] * 3
    choice, tails = choose_counts(sizes, [2.0] * 15, 4), np.array([0.4, 0.15, 0.08, 0.01])
    passed = [
        float(sum_distribution(crowd, np.array([tail])).failure(threshold)[0])
        for crowd, tail, threshold in zip(crowds_of(sizes, choice), tails, choice.thresholds, strict=True)
    ]
    expected = [math.prod(passed[edge:]) for edge in range(4)]
    assert reached_by_counts(choice, sizes, tails).tolist() == pytest.approx(expected)


def test_a_forecast_adds_up_coverage_spread_and_length() -> None:
    edges = np.geomspace(0.1, 10.0, 5)
    middle = forecast(lambda tails: np.array([0.0, 0.0, 1.0, 1.0, 1.0]), edges, 0.1)
    levels, logs = [], []
    for place in (0.85, 0.6, 0.35):
        tails, lengths = tails_of(edges, 0.1, place)
        levels.append(1 - tails[2])
        logs.append(math.log(lengths[2]))
    assert middle.coverage == pytest.approx(np.mean(levels))
    assert middle.spread == pytest.approx(np.std(levels))
    assert middle.distance == pytest.approx(math.sqrt(np.mean((np.array(levels) - 0.9) ** 2)))
    assert middle.length == pytest.approx(math.exp(np.mean(logs)))


def test_more_noise_is_expected_to_widen_the_range() -> None:
    edges, sizes, found = np.geomspace(1 / 64, 1.0, 12), [20] * 60, []
    for epsilon in (0.5, 4.0):
        choice = choose_counts(sizes, [epsilon] * 60, 12)

        def reached(tails: Floats, choice: PooledChoice = choice) -> Floats:
            return reached_by_counts(choice, sizes, tails)

        found.append(expected_range(reached, edges, 0.1, 0.95, 9))
    wide, narrow = found
    assert wide[0] <= narrow[0] < 0.9 < narrow[1] <= wide[1]
    assert wide[1] - wide[0] > narrow[1] - narrow[0]


def test_edges_below_zero_have_tails_too() -> None:
    tails, lengths = tails_of(np.array([-2.0, -1.0, 0.0, 1.0, 2.0]), 0.1, 0.6)
    assert (np.diff(tails) < 0).all()
    assert (lengths > 0).all()
    assert float(np.interp(1.0, lengths, np.array([-2.0, -1.0, 0.0, 1.0, 2.0]))) == pytest.approx(0.4)

"""Cells drawn for many sites at once are distributed like the draws that ship and like the mechanism's formula."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from scipy.special import chdtri

from sottovoce.client.conformal.draw import draw
from sottovoce.protocol.selection import Mechanism
from sottovoce.protocol.selection.exponential import exponential, paper
from sottovoce.protocol.selection.sparse_vector import sparse_vector
from sottovoce.sim import dice
from sottovoce_papers.simulation.conformal.agreement import against_distribution, against_each_other
from sottovoce_papers.simulation.conformal.selections import draw_cells, geometric

FALSE_ALARM = 1e-6
MECHANISMS: tuple[Callable[..., Mechanism], ...] = (sparse_vector, exponential, paper)
SITES = (
    np.array([30, 0, 5, 10, 4, 0, 1]),
    np.array([0, 0, 0, 50, 0, 0, 0]),
    np.array([49, 0, 0, 0, 0, 0, 1]),
)


@pytest.mark.parametrize(("make", "site", "epsilon"), list(product(MECHANISMS, range(len(SITES)), (0.3, 2.0))))
def test_cells_have_the_distribution_of_the_mechanism(
    make: Callable[..., Mechanism], site: int, epsilon: float
) -> None:
    mechanism, counts = make(50, 45, 7, epsilon), SITES[site]
    cells = draw_cells(mechanism, np.tile(counts, (40_000, 1)), dice(site).generator())
    found = np.bincount(cells, minlength=7)
    statistic, freedom = against_distribution(found, mechanism.distribution(counts))
    assert freedom >= 1
    assert statistic < chdtri(freedom, FALSE_ALARM)
    other, freedom = against_distribution(found, mechanism.distribution(SITES[site - 1]))
    assert other > chdtri(freedom, FALSE_ALARM)


@pytest.mark.parametrize("make", MECHANISMS)
def test_cells_have_the_distribution_of_the_draws_that_ship(make: Callable[..., Mechanism]) -> None:
    mechanism, counts, source = make(50, 44, 7, 1.0), SITES[0], dice(3)
    fast = draw_cells(mechanism, np.tile(counts, (20_000, 1)), dice(4).generator())
    shipped = [draw(mechanism, counts, source) for _ in range(3000)]
    statistic, freedom = against_each_other(np.bincount(fast, minlength=7), np.bincount(shipped, minlength=7))
    assert freedom >= 2
    assert statistic < chdtri(freedom, FALSE_ALARM)
    # another order is told apart: the test has power
    moved = draw_cells(make(50, 47, 7, 1.0), np.tile(counts, (20_000, 1)), dice(4).generator())
    other, freedom = against_each_other(np.bincount(moved, minlength=7), np.bincount(shipped, minlength=7))
    assert other > chdtri(freedom, FALSE_ALARM)


def test_rows_are_sites_of_their_own() -> None:
    mechanism = sparse_vector(50, 45, 7, 40.0)
    rows = np.stack([SITES[0], SITES[1], SITES[2]] * 5)
    assert draw_cells(mechanism, rows, dice(1).generator()).tolist() == [3, 3, 0] * 5


def test_geometric_noise_has_its_distribution() -> None:
    noise = geometric((1 << 64) // 3, (60_000,), dice(2).generator())
    distribution = np.append((2 / 3) * (1 / 3) ** np.arange(8), (1 / 3) ** 8)
    statistic, freedom = against_distribution(np.bincount(np.minimum(noise, 8), minlength=9), distribution)
    assert statistic < chdtri(freedom, FALSE_ALARM)

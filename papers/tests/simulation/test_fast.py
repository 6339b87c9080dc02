"""Replications: reproducible, independent of the threads, and centred at the truth."""

import numpy as np

from sottovoce.server.quantile.recursion import regression_root
from sottovoce.server.quantile.recursion import walk as sgd
from sottovoce.server.quantile.recursion.method import metropolis, ring
from sottovoce.server.quantile.recursion.walk import WalkState, WalkStudy
from sottovoce_papers.simulation.fast import Cell, replicate
from sottovoce_papers.simulation.populations import hete_d, homogeneous, population

NORMAL = homogeneous(population("normal"), 4)


def point(study: WalkStudy, state: WalkState) -> float:
    return regression_root.estimate(study, state).point


def test_the_seed_decides_and_the_threads_do_not() -> None:
    cell = Cell(NORMAL, 0.5, (0.9,) * 4, 200)
    one, two, other = (replicate(cell, point, 4, seed, threads) for seed, threads in ((1, 1), (1, 3), (2, 1)))
    assert one == two
    assert len(set(one + other)) == 8


def test_errors_are_those_of_the_theorem() -> None:
    """Errors over the bound are nearly normal: the mean of 40 passes 1, or their spread 2, with chance < 1e-6."""
    cell = Cell(NORMAL, 0.3, (0.9,) * 4, 600, start=-0.2)
    errors = (np.array(replicate(cell, point, 40, seed=5)) - cell.truth) / cell.bound
    assert abs(errors.mean()) < 1.0
    assert 0.4 < errors.std() < 2.0


def test_cells_know_truth_and_bound() -> None:
    cell = Cell(hete_d(), 0.5, (0.25,) * 10, 10_000)
    slope = (3 * 0.3989423 + 3 * 0.5 + 4 / np.pi) / 10
    assert abs(cell.truth) < 1e-12
    assert np.isclose(cell.bound, np.sqrt(16 / 4 / 10 / 10_000) / slope)


def test_absent_sites_and_graphs_run_too() -> None:
    part = Cell(NORMAL, 0.5, (0.9,) * 4, 100, participation=0.5)
    graph = Cell(NORMAL, 0.5, (0.9,) * 4, 100, mixing=metropolis(ring(4), NORMAL.shares))
    for cell in (part, graph):
        (found,) = replicate(cell, sgd.estimate, 1, seed=3)
        assert np.isfinite(found.point)
        assert found.n >= 250

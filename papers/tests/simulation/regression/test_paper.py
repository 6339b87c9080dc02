"""The fused recursion: the channel's distribution, the self-normaliser by its definition, and the paper's Table 12.

Statistical tests allow |z| up to 5.8 in some 100 comparisons: a false alarm in a million.
"""

import math
import os

import numpy as np
import pytest

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce_papers.simulation.regression import block, single, walk
from sottovoce_papers.simulation.regression.cell import Cell, printed
from sottovoce_papers.simulation.regression.covariates import evenly_spread
from sottovoce_papers.simulation.regression.dice import seeded
from sottovoce_papers.simulation.regression.paper import HORIZONS, replicate

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
TABLE_12 = {
    (0.5, 2, 2.0): (0.607, 0.320, 0.125, 0.0589, 0.0304, 0.0171, 0.00926),
    (0.75, 8, 0.5): (0.990, 0.986, 0.953, 0.872, 0.687, 0.462, 0.246),
    (0.75, 8, 16.0): (0.706, 0.426, 0.163, 0.0634, 0.0256, 0.0129, 0.00667),
    (0.75, 8, math.inf): (0.702, 0.420, 0.159, 0.0606, 0.0235, 0.0115, 0.00596),
}
CELLS = [
    Cell(0.75, 2, 1.0, 3, 1),
    Cell(0.5, 2, 2.0, 2, 1),
    Cell(0.75, 3, 2.0, 3, 2),
    Cell(0.3, 2, 3.0, 4, 3),
    Cell(0.75, 2, math.inf),
    Cell(0.75, 0, 1.0),
]


def gradients(cell: Cell, delta: Floats, n: int, seed: int) -> Floats:
    """Return decoded gradients at one point: each is the first step of a recursion with a step of one."""
    state = walk.begin(np.zeros(cell.p + 1), delta, seeded(seed))
    given = cell.kernel_input()._replace(scale=1.0 + walk.OFFSET)
    state.bounds[:] = np.array([[-np.inf], [np.inf]])
    kernel = single if cell.private and cell.s == 1 else block
    found = np.zeros((n, cell.p + 1))
    for i in range(n):
        state.point[:] = delta
        with np.errstate(over="ignore"):
            kernel.advance(state, given, 0, 1, False)
        found[i] = delta - state.point
    return found


@pytest.mark.parametrize("cell", CELLS, ids=str)
@pytest.mark.parametrize("far", [0.0, 0.4, 4.0])
def test_gradients_are_unbiased_wherever_the_point(cell: Cell, far: float) -> None:
    delta = far * np.array([1.0, -0.7, 0.5, 0.2])[: cell.p + 1]
    found = gradients(cell, delta, 8_000 if COMPILED else 300, seed=11)
    z = 2 * evenly_spread(1 << 12, cell.p) - 1 if cell.p else np.zeros((1, 0))
    x = np.column_stack([np.ones(len(z)), z])
    below = 1 / (1 + np.exp(-math.log(cell.tau / (1 - cell.tau)) - 2 * np.einsum("ij,j->i", x, delta)))
    expected = np.mean(x * (below - cell.tau)[:, None], axis=0)
    error = found.std(axis=0) / math.sqrt(len(found))
    assert np.all(np.abs(found.mean(axis=0) - expected) < 5.8 * error + 1e-4)


def second_moments(cell: Cell) -> tuple[float, float]:
    """Return E D_0^2 and E D_j^2 at the truth by the closed form for uniform covariates."""
    tau, q, variance = cell.tau, cell.q, cell.tau * (1 - cell.tau)
    if not cell.private:
        return variance, variance / 3
    step, centre, d = 2 / (q - 1), (1 - 2 * tau) / 2, cell.p + 1
    into, out = cell.kappa(True), cell.kappa(False)
    spread = (q + 1) / (3 * (q - 1))
    face = -(centre**2) + (into * (variance + centre**2) + (1 - into) / 4) / into**2
    mixed = (1 - into) * (tau**2 + (1 - tau) ** 2) * spread / 2
    within = (into * variance * (1 / 3 + step**2 / 6) + mixed) / into**2
    z = (np.arange(20_000) + 0.5) / 10_000 - 1
    slack = 0.0
    for side, chance in ((1 - tau, tau), (-tau, 1 - tau)):
        part = (side * z / cell.radius + 1) / step % 1
        slack += chance * float(np.mean(part * (1 - part))) * (step * cell.radius) ** 2
    alone = (out * (variance / 3 + slack) + (1 - out) * cell.radius**2 * spread) / out**2
    together = (cell.s - 1) / max(cell.p, 1)  # how often a slope's block has the face
    weight = d / cell.s
    return weight * face, weight * (together * within + (1 - together) * alone)


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_gradients_vary_as_the_closed_form_says(cell: Cell) -> None:
    found = gradients(cell, np.zeros(cell.p + 1), 8_000 if COMPILED else 300, seed=12) ** 2
    first, rest = second_moments(cell)
    expected = np.array([first] + [rest] * cell.p)
    error = found.std(axis=0) / math.sqrt(len(found))
    assert np.all(np.abs(found.mean(axis=0) - expected) < 5.8 * error + 1e-9)


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_the_self_normaliser_is_its_definition(cell: Cell) -> None:
    """Also where the projection stops the walk: the last start lies on the boundary."""
    n = 5_000 if COMPILED else 200
    for start in (np.zeros(cell.p + 1), np.full(cell.p + 1, 10.0)):
        state = walk.begin(cell.beta, start, seeded(3))
        kernel, given, points = single if cell.private and cell.s == 1 else block, cell.kernel_input(), []
        with np.errstate(over="ignore"):
            for i in range(n):
                kernel.advance(state, given, i, i + 1, True)
                points.append(state.point.copy())
        path = np.array(points)
        steps = np.arange(1, n + 1)[:, None]
        sums = np.cumsum(path, axis=0)
        apart = sums - steps * sums[-1] / n
        np.testing.assert_allclose(walk.average(state, n), path.mean(axis=0), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(walk.normaliser(state, n), apart.T @ apart / n**2, rtol=1e-8, atol=1e-10)
        assert np.all(np.abs(path + cell.beta) <= 10.0 + 1e-12)


def test_the_power_of_the_step_is_interpolated_closely() -> None:
    for i in (0, 1, 4095, 4096, 4097, 4111, 10_000, 299_999_999):
        end, anchor, base, slope = walk.segment(i)
        assert i < end <= i + walk.SPAN
        assert abs((base + slope * (i + 1 - anchor)) / (i + 1) ** 0.65 - 1) < 2e-6


@pytest.mark.parametrize("cell", CELLS[:4], ids=str)
def test_neither_threads_nor_looks_change_a_replication(cell: Cell) -> None:
    long = 5_003 if COMPILED else 103
    one = replicate(cell, (long,), 3, seed=4, threads=1)
    two = replicate(cell, (37, 64, long), 3, seed=4, threads=3)
    other = replicate(cell, (long,), 3, seed=5)
    np.testing.assert_array_equal(one.deviations[:, -1], two.deviations[:, -1])
    np.testing.assert_array_equal(one.normalisers[:, -1], two.normalisers[:, -1])
    assert not np.any(one.deviations == other.deviations)


def test_horizons_must_ascend() -> None:
    with pytest.raises(BadInput, match="ascend"):
        replicate(CELLS[0], (100, 50))


def distances(cell: tuple[float, int, float], normalised: bool, looks: int, replications: int, seed: int) -> Floats:
    """Return by how many standard errors, the paper's 500 replications included, mean errors differ from Table 12."""
    horizons = HORIZONS[:looks]
    errors = replicate(printed(*cell, normalised), horizons, replications, seed, normaliser=False).errors
    error = errors.std(axis=0) * math.sqrt(1 / replications + 1 / 500)
    return np.asarray((errors.mean(axis=0) - np.array(TABLE_12[cell][:looks])) / error)


@pytest.mark.parametrize("cell", [(0.5, 2, 2.0), (0.75, 8, math.inf)])
def test_table_12_needs_the_normalised_step(cell: tuple[float, int, float]) -> None:
    looks, replications = (5, 80) if COMPILED else (1, 10)
    assert np.abs(distances(cell, True, looks, replications, seed=21)).max() < 5.8
    if COMPILED:
        assert np.abs(distances(cell, False, 2, replications, seed=22)).max() > 5.8


@pytest.mark.slow
@pytest.mark.parametrize("cell", TABLE_12, ids=str)
def test_table_12_reproduces_up_to_a_million(cell: tuple[float, int, float]) -> None:
    assert np.abs(distances(cell, True, 7, 200, seed=23)).max() < 5.8


@pytest.mark.slow
def test_self_normalised_intervals_cover_at_the_median() -> None:
    """At (.5, 2, 2) and 1e6 reports 95 % intervals cover .95 less at most .02, within 5 standard errors of 400."""
    ratios = replicate(printed(0.5, 2, 2.0), (1_000_000,), 400, seed=24).ratios()[:, 0]
    covered = (np.abs(ratios) < 6.7473).mean(axis=0)
    margin = 5 * math.sqrt(0.05 * 0.95 / 400)
    assert np.all(covered > 0.93 - margin)
    assert np.all(covered < 0.97 + margin)

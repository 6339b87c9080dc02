"""Cells: the paper's channels and steps, and decoding that is unbiased whatever the block."""

import math

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce_papers.simulation.regression.cell import BUDGETS, TABLE_2, Cell, printed


@pytest.mark.parametrize(
    ("tau", "p", "epsilon", "plain", "normalised"),
    [
        (0.5, 2, 2.0, 4.40, 2.54),
        (0.75, 8, math.inf, 10.0, 2.22),
        (0.75, 8, 16.0, 9.86, 2.19),
        (0.75, 8, 0.5, 0.816, 0.181),
    ],
)
def test_steps_are_those_of_the_notes(tau: float, p: int, epsilon: float, plain: float, normalised: float) -> None:
    assert np.isclose(printed(tau, p, epsilon, normalised=False).scale, plain, rtol=5e-3)
    assert np.isclose(printed(tau, p, epsilon).scale, normalised, rtol=5e-3)


def test_every_printed_channel_decodes_without_bias() -> None:
    """Truth with probability kappa, else any letter: the mean of the decoded value is the coordinate over pi."""
    for (tau, p), channels in TABLE_2.items():
        for epsilon, (q, s) in zip(BUDGETS, channels, strict=True):
            cell = Cell(tau, p, epsilon, q, s)
            given, weight = cell.kernel_input(), (p + 1) / s
            faces, grid = np.array([-tau, 1 - tau]), np.linspace(-1, 1, q)
            for decoded, value, kappa in (
                (given.face, faces, given.truth[1]),
                (given.within.ravel(), np.outer(faces, grid).ravel(), given.truth[1]),
                (given.alone, max(tau, 1 - tau) * grid, given.truth[0]),
            ):
                mean = kappa * decoded + (1 - kappa) * decoded.mean()
                np.testing.assert_allclose(mean, weight * value, atol=1e-12 * weight / kappa)


def test_the_chance_of_the_truth_is_the_papers() -> None:
    cell = Cell(0.5, 3, 1.5, 3, 2)
    assert np.isclose(cell.kappa(True), math.expm1(1.5) / (math.exp(1.5) + 5))
    assert np.isclose(cell.kappa(False), math.expm1(1.5) / (math.exp(1.5) + 8))


@pytest.mark.parametrize("bad", [(1.0, 2, 1.0, 2, 1), (0.5, 2, 0.0, 2, 1), (0.5, 2, 1.0, 1, 1), (0.5, 2, 1.0, 2, 4)])
def test_impossible_cells_are_refused(bad: tuple[float, int, float, int, int]) -> None:
    with pytest.raises(BadInput):
        Cell(*bad)


def test_cells_off_the_grid_are_refused() -> None:
    with pytest.raises(BadInput, match="not on the paper's grid"):
        printed(0.6, 2, 1.0)

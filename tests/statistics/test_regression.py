"""The promises of the default regression, through the production path, people drawn afresh each time."""

import math

import numpy as np
import pytest
from benchmarks.regression_cells import Row, run_cell
from benchmarks.regression_errors import compare
from scipy import special

from sottovoce_papers.simulation.regression.catalogue import HELD_OUT, design
from sottovoce_papers.simulation.regression.default import Setting
from sottovoce_papers.simulation.regression.designs import paper

pytestmark = pytest.mark.slow

FALSE_ALARM = 1e-6


def least(replications: int, coverage: float) -> float:
    """Return a share of runs that a true coverage falls short of only with the false-alarm rate."""
    hits = np.arange(replications + 1)
    below = special.bdtr(hits, replications, coverage)
    return float(np.searchsorted(below, FALSE_ALARM)) / replications


@pytest.mark.parametrize(
    ("tau", "p", "epsilon", "longest"), [(0.75, 2, 2.0, 1.15), (0.5, 5, 4.0, 1.35), (0.75, 8, 2.0, 1.35)]
)
def test_intervals_of_the_named_cells(tau: float, p: int, epsilon: float, longest: float) -> None:
    replications = 200
    (row,) = run_cell(Setting(paper(p), tau, epsilon), [1_000_000], replications, seed=11)
    given = round(row.ready * replications)
    assert row.ready > 0.9
    assert row.coverage.min() >= least(given, 0.93)
    # the mean over coefficients is what 200 runs can pin down: runs, not coefficients, are independent
    assert 0.93 <= row.coverage.mean() <= 0.975
    assert row.length.max() <= longest


@pytest.mark.parametrize("name", HELD_OUT)
@pytest.mark.parametrize(("tau", "epsilon"), [(0.75, 4.0), (0.1, 4.0)])
def test_intervals_of_designs_that_were_not_tuned_on(name: str, tau: float, epsilon: float) -> None:
    replications = 60
    row: Row
    (row,) = run_cell(Setting(design(name), tau, epsilon), [1_000_000], replications, seed=12)
    given = round(row.ready * replications)
    if name in ("chain-cauchy", "many-correlated"):  # six and eight covariates, alike to .8 and .6: refused
        assert given <= replications // 4
        return
    assert row.ready > 0.5
    assert row.coverage.min() >= least(given, 0.92)


def test_the_mean_error_beats_the_papers_schedule_where_it_is_slow() -> None:
    right, wrong = ((1.0, 1.0),), ((2.0, 1.0), (0.5, 1.0), (1.0, 2.0), (1.0, 0.5))
    people = (1000, 3000, 10_000)
    assert min(compare(0.75, 8, math.inf, people, 80, right + wrong)) >= 2.5
    assert min(compare(0.75, 2, 2.0, people, 80, right + wrong)) >= 1.7
    assert min(compare(0.5, 8, 0.5, people, 80, right)) >= 1 / 1.05
    # where people tell nothing, a size wrong by 2 costs up to 11 %, not the 5 % wanted: this guards against worse
    assert min(compare(0.5, 8, 0.5, people, 80, wrong)) >= 0.87

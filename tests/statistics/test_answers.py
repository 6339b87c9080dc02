"""Ties, unequal sites, several levels and differences cover through the public calls; minutes, so `slow`.

With 600 replications a count as low as the bound has a chance below 1e-6 if the coverage is 95 %.
"""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import pytest
from benchmarks.answers import difference, levels, rounded, unequal
from scipy.special import bdtr

REPLICATIONS = 600


@pytest.mark.slow
@pytest.mark.parametrize("case", [rounded, unequal, levels, difference])
def test_the_answer_covers(case: Callable[[int], bool]) -> None:
    with ProcessPoolExecutor(2) as pool:
        covered = sum(pool.map(case, range(50_000, 50_000 + REPLICATIONS), chunksize=8))
    assert float(bdtr(covered, REPLICATIONS, 0.95)) > 1e-6

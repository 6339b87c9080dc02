"""The paper's private algorithm: its choice by search through a table, and the coverage its theorem promises."""

import math

import numpy as np
import pytest
from scipy.special import bdtr, gammaln

from sottovoce.protocol.selection.exponential import paper
from sottovoce.server.conformal.coverage.equal import GAMMAS, correction, paper_private
from sottovoce.server.conformal.coverage.table import conformal_coverage


@pytest.mark.parametrize(("sites", "scores", "epsilon"), [(5, 200, 10.0), (5, 200, 2.0), (10, 60, 8.0)])
def test_it_is_the_best_of_the_table(sites: int, scores: int, epsilon: float) -> None:
    table = conformal_coverage(sites, scores)
    best = 2.0
    for gamma in GAMMAS:
        level = 0.9 / (1 - 0.1 * gamma)
        place = np.unravel_index(np.argmin(np.where(table >= level, table, 2)), table.shape)
        added = math.ceil(2 / epsilon * math.log(100 / (1 - (1 - 0.1 * gamma) ** (1 / sites))))
        assert added == correction(sites, 0.1, epsilon, 100, gamma)
        if table[place] >= level and place[0] + 1 + added < scores:
            best = min(best, float(table[place[0] + added, place[1]]))
    found = paper_private(sites, scores, 0.1, epsilon, 100)
    assert found is not None
    assert found.mean == pytest.approx(best, abs=1e-9)
    assert found.mean == pytest.approx(table[found.order - 1, found.rank - 1], abs=1e-9)
    assert found.q == found.order / scores


@pytest.mark.parametrize(("scores", "epsilon"), [(200, 0.5), (200, 1.0), (20, 3.0), (4, 10.0), (1, 10.0)])
def test_where_nothing_is_feasible_it_says_so(scores: int, epsilon: float) -> None:
    assert paper_private(5, scores, 0.1, epsilon, 100) is None


@pytest.mark.parametrize(("sites", "scores", "epsilon"), [(5, 200, 5.0), (10, 1000, 1.0)])
def test_the_theorem_holds_with_room_to_spare(sites: int, scores: int, epsilon: float) -> None:
    pair = paper_private(sites, scores, 0.1, epsilon, 101)
    assert pair is not None
    failure = paper(scores, pair.order, 101, epsilon).failure(np.arange(scores + 1) - pair.order)
    levels, counts = (np.arange(4000) + 0.5) / 4000, np.arange(scores + 1)
    ways = gammaln(scores + 1) - gammaln(counts + 1) - gammaln(scores - counts + 1)
    distribution = np.exp(ways + counts * np.log(levels)[:, None] + (scores - counts) * np.log1p(-levels)[:, None])
    coverage = float(bdtr(pair.rank - 1, sites, np.minimum(distribution @ failure, 1)).mean())
    assert 0.9 < coverage < pair.mean + 1e-6

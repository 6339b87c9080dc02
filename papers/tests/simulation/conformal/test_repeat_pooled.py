"""Pooled calibrations at once have the distribution of those that ship."""

import math

import numpy as np
import pytest
from scipy.special import chdtri

from sottovoce.client.record import Records
from sottovoce.local.conformal.one_round import ask_sum, ask_tallies
from sottovoce.server.conformal.coverage.pooled_modes import choose_aggregate, choose_local
from sottovoce.sim import dice
from sottovoce_papers.simulation.conformal.agreement import against_each_other
from sottovoce_papers.simulation.conformal.repeat import Repeated
from sottovoce_papers.simulation.conformal.repeat_pooled import repeat_aggregate, repeat_local
from sottovoce_papers.simulation.conformal.score_distributions import score_distribution

FALSE_ALARM = 1e-6
DISTRIBUTION = score_distribution("exponential")


def agree(fast: Repeated, slow: list[int], bins: int) -> bool:
    """Tell whether two paths name the cells of a grid equally often."""
    edges = np.append(DISTRIBUTION.edges(bins), np.inf)
    one = np.bincount(np.searchsorted(edges, fast.thresholds), minlength=bins + 1)
    statistic, freedom = against_each_other(one, np.bincount(slow, minlength=bins + 1))
    assert freedom >= 1
    return statistic < float(chdtri(freedom, FALSE_ALARM))


def test_one_record_one_question() -> None:
    sizes, epsilons, bins = [120, 200], [4.0, 3.0], 6
    choice, edges = choose_local(sizes, epsilons, bins), DISTRIBUTION.edges(bins)
    scores, source = dice(1).generator(), dice(2)
    slow = []
    for _ in range(200):
        records = [Records(DISTRIBUTION.quantile(scores.random(size))) for size in sizes]
        slow.append(ask_tallies(records, epsilons, edges, choice, source.split(1)[0]))
    assert agree(repeat_local(choice, DISTRIBUTION, edges, 20_000, 3), slow, bins)
    assert not agree(repeat_local(choice, score_distribution("half-normal"), edges, 200, 3), slow, bins)


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_a_secure_sum(epsilon: float) -> None:
    sizes, bins = [100, 150, 150], 8
    choice, edges = choose_aggregate(sum(sizes), 3, epsilon, bins), DISTRIBUTION.edges(bins)
    scores, source = dice(4).generator(), dice(5)
    slow = []
    for _ in range(500):
        records = [Records(DISTRIBUTION.quantile(scores.random(size))) for size in sizes]
        slow.append(ask_sum(records, [epsilon] * 3, edges, choice, source.split(1)[0]))
    assert agree(repeat_aggregate(choice, sum(sizes), DISTRIBUTION, edges, 20_000, 6), slow, bins)
    assert not agree(repeat_aggregate(choice, sum(sizes), score_distribution("half-normal"), edges, 500, 6), slow, bins)

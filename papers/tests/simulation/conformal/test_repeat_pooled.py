"""Pooled calibrations at once have the distribution of those that ship."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import chdtri

from sottovoce.client.conformal.shares import SharingSite
from sottovoce.client.conformal.site import CoverageSite
from sottovoce.client.door import AnsweringSite, Door
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.core.arrays import Floats
from sottovoce.local.runner import run
from sottovoce.protocol.messages import Study
from sottovoce.server.conformal.coverage.counted import choose_counts
from sottovoce.server.conformal.coverage.pooled_modes import choose_aggregate, choose_local
from sottovoce.server.conformal.plan import Participants, SiteFacts
from sottovoce.server.conformal.pooled import CountsMethod, PooledMethod, SumMethod, TallyMethod
from sottovoce.server.conformal.settings import ConformalSettings
from sottovoce.sim import dice
from sottovoce_papers.simulation.conformal.agreement import against_each_other
from sottovoce_papers.simulation.conformal.repeat import Repeated
from sottovoce_papers.simulation.conformal.repeat_pooled import repeat_aggregate, repeat_counts, repeat_local
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


def cell_of(method: PooledMethod[Any], sites: list[AnsweringSite], edges: Floats) -> int:
    """Return the cell that the path that ships names."""
    return int(np.searchsorted(edges, run(method, [Door(site, b"") for site in sites]).value))


def asked(sizes: list[int], epsilons: list[float], mechanism: str) -> tuple[ConformalSettings, Participants]:
    facts = tuple(SiteFacts(*fact) for fact in zip(sizes, epsilons, strict=True))
    settings = ConformalSettings(0.1, "marginal", 0.1, "closest", 1, False, mechanism)
    return settings, Participants(tuple(f"site {i}" for i in range(len(sizes))), facts)


def test_one_record_one_question() -> None:
    sizes, epsilons, bins = [120, 200], [4.0, 3.0], 6
    choice, edges = choose_local(sizes, epsilons, bins), DISTRIBUTION.edges(bins)
    method = TallyMethod(choice, *asked(sizes, epsilons, "local"), tuple(edges.tolist()))
    scores, source = dice(1).generator(), dice(2)
    slow = []
    for _ in range(200):
        records = [Records(DISTRIBUTION.quantile(scores.random(size))) for size in sizes]
        own = source.split(1)[0].split(len(sizes))
        sites: list[AnsweringSite] = [Site(r, Study(0.5, e), d) for r, e, d in zip(records, epsilons, own, strict=True)]
        slow.append(cell_of(method, sites, edges))
    assert agree(repeat_local(choice, DISTRIBUTION, edges, 20_000, 3), slow, bins)
    assert not agree(repeat_local(choice, score_distribution("half-normal"), edges, 200, 3), slow, bins)


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_a_secure_sum(epsilon: float) -> None:
    sizes, bins = [100, 150, 150], 8
    choice, edges = choose_aggregate(sum(sizes), 3, epsilon, bins), DISTRIBUTION.edges(bins)
    method = SumMethod(choice, *asked(sizes, [epsilon] * 3, "aggregate"), tuple(edges.tolist()))
    scores, source = dice(4).generator(), dice(5)
    slow = []
    for _ in range(500):
        records = [Records(DISTRIBUTION.quantile(scores.random(size))) for size in sizes]
        own = source.split(1)[0].split(len(sizes))
        sites: list[AnsweringSite] = [SharingSite(r, 3, epsilon, d) for r, d in zip(records, own, strict=True)]
        slow.append(cell_of(method, sites, edges))
    assert agree(repeat_aggregate(choice, sum(sizes), DISTRIBUTION, edges, 20_000, 6), slow, bins)
    assert not agree(repeat_aggregate(choice, sum(sizes), score_distribution("half-normal"), edges, 500, 6), slow, bins)


def test_a_count_a_site() -> None:
    sizes, epsilons, bins = [20] * 9 + [40] * 3, [2.0] * 6 + [1.0] * 5 + [math.inf], 4
    choice, edges = choose_counts(sizes, epsilons, bins), DISTRIBUTION.edges(bins)
    method = CountsMethod(choice, *asked(sizes, epsilons, "counts"), tuple(edges.tolist()))
    scores, source = dice(7).generator(), dice(8)
    slow = []
    for _ in range(500):
        records = [Records(DISTRIBUTION.quantile(scores.random(size))) for size in sizes]
        own = source.split(1)[0].split(len(sizes))
        sites: list[AnsweringSite] = [CoverageSite(r, e, d) for r, e, d in zip(records, epsilons, own, strict=True)]
        slow.append(cell_of(method, sites, edges))
    assert agree(repeat_counts(choice, sizes, DISTRIBUTION, edges, 20_000, 9), slow, bins)
    assert not agree(repeat_counts(choice, sizes, score_distribution("half-normal"), edges, 500, 9), slow, bins)

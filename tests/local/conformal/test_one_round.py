"""One round: what sites say reaches the server as it was said, once."""

import math

import numpy as np
import pytest

from sottovoce.client.conformal.site import CalibrationSite
from sottovoce.client.record import Records
from sottovoce.core.errors import BadInput
from sottovoce.local.conformal.one_round import ask, ask_sum, ask_tallies
from sottovoce.protocol.calibration import CellQuery, OrderQuery
from sottovoce.server.conformal.coverage.pooled_modes import choose_aggregate, choose_local
from sottovoce.sim.randomness import dice

LOW, HIGH = np.arange(1.0, 11.0), np.arange(101.0, 111.0)


def test_answers_come_back_in_the_order_of_the_sites() -> None:
    sites = [CalibrationSite(Records(values.copy()), math.inf) for values in (HIGH, LOW)]
    assert ask(sites, [OrderQuery((1, 10)), OrderQuery((9, 11))]) == [(101.0, 110.0), (9.0, math.inf)]


def test_a_cell_stands_for_its_upper_edge() -> None:
    edges = (5.0, 10.0, 50.0)
    sites = [CalibrationSite(Records(values.copy()), 40.0, dice(1)) for values in (LOW, LOW, HIGH)]
    queries = [CellQuery("sparse-vector", order, 40.0, edges) for order in (1, 8, 5)]
    # with so large a budget there is next to no noise
    assert ask(sites, queries) == [(5.0,), (10.0,), (math.inf,)]


def test_open_and_private_sites_side_by_side() -> None:
    sites = [CalibrationSite(Records(LOW.copy()), math.inf), CalibrationSite(Records(LOW.copy()), 40.0, dice(2))]
    assert ask(sites, [OrderQuery((3,)), CellQuery("exponential", 3, 40.0, (2.5, 3.5, 9.0))]) == [(3.0,), (3.5,)]


def test_every_site_has_a_query() -> None:
    site = CalibrationSite(Records(LOW.copy()), math.inf)
    with pytest.raises(ValueError, match="argument"):
        ask([site], [])


def test_a_second_round_is_refused() -> None:
    sites = [CalibrationSite(Records(LOW.copy()), math.inf)]
    first = ask(sites, [OrderQuery((3,))])
    assert ask(sites, [OrderQuery((3,))]) == first
    with pytest.raises(BadInput, match="has sent its one message"):
        ask(sites, [OrderQuery((4,))])


def even(n: int) -> Records:
    return Records((np.arange(n) + 0.5) / n)


def test_sums_of_all_sites_find_the_cell_of_the_quantile() -> None:
    edges = np.linspace(0.05, 1.0, 20)
    records = [even(40_000), even(20_000), Records(np.array([0.5, 0.6]))]  # the last has too few for all questions
    local = choose_local([40_000, 20_000, 2], [8.0, 8.0, 8.0], len(edges))
    assert edges[ask_tallies(records, [8.0] * 3, edges, local, dice(1))] in (edges[17], edges[18])
    together = choose_aggregate(60_002, 3, 8.0, len(edges))
    assert edges[ask_sum(records, [8.0] * 3, edges, together, dice(2))] in (edges[17], edges[18])

"""One round in this process: what sites say, open and private together, and the two sums."""

import math

import numpy as np

from sottovoce.client.calibration.site import CalibrationSite
from sottovoce.client.record import Records
from sottovoce.design.coverage.pooled_aggregate import choose_aggregate
from sottovoce.design.coverage.pooled_local import choose_local
from sottovoce.engine.one_round import ask, ask_sum, ask_tallies
from sottovoce.protocol.calibration import CellQuery, OrderQuery
from sottovoce.sim.randomness import dice

EDGES = np.linspace(0.05, 1.0, 20)
LINE = tuple(EDGES.tolist())


def even(n: int) -> Records:
    return Records((np.arange(n) + 0.5) / n)


def test_open_and_private_sites_answer_in_one_round() -> None:
    sites = [CalibrationSite(even(1000), math.inf), CalibrationSite(even(1000), 20.0, dice(1))]
    heard = ask(sites, [OrderQuery((1, 900)), CellQuery("sparse-vector", 900, 20.0, LINE)])
    assert heard[0] == (0.0005, 0.8995)
    assert heard[1][0] in (EDGES[17], EDGES[18])  # noise of a fraction of a score, at the edge 0.9


def test_a_cell_without_an_upper_edge_is_infinity() -> None:
    site = CalibrationSite(Records(np.full(100, 7.0)), 20.0, dice(1))
    assert ask([site], [CellQuery("sparse-vector", 90, 20.0, LINE)]) == [(math.inf,)]


def test_sums_of_all_sites_find_the_cell_of_the_quantile() -> None:
    records = [even(40_000), even(20_000), Records(np.array([0.5, 0.6]))]  # the last has too few for all questions
    local = choose_local([40_000, 20_000, 2], [8.0, 8.0, 8.0], len(EDGES))
    assert EDGES[ask_tallies(records, [8.0] * 3, EDGES, local, dice(1))] in (EDGES[17], EDGES[18])
    together = choose_aggregate(60_002, 3, 8.0, len(EDGES))
    assert EDGES[ask_sum(records, EDGES, together, dice(2))] in (EDGES[17], EDGES[18])

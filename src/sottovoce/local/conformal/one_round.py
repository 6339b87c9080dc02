"""One round with calibration sites in this process: each answers one query, and the server counts the votes."""

from collections.abc import Sequence

import numpy as np

from sottovoce.client.conformal.questions import answer_above, questioned_site
from sottovoce.client.conformal.shares import SharingSite
from sottovoce.client.conformal.site import CalibrationSite
from sottovoce.client.record import Records
from sottovoce.core.arrays import Floats
from sottovoce.core.random_source import RandomSource
from sottovoce.protocol.calibration import CellQuery, OrderQuery, OrderReport
from sottovoce.protocol.selection.base import upper_edge
from sottovoce.server.conformal.coverage.pooled import PooledChoice
from sottovoce.server.conformal.tail_rule import add_messages, cell_of_sum, cell_of_tallies


def ask(sites: Sequence[CalibrationSite], queries: Sequence[OrderQuery | CellQuery]) -> list[tuple[float, ...]]:
    """Return what each site's message says: scores of the asked ranks, or the upper edge of a cell."""
    heard: list[tuple[float, ...]] = []
    for site, query in zip(sites, queries, strict=True):
        report = site.answer(query)
        if isinstance(report, OrderReport):
            heard.append(report.values)
        else:
            edges = query.edges if isinstance(query, CellQuery) else ()
            heard.append((upper_edge(np.array(edges), report.cell),))
    return heard


def ask_tallies(
    records: Sequence[Records], epsilons: Sequence[float], edges: Floats, choice: PooledChoice, dice: RandomSource
) -> int:
    """Have every record answer one question, and return the cell that the tallies point at."""
    own = dice.split(len(records))
    sites = [questioned_site(*each) for each in zip(records, epsilons, own, strict=True)]
    # a site with fewer scores than there are questions asks none of them
    ones = [answer_above(site, edges.tolist()).ones if site.size >= len(edges) else (0,) * len(edges) for site in sites]
    return cell_of_tallies(ones, choice)


def ask_sum(
    records: Sequence[Records], epsilons: Sequence[float], edges: Floats, choice: PooledChoice, dice: RandomSource
) -> int:
    """Add the noisy counts of all sites, and return the cell that the sum points at."""
    if choice.noise is None:
        raise ValueError("this choice is not for a sum")
    own = dice.split(len(records))
    noise, given = choice.noise, zip(records, epsilons, own, strict=True)
    sites = [SharingSite(scores, noise, budget, die) for scores, budget, die in given]
    return cell_of_sum(add_messages([site.answer(edges.tolist()) for site in sites]), choice)

"""Which private mechanism, and which edges, come closest to what is asked: decided from public numbers alone.

Two mechanisms protect the same against the same: a cell that each site names (the sparse vector), and noisy counts of
many sites at one edge each. Which is better depends on how many sites there are, how many scores each has and what a
record may cost. The forecast of `coverage.predicted` decides, by the measure of rule "closest": the root mean square of
coverage from 1 - alpha; for a training-conditional guarantee, which rules out too little, the smaller mean. A choice
that is made without a look at the scores costs nothing, and whatever is chosen keeps its promise.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import Infeasible
from sottovoce.protocol.selection.sparse_vector import sparse_vector
from sottovoce.server.conformal.coverage.counted import choose_counts, edges_for
from sottovoce.server.conformal.coverage.pooled import Guarantee
from sottovoce.server.conformal.coverage.predicted import Forecast, forecast, reached_by_cells, reached_by_counts
from sottovoce.server.conformal.plan import SiteFacts, chosen, useless
from sottovoce.server.conformal.public_grid import PublicGrid
from sottovoce.server.conformal.settings import AUTO, COUNTED, SCANNED, ConformalSettings

CELLS = (12, 24, 48, 96)  # edges tried for the sparse vector: fewer give noise fewer chances, more are finer
MOST_CELLS = 1_000  # of a given grid in a forecast: the time to compute it grows with them
FEW = 5  # edges of counts: fewer are not weighed, for a forecast knows little of sets between them


class WeighedMechanism(NamedTuple):
    """Settings with a mechanism, its edges, and what is to be expected of them, if anything."""

    settings: ConformalSettings
    line: tuple[float, ...]
    expected: Forecast | None


@functools.lru_cache(maxsize=512)
def weighed(
    settings: ConformalSettings, grid: PublicGrid, facts: tuple[SiteFacts, ...], alike: SiteFacts
) -> WeighedMechanism:
    """Return the mechanism and the edges that come closest; where nothing promises a finite set, cells say so.

    ``alike`` is a site to forecast for in place of these.
    """
    cells, counts = (replace(settings, mechanism=name) for name in (SCANNED, COUNTED))
    tried = [grid.thinned(MOST_CELLS)] if grid.fixed else [grid.ratios(count) for count in CELLS]
    most = edges_for([fact.size for fact in facts], [fact.epsilon for fact in facts], settings.alpha)
    found = []
    # half as many where a threshold is to be sure; too few tell nothing of where they are
    for number in sorted({most, min(max(most // 2, 6), most)}, reverse=True):
        line = grid.thinned(number) if grid.fixed else grid.ratios(number)
        if settings.mechanism == COUNTED or len(line) >= FEW:
            found.append(WeighedMechanism(counts, tuple(line.tolist()), _of_counts(counts, facts, line)))
    if settings.mechanism == AUTO:
        # of equals the first is taken, and cells of a fine grid where nothing is expected of any
        lines = [grid.steps(SCANNED)] if grid.fixed else tried
        every = [
            WeighedMechanism(cells, tuple(line.tolist()), _of_cells(cells, alike, len(facts), each))
            for line, each in zip(lines, tried, strict=True)
        ]
        found = [*reversed(every), *found]
    return min(found, key=_distance)


def _distance(settled: WeighedMechanism) -> float:
    """Return how far the coverage is expected to be from what is wanted; infinite if nothing is promised."""
    if settled.expected is None:
        return math.inf
    return settled.expected.coverage if settled.settings.conditional else settled.expected.distance


def _of_cells(settings: ConformalSettings, alike: SiteFacts, sites: int, line: Floats) -> Forecast | None:
    """Return what to expect where all sites name cells; None where they promise nothing."""
    kinds, choice = chosen((alike,), (sites,), settings, 2)
    if choice is None or useless(kinds, (sites,), choice, settings):
        return None
    mechanism = sparse_vector(alike.size, choice.orders[0][0], len(line) + 1, alike.epsilon)
    return forecast(lambda tails: reached_by_cells(mechanism, sites, choice.rank, tails), line, settings.alpha)


def _of_counts(settings: ConformalSettings, facts: Sequence[SiteFacts], line: Floats) -> Forecast | None:
    """Return what to expect of counts; None where they promise nothing."""
    guarantee: Guarantee = "training-conditional" if settings.conditional else "marginal"
    sizes, epsilons = [fact.size for fact in facts], [fact.epsilon for fact in facts]
    try:
        choice = choose_counts(sizes, epsilons, len(line), settings.alpha, guarantee, settings.delta)
    except Infeasible:
        return None
    return forecast(lambda tails: reached_by_counts(choice, sizes, tails), line, settings.alpha)

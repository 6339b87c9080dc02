"""The paper's recursion in one process: the search by messages, then all walks in one compiled kernel.

Bit for bit `server.quantile.recursion.method.RecursionMethod` on the same dice.
"""

from collections.abc import Callable, Sequence

from sottovoce.client.door import Door
from sottovoce.client.quantile.site import Site
from sottovoce.core.random_source import RandomSource
from sottovoce.local import runner
from sottovoce.local.quantile import compiled_walk
from sottovoce.local.quantile.participation import Coin
from sottovoce.local.quantile.source import Source
from sottovoce.server.quantile.plan import QuantilePlan
from sottovoce.server.quantile.recursion import walk
from sottovoce.server.quantile.recursion.method import Footprints, Recursion, finished, search_of, walk_study
from sottovoce.server.quantile.recursion.walk import WalkState
from sottovoce.server.quantile.result import QuantileResult


def run_recursion(
    plan: QuantilePlan,
    recursion: Recursion,
    method: str,
    level: float,
    sites: Sequence[Site],
    doors: Sequence[Door],
    randomness: RandomSource | None,
    progress: Callable[[int], None] | None,
) -> QuantileResult:
    """Search, then walk over all records that are left."""
    search = search_of(plan)
    log = runner.run_to_end(search, doors, progress)
    found, searched = search.outcome(log), log.rounds
    study = walk_study(plan, found, recursion, method, searched, [site.size - site.spent for site in sites])
    seen = [Footprints()]

    def watch(state: WalkState) -> None:
        seen[0] = seen[0].after(state)

    sources = [Source(*site.hand_over(searched + 1)) for site in sites]
    state = compiled_walk.run(study, sources, Coin(study, randomness), watch, rows=recursion.looks)
    if progress is not None:
        progress(walk.reports(study, state))
    return finished(plan, recursion, method, level, found, study, state, seen[0], log.reports)

"""An integration in one process: one site after the other, so that a target whose search fails spends no other record.

The same replies, and so the same result, as asking the sites side by side with `local.runner`. The paper's chains run
in a compiled twin, bit for bit `server.integration.chains.ChainMethod` on the same dice: the search by messages, then a
compiled walk for each chain.
"""

from collections.abc import Callable

import numpy as np

from sottovoce.client.door import Door
from sottovoce.client.integration.site import OpenSite
from sottovoce.client.quantile.site import Site
from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce.inference.self_normalised.memory import average
from sottovoce.local.quantile import compiled_walk as fused
from sottovoce.local.quantile.source import Faces, Feed, Source
from sottovoce.protocol.card import identity
from sottovoce.protocol.messages import WalkQuery
from sottovoce.server.integration.chains import Chained, ChainMethod, ChainState, ChainStudy
from sottovoce.server.integration.method import IntegrationMethod
from sottovoce.server.integration.result import IntegratedResult
from sottovoce.server.quantile.recursion.walk import WalkStudy


class Deal:
    """The records dealt to one chain: the next ones of a source, and no more."""

    __slots__ = ("_feed", "left")

    def __init__(self, feed: Feed, n: int) -> None:
        self._feed = feed
        self.left = n

    def fetch(self, values: Floats, faces: Faces) -> int:
        """Fill both with what comes next; return how many records that was."""
        n = min(len(values), self.left)
        fetched = self._feed.fetch(values[:n], faces[:n])
        self.left -= fetched
        return fetched


def run_chains(
    site: Site,
    study: ChainStudy,
    *,
    bounds: tuple[float, float] | None = None,
    scale: float | None = None,
    progress: Callable[[int], None] | None = None,
) -> Chained:
    """Search where the study leaves start or unit open, then run the chains over the records that are left.

    All records are spent first, also the few that the number of chains does not divide and that are not asked. Public
    ``bounds`` around the quantile and a rough public ``scale`` shorten the search.

    >>> from sottovoce.client.record import Records
    >>> from sottovoce.protocol.messages import Study
    >>> site = Site(Records(np.linspace(40.0, 60.0, 20_005)), Study(0.5, 4.0))
    >>> found = run_chains(site, ChainStudy(0.5, site.channel))
    >>> low, high = found.measured.interval(0.999999)
    >>> low < 50 < high, found.measured.df, site.spent - found.reports < 10
    (True, 9, True)
    """
    if study.channel.weights != site.channel.weights:
        raise BadInput("the study's channel is not the site's; plan the study with site.channel.")
    method = ChainMethod(study, site.size - site.spent, bounds, scale)
    state = method.init()
    while state.start is None and (asked := method.query(state)) is not None:
        replies = [None if query is None else site.reply(asked.round, query) for query in asked.messages]
        if progress is not None:
            progress(asked.records)
        state = method.step(state, replies)
    return method.outcome(finish_chains(method, state, site, progress))


def finish_chains(
    method: ChainMethod, state: ChainState, site: Site, progress: Callable[[int], None] | None = None
) -> ChainState:
    """Go on from the end of the search in compiled walks, over all records that are left."""
    source = Source(*site.hand_over(state.search.rounds + 1))
    averages = walk_chains(method.one(state), method.study.chains, source, progress)
    return method.with_averages(state, tuple(averages.tolist()))


def walk_chains(one: WalkStudy, chains: int, source: Source, progress: Callable[[int], None] | None = None) -> Floats:
    """Walk one chain after the other over a source, all from the same start; return their averages."""
    averages, length = np.empty(chains), int(one.sizes[0])
    for m in range(chains):
        averages[m] = average(fused.run(one, [Deal(source, length)]).memory)
        if progress is not None:
            progress(length)
    return averages


def ask_in_turn(
    method: IntegrationMethod, opened: Callable[[int], Site | OpenSite], progress: Callable[[int], None] | None = None
) -> IntegratedResult:
    """Ask each site to its end, those without a budget first, then the target.

    ``opened`` opens a site by its place in the plan, once it is its turn: until then not even its order is drawn.
    """
    state, study = method.init(), identity(method.plan.card())
    for k in method.order:
        if method.ask(state, k) is None:
            continue
        own, site = method.parts[k].method, opened(k)
        door = Door(site, study)
        while (asked := method.ask(state, k)) is not None:
            [message] = asked.messages
            if isinstance(message, WalkQuery) and isinstance(own, ChainMethod) and isinstance(site, Site):
                state = method.put(state, k, finish_chains(own, state[0][k], site, progress))
                continue
            reply = None if message is None else door.ask(asked.round, message)
            if progress is not None:
                progress(asked.records)
            state = method.tell(state, k, reply)
    return method.outcome(state)

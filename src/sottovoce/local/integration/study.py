"""An integration in one process: one site after the other, so that a target whose search fails spends no other record.

The same replies, and so the same result, as asking the sites side by side with `local.runner`; the paper's chains run
in their compiled twin.
"""

from collections.abc import Callable, Sequence

from sottovoce.client.door import Door
from sottovoce.client.integration.site import OpenSite
from sottovoce.client.quantile.site import Site
from sottovoce.local.integration.chains import finish_chains
from sottovoce.protocol.card import identity
from sottovoce.protocol.messages import WalkQuery
from sottovoce.server.integration.chains import ChainMethod
from sottovoce.server.integration.method import IntegrationMethod
from sottovoce.server.integration.plan import IntegrationPlan
from sottovoce.server.integration.result import IntegratedResult


def doors_of(plan: IntegrationPlan, sites: Sequence[Site | OpenSite | None]) -> list[Door | None]:
    """Return the doors of open sites, for the study that a plan describes; None where there is nothing to ask."""
    study = identity(plan.card())
    return [None if site is None else Door(site, study) for site in sites]


def ask_in_turn(
    method: IntegrationMethod,
    sites: Sequence[Site | OpenSite | None],
    progress: Callable[[int], None] | None = None,
) -> IntegratedResult:
    """Ask each site to its end, those without a budget first, then the target.

    Parameters
    ----------
    method
        Who is asked, and how.
    sites
        The open sites, in the method's order; None where there is nothing to ask.
    progress
        Called with the number of records that have just answered.
    """
    state, doors = method.init(), doors_of(method.plan, sites)
    for k in method.order:
        own, site, door = method.parts[k].method, sites[k], doors[k]
        while (asked := method.ask(state, k)) is not None:
            [message] = asked.messages
            if isinstance(message, WalkQuery) and isinstance(own, ChainMethod) and isinstance(site, Site):
                state = method.put(state, k, finish_chains(own, state[0][k], site, progress))
                continue
            reply = None if message is None or door is None else door.ask(asked.round, message)
            if progress is not None:
                progress(asked.records)
            state = method.tell(state, k, reply)
    return method.outcome(state)

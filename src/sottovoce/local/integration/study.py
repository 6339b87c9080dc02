"""An integration in one process: one site after the other, so that a target whose search fails spends no other record.

The same replies, and so the same result, as asking the sites side by side with `local.runner`; the paper's chains run
in their compiled twin.
"""

from collections.abc import Callable

from sottovoce.client.door import Door
from sottovoce.client.integration.site import OpenSite
from sottovoce.client.quantile.site import Site
from sottovoce.local.integration.chains import finish_chains
from sottovoce.protocol.card import identity
from sottovoce.protocol.messages import WalkQuery
from sottovoce.server.integration.chains import ChainMethod
from sottovoce.server.integration.method import IntegrationMethod
from sottovoce.server.integration.result import IntegratedResult


def ask_in_turn(
    method: IntegrationMethod, opened: Callable[[int], Site | OpenSite], progress: Callable[[int], None] | None = None
) -> IntegratedResult:
    """Ask each site to its end, those without a budget first, then the target.

    Parameters
    ----------
    method
        Who is asked, and how.
    opened
        Opens a site by its place in the plan, once it is its turn: until then not even its order is drawn.
    progress
        Called with the number of records that have just answered.
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

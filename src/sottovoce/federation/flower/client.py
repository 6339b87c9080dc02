"""Flower's ClientApp: it carries bytes between Flower and the resident site of its node, and holds nothing itself.

The code of a ClientApp comes from the coordinator. Here it can hand orders to a Unix socket and return what comes back;
records, ledger and policy are in another program, which its operator started.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from sottovoce.core.errors import BadInput
from sottovoce.federation.flower.letter import body_of, packed
from sottovoce.federation.site.socket import ask

if TYPE_CHECKING:
    from sottovoce.federation.flower.simulated import SimulatedSite


def client_app(simulated: "Callable[[int, int], SimulatedSite | None] | None" = None) -> ClientApp:
    """Return the ClientApp of a site.

    Parameters
    ----------
    simulated
        Gives the site of a partition, by its number and how many there are, for Flower's simulation; deployed nodes
        name the socket of their site instead: ``flower-supernode --node-config 'socket="/run/site.sock"'``.
    """
    app = ClientApp()

    def answer(message: Message, context: Context) -> Message:
        order, node = body_of(message), context.node_config
        if order is None:
            raise BadInput("the message holds no order; use the same version on both sides.")
        if "socket" in node:
            reply = ask(str(node["socket"]), order)
        elif simulated is not None and "partition-id" in node:
            from sottovoce.federation.flower.simulated import answered

            reply = answered(simulated(int(node["partition-id"]), int(node["num-partitions"])), order, context)
        else:
            raise BadInput("no site stands behind this node; start it with --node-config 'socket=\"PATH\"'.")
        return Message(packed(reply), reply_to=message)

    app.query()(answer)
    return app

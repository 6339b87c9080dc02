"""The port of a collector: small answers leave at once, and a port that is taken is said."""

import asyncio
import socket

import pytest

from sottovoce.collector.listening import Listening, bound
from sottovoce.core.errors import BadInput


def test_small_answers_are_not_held_back() -> None:
    """An answer of two writes that waited for the first one's receipt would take 40 ms."""

    async def accepted() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        closed = asyncio.Event()

        class Looking(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                line = transport.get_extra_info("socket")
                found.set_result(line.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
                transport.close()

            def connection_lost(self, exc: Exception | None) -> None:
                closed.set()

        port = bound(Listening(port=0))
        server = await asyncio.get_running_loop().create_server(Looking, sock=port)
        _, writer = await asyncio.open_connection("127.0.0.1", port.getsockname()[1])
        told = await asyncio.wait_for(found, 10)
        await asyncio.wait_for(closed.wait(), 10)
        writer.close()
        await writer.wait_closed()
        server.close()
        return told

    assert asyncio.run(accepted()) == 1


def test_a_port_that_is_taken_is_refused() -> None:
    port = bound(Listening(port=0))
    with pytest.raises(BadInput, match="cannot be listened on"):
        bound(Listening(port=port.getsockname()[1]))
    port.close()

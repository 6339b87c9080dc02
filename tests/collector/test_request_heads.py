"""Connections of a collector are bounded: the head of a request in bytes and in time, and broken HTTP is told so."""

import asyncio
import contextlib
import json
from typing import Any

import pytest
import uvicorn

from sottovoce.collector import connections
from sottovoce.collector.connections import LARGEST_HEAD, LONG, STRANGE, BoundedConnection

GET = b"GET / HTTP/1.1\r\nhost: x\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answer after a twentieth of a second."""
    await asyncio.sleep(0.05)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


def told(*parts: bytes, pause: float = 0.0) -> bytes:
    """Send parts, one after the other, over one connection, and return all that is answered until it is closed."""

    async def sent() -> bytes:
        config = uvicorn.Config(app, http=BoundedConnection, ws="none", log_level="error", lifespan="off")
        config.load()
        state = uvicorn.Server(config).server_state
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: BoundedConnection(config, state, {}), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        heard = bytearray()

        async def hear() -> None:
            with contextlib.suppress(ConnectionError):
                while data := await reader.read(1 << 16):
                    heard.extend(data)

        hearing = asyncio.create_task(hear())
        with contextlib.suppress(ConnectionError):  # it may be closed at once
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(pause)
        await asyncio.wait_for(hearing, 20)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        server.close()
        return bytes(heard)

    return asyncio.run(sent())


def sentence(answer: bytes) -> Any:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    return json.loads(body)["error"]


def test_a_request_is_answered() -> None:
    assert told(GET + b"connection: close\r\n\r\n").endswith(b"ok")


@pytest.mark.parametrize("head", [b"x: " + b"y" * LARGEST_HEAD, b"a: b\r\n" * 12_000], ids=["one header", "many"])
def test_a_head_that_does_not_end_is_refused(head: bytes) -> None:
    parts = [head[k : k + 9000] for k in range(0, len(head), 9000)]
    assert sentence(told(GET, *parts, b"z" * 9000, b"z" * 9000, pause=0.005)) == LONG


def test_many_requests_and_their_bodies_are_no_long_head() -> None:
    post = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 60000\r\n\r\n" + bytes(60_000)
    assert told(post * 4 + GET + b"connection: close\r\n\r\n").count(b"ok") == 5


@pytest.mark.parametrize("data", [b"\x16\x03\x01\r\n\r\n", b"GET\r\n\r\n", b"GET /caf\xc3\xa9 HTTP/1.1\r\n\r\n"])
def test_what_is_no_http_is_told_so(data: bytes) -> None:
    assert sentence(told(data)) == STRANGE


@pytest.mark.parametrize(
    "parts",
    [[b""], [b"\r\n"] * 5, [GET], [GET + b"\r\n", b"GET"]],
    ids=["nothing", "empty lines", "half", "second half"],
)
def test_a_connection_without_a_request_is_closed(parts: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PATIENCE", 0.1)
    assert told(*parts, pause=0.02).count(b"ok") == sum(part.endswith(b"\r\n\r\n") for part in parts)


def test_who_is_answered_slowly_is_not_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PATIENCE", 0.02)
    assert told(GET + b"\r\n").endswith(b"ok")

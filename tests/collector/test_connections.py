"""Connections that ask nothing are let go, and one address leaves room for others."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import uvicorn

from sottovoce.collector import connections
from sottovoce.collector.connections import shared
from sottovoce.collector.limits import network_of

ASK = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
LARGE = bytes(1 << 16)


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answer with nothing, or with much."""
    if scope["type"] != "http":
        return
    parts = 1000 if scope["path"] == "/large" else 0
    length = str(parts * len(LARGE)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    for _ in range(parts):
        await send({"type": "http.response.body", "body": LARGE, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(connections, "PATIENCE", 0.3)
    monkeypatch.setattr(connections, "TAKEN", 0.3)
    config = uvicorn.Config(
        app, port=0, http=shared(3), ws="none", log_level="error", lifespan="off", timeout_keep_alive=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join(20)


def connected(port: int, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 20, (address, 0))


def answered(line: socket.socket) -> bool:
    """Ask, and tell whether there is an answer."""
    with suppress(OSError):
        line.sendall(ASK)
        return line.recv(1 << 16).startswith(b"HTTP/1.1 200")
    return False


def ends(line: socket.socket) -> bool:
    """Read to the end; whoever waits for ever is no end."""
    try:
        while line.recv(1 << 16):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize("sent", [b"", b"\r\n", ASK[:9], ASK[:-2]], ids=["nothing", "a line", "a verb", "half a head"])
def test_who_asks_nothing_is_let_go(port: int, sent: bytes) -> None:
    for first in (b"", ASK):
        with connected(port) as line:
            if first:
                assert answered(line)
            line.sendall(sent)
            assert ends(line)


def test_a_head_without_an_end_is_cut(port: int) -> None:
    with connected(port) as line, pytest.raises(ConnectionError):
        line.sendall(ASK[:-2] + b"".join(b"x-%d: %s\r\n" % (k, b"a" * 1000) for k in range(50_000)))


def test_who_asks_for_much_and_takes_none_is_let_go(port: int) -> None:
    with connected(port) as line:
        line.sendall(ASK.replace(b"/ ", b"/large "))
        time.sleep(1)  # longer than what is sent may wait to be taken
        taken = 0
        with suppress(ConnectionError):
            while part := line.recv(1 << 20):
                taken += len(part)
        assert taken < 1000 * len(LARGE)


def test_one_address_leaves_room_for_others(port: int) -> None:
    held = [connected(port) for _ in range(3)]
    assert all(answered(line) for line in held)
    with connected(port) as fourth, connected(port, "127.0.0.2") as other:
        assert not answered(fourth)
        assert answered(other)
    held.pop().close()
    for _ in range(100):
        with connected(port) as again:
            if answered(again):
                break
        time.sleep(0.02)
    else:
        raise AssertionError("a place that became free is not given again")
    for line in held:
        line.close()


def test_a_connection_that_asks_again_and_again_stays(port: int) -> None:
    with connected(port) as line:
        for _ in range(8):  # longer than a head may take
            assert answered(line)
            time.sleep(0.1)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.7", "::ffff:192.0.2.7", True),
        ("::ffff:192.0.2.7", "::ffff:192.0.2.8", False),
        ("::ffff:192.0.2.7", "::1", False),
        ("2001:db8:0:1::1", "2001:0db8:0000:0001:ffff:ffff:ffff:ffff", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
    ],
)
def test_a_sender_is_the_same_however_its_address_is_written(one: str, other: str, same: bool) -> None:
    assert (network_of(one) == network_of(other)) is same

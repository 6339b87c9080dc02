"""A connection of the collector: its requests begin soon and small, what it is sent it takes, and it leaves room.

The server underneath waits forever for the first byte, for headers without an end, and for a reader who does not read.
"""

import asyncio
import resource
from collections import Counter

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sottovoce.collector.limits import network_of

LARGEST_HEAD = 1 << 14  # bytes of the first line and all headers of a request
PATIENCE = 10.0  # seconds that a connection may be open without a request that is whole up to its body
TAKEN = 30.0  # seconds in which what is sent must begin to be taken
LONG = f"the head of a request has at most {LARGEST_HEAD:,} bytes; send less."
STRANGE = "this is no request of HTTP/1.1; send one."


class BoundedConnection(HttpToolsProtocol):
    """One connection; ``share`` is how many an address may have at a time, 0 for as many as there are."""

    share = 0
    held: Counter[str]
    _begun = _size = 0  # messages that began, and bytes of the head of the newest
    _in_head = False
    _idle_since: float | None = None  # None while a request is answered
    _network = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request, unless the address has its share already."""
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self._timer = self.loop.call_later(PATIENCE, self._look)
        self._taken_timer: asyncio.TimerHandle | None = None
        self._network = network_of(self.client[0]) if self.client and self.share else ""
        if self._network:
            self.held[self._network] += 1
            if self.held[self._network] > self.share:
                transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        super().connection_lost(exc)
        self._timer.cancel()
        self.resume_writing()
        if self._network:
            self.held[self._network] -= 1
            if not self.held[self._network]:
                del self.held[self._network]

    def _look(self) -> None:
        """Close the connection if no request has come for too long."""
        since = self._idle_since
        if since is not None and self.loop.time() >= since + PATIENCE:
            self.transport.close()
            return
        again = self.loop.time() if since is None else since
        self._timer = self.loop.call_at(again + PATIENCE, self._look)

    def data_received(self, data: bytes) -> None:
        """Take the next bytes; count those of a head that is not whole yet."""
        begun, idle = self._begun, self._idle_since is not None
        super().data_received(data)
        if self._in_head:
            new = self._begun - begun
            self._size += len(data) if new == 0 or (idle and new == 1) else 0  # else a body may have ended in it
            if self._size > LARGEST_HEAD and not self.transport.is_closing():
                self._refuse(LONG)

    def on_message_begin(self) -> None:
        """Begin the head of a request."""
        super().on_message_begin()
        self._begun, self._size, self._in_head = self._begun + 1, 0, True

    def on_headers_complete(self) -> None:
        """End the head of a request."""
        self._in_head, self._idle_since = False, None
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._idle_since = self.loop.time()
        super().on_response_complete()
        if not self.cycle.response_complete:
            self._idle_since = None  # the next one has come already

    def pause_writing(self) -> None:
        """Wait for a reader who is slow, and not for ever."""
        super().pause_writing()
        self._taken_timer = self.loop.call_later(TAKEN, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on."""
        super().resume_writing()
        if self._taken_timer is not None:
            self._taken_timer.cancel()
            self._taken_timer = None

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  # uvicorn's own words are no sentence
        """Say that this is no HTTP."""
        self._refuse(STRANGE)

    def _refuse(self, sentence: str) -> None:
        """Say in one sentence what is wrong, and close."""
        body = msgspec.json.encode({"error": sentence})
        lines = "HTTP/1.1 400 Bad Request", "content-type: application/json", "connection: close"
        head = "\r\n".join((*lines, f"content-length: {len(body)}", "", ""))
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing in the log: a request to upgrade is answered as what it is without."""


def shared(share: int) -> type[BoundedConnection]:
    """Return connections of which an address may have so many at a time."""
    return type("SharedConnection", (BoundedConnection,), {"share": share, "held": Counter()})


def allow_files(wanted: int) -> None:
    """Let this process hold so many connections, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))

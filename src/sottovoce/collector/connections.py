"""A connection of the collector: its requests begin soon and small, what it is sent it takes, and it leaves room.

The server underneath waits forever for the first byte, for headers without an end, and for a reader who does not read.
"""

import asyncio
import resource
from collections import Counter

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sottovoce.collector.limits import network_of

HEAD = 1 << 14  # bytes of a request before its body
SOON, TAKEN = 10.0, 30.0  # seconds in which the head must come, and in which what is sent must begin to be taken


class Connection(HttpToolsProtocol):
    """One connection; ``share`` is how many an address may have at a time, 0 for as many as there are."""

    share = 0
    held: Counter[str]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, unless its address has its share already."""
        super().connection_made(transport)
        self._inside, self._head = False, 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._taken_timer: asyncio.TimerHandle | None = None
        self._network = network_of(self.client[0]) if self.client and self.share else ""
        if self._network:
            self.held[self._network] += 1
            if self.held[self._network] > self.share:
                transport.abort()
                return
        self._await_head(0)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        super().connection_lost(exc)
        for timer in (self._head_timer, self._taken_timer):
            if timer is not None:
                timer.cancel()
        if self._network:
            self.held[self._network] -= 1
            if not self.held[self._network]:
                del self.held[self._network]

    def on_message_begin(self) -> None:
        """Note that a head has begun."""
        self._inside = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Note that a head is whole."""
        self._inside, self._head = False, 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Take bytes; of those that are no body yet only so many, and not for long."""
        super().data_received(data)
        running = self.cycle is not None and not self.cycle.response_complete  # type: ignore[redundant-expr]
        if self._inside or not running:
            self._await_head(len(data))

    def _await_head(self, size: int) -> None:
        """Wait for the rest of a head, or for the next one."""
        self._head += size
        if self._head > HEAD:
            self.transport.abort()
        elif self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(SOON, self.transport.abort)

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


def shared(share: int) -> type[Connection]:
    """Return connections of which an address may have so many at a time."""
    return type("SharedConnection", (Connection,), {"share": share, "held": Counter()})


def allow_files(wanted: int) -> None:
    """Let this process hold so many connections, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))

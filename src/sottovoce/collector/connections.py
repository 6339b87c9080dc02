"""Connections that cannot be used up: a request's head is short and comes soon, and what is no HTTP is told so.

Uvicorn bounds neither: a head that never ends would be kept in memory, and a connection on which no request comes
would keep its place among those that are allowed.
"""

import asyncio

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LARGEST_HEAD = 1 << 16  # bytes of the first line and all headers of a request
PATIENCE = 10.0  # seconds that a connection may be open without a request that is whole up to its body
LONG = f"the head of a request has at most {LARGEST_HEAD:,} bytes; send less."
STRANGE = "this is no request of HTTP/1.1; send one."


class BoundedConnection(HttpToolsProtocol):
    """A connection of HTTP/1.1 with a bound on the head of a request, in bytes and in time."""

    _begun = _taken = 0  # messages that began, and bytes of the head of the newest
    _in_head = False
    _idle_since: float | None = None  # None while a request is answered

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self._timer = self.loop.call_later(PATIENCE, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._timer.cancel()
        super().connection_lost(exc)

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
            self._taken += len(data) if idle or begun == self._begun else 0  # else a body may have ended in it
            if self._taken > LARGEST_HEAD and not self.transport.is_closing():
                self._refuse(LONG)

    def on_message_begin(self) -> None:
        """Begin the head of a request."""
        super().on_message_begin()
        self._begun, self._taken, self._in_head = self._begun + 1, 0, True

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

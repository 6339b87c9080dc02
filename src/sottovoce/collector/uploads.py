"""Uploads over HTTP, by plain ASGI, because they are many: all that come within a millisecond share one commit.

The commit is made on the loop itself, and an upload is answered after it.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec
import numpy as np

from sottovoce.collector.access import OFTEN, Access
from sottovoce.collector.log_connection import LogAway
from sottovoce.collector.peers import UPLOAD, Peers
from sottovoce.collector.studies import CollectedStudies
from sottovoce.core.errors import BadInput
from sottovoce.protocol.device import IDENTITY, MOST_REPORTS, REPORT, SIZE
from sottovoce.web.parts import HEADERS

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

TOGETHER = 0.001  # seconds within which uploads share a commit
LARGEST = IDENTITY + MOST_REPORTS * SIZE
PATIENCE = 10.0  # seconds that a body may take
RAW = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


class Uploads:
    """Takes uploads for the studies of a collector, and keeps them; what others own is handed to them."""

    def __init__(self, studies: CollectedStudies, access: Access, peers: Peers | None = None) -> None:
        self._studies, self._access, self._peers, self.uploads = studies, access, peers, 0
        self._waiting: list[asyncio.Future[None]] = []
        self.moved = asyncio.Event()

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take an upload, and answer when it is kept."""
        if scope["method"] != "POST":
            await told(send, 405, {"error": "reports are sent with POST; nothing else is done here."}, [ALLOW])
            return
        try:
            body = await asyncio.wait_for(whole_body(receive, LARGEST), PATIENCE)
        except BadInput as error:
            await told(send, 400, {"error": str(error)})
            return
        except TimeoutError:
            await told(send, 408, {"error": "the upload took too long; send it again."})
            return
        if seconds := self._access.wait(scope, len(body)):
            await often(send, seconds)
            return
        self.uploads += 1
        status, said = await (self.take(body) if self._peers is None else self._take_or_hand_on(body, self._peers))
        await told(send, status, said)

    async def take(self, body: bytes) -> tuple[int, dict[str, Any]]:
        """Fold the reports of an upload, wait until they are kept, and return what the sender is told."""
        try:
            uploaded = self._studies.upload(body)
        except BadInput as error:
            return status_of(error), {"error": str(error)}
        if uploaded.accepted:
            kept = asyncio.get_running_loop().create_future()
            if not self._waiting:
                asyncio.get_running_loop().call_later(TOGETHER, self.commit)
            self._waiting.append(kept)
            try:
                await kept
            except BadInput as error:
                return 503, {"error": str(error)}
        return 200, {"accepted": uploaded.accepted, "refused": uploaded.refused}

    async def _take_or_hand_on(self, body: bytes, peers: Peers) -> tuple[int, dict[str, Any]]:
        """Divide an upload among the processes that own its groups; if one is away, all is to be sent again."""
        whole, rest = divmod(len(body) - IDENTITY, SIZE)
        if rest or whole < 1:
            return await self.take(body)
        part = peers.part
        owners = np.frombuffer(body, dtype=REPORT, offset=IDENTITY)["group"] % part.of
        if (owners == part.number).all():
            return await self.take(body)
        places = {owner: np.flatnonzero(owners == owner) for owner in np.unique(owners).tolist()}
        rows = np.frombuffer(body, dtype=f"V{SIZE}", offset=IDENTITY)
        sent = (self._at(owner, body[:IDENTITY] + rows[mine].tobytes(), peers) for owner, mine in places.items())
        accepted, refused = 0, []
        for mine, (status, said) in zip(places.values(), await asyncio.gather(*sent), strict=True):
            if status != 200:
                return status, said
            accepted += said["accepted"]
            refused += [(int(mine[k]), why) for k, why in said["refused"]]
        return 200, {"accepted": accepted, "refused": sorted(refused)}

    async def _at(self, owner: int, body: bytes, peers: Peers) -> tuple[int, dict[str, Any]]:
        """Take an upload here, or have its owner take it."""
        if owner == peers.part.number:
            return await self.take(body)
        try:
            status, said = await peers.ask(owner, UPLOAD, body)
        except BadInput as error:
            return 503, {"error": str(error)}
        found: dict[str, Any] = msgspec.json.decode(said)
        return status, found

    def tell(self) -> None:
        """Wake those who look on."""
        moved, self.moved = self.moved, asyncio.Event()
        moved.set()

    def commit(self) -> None:
        """Keep what was folded, and answer all who wait for it."""
        waiting, self._waiting = self._waiting, []
        rounds = self._studies.rounds
        failed: BadInput | None = None
        try:
            self._studies.commit()
        except Exception as error:  # whatever the store says: nobody may be told that a report is kept
            failed = LogAway(f"the log cannot be written ({type(error).__name__}); send the same again later.")
        for kept in waiting:
            if not kept.done():
                kept.set_result(None) if failed is None else kept.set_exception(failed)
        if self._studies.rounds > rounds:
            self.tell()


ALLOW = (b"allow", b"POST")


def status_of(error: BadInput) -> int:
    """Return the status that says whose fault it is: the sender's, or a log's that is away."""
    return 503 if isinstance(error, LogAway) else 400


async def whole_body(receive: Receive, largest: int) -> bytes:
    """Read a body, and stop reading where it grows too large."""
    parts, size = [], 0
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise BadInput("the upload broke off; send it again.")
        part = event.get("body", b"")
        size += len(part)
        if size > largest:
            raise BadInput(f"what is sent here has at most {largest:,} bytes; send less at a time.")
        parts.append(part)
        if not event.get("more_body", False):
            return b"".join(parts)


async def often(send: Send, seconds: float) -> None:
    """Say that a sender comes too often, and when to come again."""
    await told(send, 429, {"error": OFTEN}, [(b"retry-after", str(math.ceil(seconds)).encode())])


async def told(send: Send, status: int, value: Any, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    """Send an answer."""
    body = msgspec.json.encode(value)
    length = (b"content-length", str(len(body)).encode())
    whole = [(b"content-type", b"application/json"), length, *RAW, *(headers or ())]
    await send({"type": "http.response.start", "status": status, "headers": whole})
    await send({"type": "http.response.body", "body": body})


def with_headers(send: Send, headers: list[tuple[bytes, bytes]]) -> Send:
    """Add the headers of security to whatever is sent."""

    async def sent(event: MutableMapping[str, Any]) -> None:
        if event["type"] == "http.response.start":
            event["headers"] = [*event.get("headers", []), *headers]
        await send(event)

    return sent

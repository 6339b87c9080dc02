"""The collector as an ASGI application: uploads by themselves, everything else by Starlette; deadlines are looked at.

No address and no report is logged.
"""

import asyncio
import logging
from contextlib import suppress
from typing import Any

import msgspec
from starlette.applications import Starlette

from sottovoce.collector.access import READER, Access
from sottovoce.collector.log_connection import LogAway
from sottovoce.collector.pages import draws, pages
from sottovoce.collector.peers import LOOK, UPLOAD, Peers
from sottovoce.collector.routes import SAID, Routes, away
from sottovoce.collector.studies import CollectedStudies
from sottovoce.collector.uploads import RAW, Receive, Scope, Send, Uploads, often, told, with_headers
from sottovoce.core.errors import BadInput

LOG = logging.getLogger("sottovoce.collector")
TICK, LOOK_AGAIN = 0.05, 0.5  # seconds between looks at deadlines, and at what other processes did
SOON, LATER = 0.5, 8.0  # seconds between tries to use a log again: at first, and after many
# the script that draws charts writes styles into the page, and nothing else may
_DRAWN = [(name, value.replace(b"style-src 'self'", b"style-src 'self' 'unsafe-inline'")) for name, value in RAW]


class CollectorService:
    """An ASGI application around the studies of a collector."""

    def __init__(self, studies: CollectedStudies, access: Access, peers: Peers | None = None) -> None:
        self.uploads, self._access = Uploads(studies, access, peers), access
        self._studies, self._peers = studies, peers
        self._tasks: list[asyncio.Task[None]] = []
        self._routes = Routes(studies, self.uploads, access, peers)
        said: dict[Any, Any] = {**SAID, LogAway: away}
        self._rest = Starlette(routes=[*self._routes.routes, *pages()], exception_handlers=said)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or follow the life of the server."""
        if scope["type"] == "http":
            try:
                await self._answer(scope, receive, send)
            except LogAway as error:  # a key could not be looked up; nothing was said yet
                await told(send, 503, {"error": str(error)})
        elif scope["type"] == "lifespan":
            await self._live(receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path: str = scope["path"]
        if path == "/v1/reports":
            await self.uploads.answer(scope, receive, send)
        elif seconds := self._access.wait(scope):
            await often(send, seconds)
        elif path.startswith("/studies/") and not path.endswith("/survey") and not self._may_read(scope):
            await told(send, 401, {"error": READER}, [(b"www-authenticate", b'Basic realm="results"')])
        else:
            await self._rest(scope, receive, with_headers(send, _DRAWN if draws(path) else RAW))

    def _may_read(self, scope: Scope) -> bool:
        """Tell whether a request may see results."""
        header = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"authorization"), None)
        return self._access.may_read(header)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Look at deadlines while the server runs; keep what is folded when it stops."""
        while True:
            event: Any = await receive()
            if event["type"] == "lifespan.startup":
                self._tasks = [asyncio.create_task(self._tick())]
                if self._studies.part.of > 1:
                    self._tasks.append(asyncio.create_task(self._look()))
                if self._peers is not None:
                    await self._peers.serve(self._handed)
                await send({"type": "lifespan.startup.complete"})
            else:
                for task in self._tasks:
                    task.cancel()
                if self._peers is not None:
                    self._peers.close()
                self.uploads.commit()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _tick(self) -> None:
        """Close rounds whose time has come, though nobody uploads."""
        while True:
            await asyncio.sleep(TICK)
            self.uploads.commit()
            if self._studies.broken:
                await self._come_back()

    async def _come_back(self) -> None:
        """Use the log again as soon as that is possible; whoever sends meanwhile is told to send the same again."""
        self._studies.leave()
        self.uploads.commit()  # whoever waits is told so
        LOG.warning("the log cannot be used now; nothing is taken until it can be.")
        pause = SOON
        while True:
            await asyncio.sleep(pause)
            pause = min(2 * pause, LATER)
            try:
                await asyncio.to_thread(self._studies.reopen)  # it may wait for a server
                self._studies.refold()
            except (BadInput, OSError):
                continue
            LOG.warning("the log can be used again; nothing that was acknowledged is lost.")
            self.uploads.tell()
            return

    async def _look(self) -> None:
        """Follow what the other processes have done."""
        while True:
            await asyncio.sleep(LOOK_AGAIN)
            with suppress(BadInput):  # a log that is away is opened again elsewhere
                self._look_now()
            await self._routes.hear()

    def _look_now(self) -> None:
        """Take up what stands in the logs of the others, and wake those who look on."""
        if self._studies.broken:
            return
        rounds = self._studies.rounds
        self._studies.look()
        if self._studies.rounds > rounds:
            self.uploads.tell()

    async def _handed(self, kind: int, said: bytes) -> tuple[int, bytes]:
        """Answer what another process has handed on."""
        if kind == UPLOAD:
            status, told_ = await self.uploads.take(said)
            return status, msgspec.json.encode(told_)
        if kind == LOOK:
            self._look_now()
            return 200, b"{}"
        return await self._routes.handed(kind, said)

"""The collector as an ASGI application: uploads by themselves, everything else by Starlette; deadlines are looked at.

No address and no report is logged.
"""

import asyncio
from typing import Any

import msgspec
from starlette.applications import Starlette

from sottovoce.collector.access import READER, Access
from sottovoce.collector.pages import draws, pages
from sottovoce.collector.peers import LOOK, UPLOAD, Peers
from sottovoce.collector.routes import SAID, Routes
from sottovoce.collector.studies import CollectedStudies
from sottovoce.collector.uploads import RAW, Receive, Scope, Send, Uploads, often, told, with_headers

TICK, LOOK_AGAIN = 0.05, 0.5  # seconds between looks at deadlines, and at what other processes did
# the script that draws charts writes styles into the page, and nothing else may
_DRAWN = [(name, value.replace(b"style-src 'self'", b"style-src 'self' 'unsafe-inline'")) for name, value in RAW]


class CollectorService:
    """An ASGI application around the studies of a collector."""

    def __init__(self, studies: CollectedStudies, access: Access, peers: Peers | None = None) -> None:
        self.uploads, self._access = Uploads(studies, access, peers), access
        self._studies, self._peers = studies, peers
        self._tasks: list[asyncio.Task[None]] = []
        self._routes = Routes(studies, self.uploads, access, peers)
        self._rest = Starlette(routes=[*self._routes.routes, *pages()], exception_handlers=SAID)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or follow the life of the server."""
        if scope["type"] == "http":
            path: str = scope["path"]
            if path == "/v1/reports":
                await self.uploads.answer(scope, receive, send)
            elif seconds := self._access.wait(scope):
                await often(send, seconds)
            elif path.startswith("/studies/") and not path.endswith("/survey") and not self._may_read(scope):
                await told(send, 401, {"error": READER}, [(b"www-authenticate", b'Basic realm="results"')])
            else:
                await self._rest(scope, receive, with_headers(send, _DRAWN if draws(path) else RAW))
        elif scope["type"] == "lifespan":
            await self._live(receive, send)

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

    async def _look(self) -> None:
        """Follow what the other processes have done."""
        while True:
            await asyncio.sleep(LOOK_AGAIN)
            self._look_now()
            await self._routes.hear()

    def _look_now(self) -> None:
        """Take up what stands in the logs of the others, and wake those who look on."""
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

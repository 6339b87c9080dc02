"""The collector as an ASGI application: uploads by themselves, everything else by Starlette; deadlines are looked at.

No address and no report is logged.
"""

import asyncio
from typing import Any

from starlette.applications import Starlette

from sottovoce.collector.pages import pages
from sottovoce.collector.routes import Routes
from sottovoce.collector.studies import CollectedStudies
from sottovoce.collector.uploads import RAW, Receive, Scope, Send, Uploads, with_headers

TICK = 0.05  # seconds between looks at deadlines
# the script that draws charts writes styles into the page, and nothing else may
_DRAWN = [(name, value.replace(b"style-src 'self'", b"style-src 'self' 'unsafe-inline'")) for name, value in RAW]


class CollectorService:
    """An ASGI application around the studies of a collector."""

    def __init__(self, studies: CollectedStudies) -> None:
        self.uploads = Uploads(studies)
        self._ticker: asyncio.Task[None] | None = None
        self._rest = Starlette(routes=[*Routes(studies, self.uploads).routes, *pages()])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or follow the life of the server."""
        if scope["type"] == "http":
            path: str = scope["path"]
            if path == "/v1/reports":
                await self.uploads.answer(scope, receive, send)
            else:
                await self._rest(scope, receive, with_headers(send, _DRAWN if path.startswith("/studies/") else RAW))
        elif scope["type"] == "lifespan":
            await self._live(receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Look at deadlines while the server runs; keep what is folded when it stops."""
        while True:
            event: Any = await receive()
            if event["type"] == "lifespan.startup":
                self._ticker = asyncio.create_task(self._tick())
                await send({"type": "lifespan.startup.complete"})
            else:
                if self._ticker is not None:
                    self._ticker.cancel()
                self.uploads.commit()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _tick(self) -> None:
        """Close rounds whose time has come, though nobody uploads."""
        while True:
            await asyncio.sleep(TICK)
            self.uploads.commit()

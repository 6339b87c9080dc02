"""The collector over HTTP: devices ask and answer, whoever wants looks on; an upload is answered after its commit.

Uploads are taken by plain ASGI, because they are many: all that come within a millisecond share one commit, made on the
loop itself. Everything else is Starlette. No address and no report is logged.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from sottovoce.collector.gathering import Gathering, Uploaded
from sottovoce.collector.pages import pages
from sottovoce.core.errors import BadInput
from sottovoce.protocol.device import IDENTITY, MOST_REPORTS, SIZE

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

TOGETHER = 0.001  # seconds within which uploads share a commit
TICK = 0.05  # seconds between looks at deadlines
LARGEST = IDENTITY + MOST_REPORTS * SIZE
PATIENCE = 10.0  # seconds that a body may take
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
_RAW = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
# the script that draws charts writes styles into the page, and nothing else may
_DRAWN = [(name, value.replace(b"style-src 'self'", b"style-src 'self' 'unsafe-inline'")) for name, value in _RAW]


class CollectorService:
    """An ASGI application around one study."""

    def __init__(self, gathering: Gathering) -> None:
        self.gathering = gathering
        self.uploads = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._ticker: asyncio.Task[None] | None = None
        self._moved = asyncio.Event()
        routes = [
            Route("/health", self._health),
            Route("/metrics", self._metrics),
            Route("/v1/card", self._card),
            Route("/v1/query", self._query),
            Route("/v1/estimate", self._estimate),
            Route("/v1/trajectory", self._trajectory),
            Route("/v1/events", self._events),
            *pages(),
        ]
        self._rest = Starlette(routes=routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or follow the life of the server."""
        if scope["type"] == "http":
            if scope["path"] == "/v1/reports":
                await self._reports(scope, receive, send)
            else:
                await self._rest(scope, receive, _with_headers(send, _DRAWN if scope["path"] == "/" else _RAW))
        elif scope["type"] == "lifespan":
            await self._live(receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Look at deadlines while the server runs; keep what is folded when it stops."""
        while True:
            event = await receive()
            if event["type"] == "lifespan.startup":
                self._ticker = asyncio.create_task(self._tick())
                await send({"type": "lifespan.startup.complete"})
            else:
                if self._ticker is not None:
                    self._ticker.cancel()
                self._commit()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _tick(self) -> None:
        """Close rounds whose time has come, though nobody uploads."""
        while True:
            await asyncio.sleep(TICK)
            self._commit()

    async def _reports(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take an upload, and answer when it is kept."""
        if scope["method"] != "POST":
            await _told(send, 405, {"error": "reports are sent with POST; nothing else is done here."})
            return
        try:
            body = await asyncio.wait_for(_body(receive), PATIENCE)
            uploaded = self.gathering.upload(body)
        except BadInput as error:
            await _told(send, 400, {"error": str(error)})
            return
        except TimeoutError:
            await _told(send, 408, {"error": "the upload took too long; send it again."})
            return
        self.uploads += 1
        if uploaded.accepted:
            kept = asyncio.get_running_loop().create_future()
            if not self._waiting:
                asyncio.get_running_loop().call_later(TOGETHER, self._commit)
            self._waiting.append(kept)
            try:
                await kept
            except BadInput as error:
                await _told(send, 503, {"error": str(error)})
                return
        await _told(send, 200, _said(uploaded))

    def _commit(self) -> None:
        """Keep what was folded, and answer all who wait for it."""
        waiting, self._waiting = self._waiting, []
        rounds = len(self.gathering.trajectory)
        failed: BadInput | None = None
        try:
            self.gathering.commit()
        except Exception as error:  # whatever the store says: nobody may be told that a report is kept
            failed = BadInput(f"the log cannot be written ({type(error).__name__}); send the same again later.")
        for kept in waiting:
            if not kept.done():
                kept.set_result(None) if failed is None else kept.set_exception(failed)
        if len(self.gathering.trajectory) > rounds:
            moved, self._moved = self._moved, asyncio.Event()
            moved.set()

    async def _health(self, _: Request) -> Response:
        return JSONResponse({"state": self.gathering.state, "over": self.gathering.over})

    async def _card(self, _: Request) -> Response:
        return Response(self.gathering.card, media_type="application/json")

    async def _query(self, request: Request) -> Response:
        """Say what a group is asked now, or when to ask again."""
        group = self._group(request)
        if group is None:
            return JSONResponse({"error": "there is no such group; the card names them."}, 404)
        study = self.gathering.identity.hex()
        asked = self.gathering.asked(group)
        if asked is None:
            over = self.gathering.state == "closed" or self.gathering.folds[group].round is None
            return JSONResponse({"study": study, "group": group, "over": over, "wait": None if over else 0.2})
        return JSONResponse({"study": study, "group": group, **asked._asdict()})

    async def _estimate(self, request: Request) -> Response:
        group = self._group(request)
        if group is None:
            return JSONResponse({"error": "there is no such group; the card names them."}, 404)
        return JSONResponse(self.gathering.estimate(group))

    async def _trajectory(self, _: Request) -> Response:
        return JSONResponse(self.gathering.trajectory)

    async def _events(self, _: Request) -> Response:
        """Tell each round that closes, as server-sent events."""
        return StreamingResponse(self._told_rounds(), media_type="text/event-stream")

    async def _told_rounds(self) -> AsyncIterator[bytes]:
        told = 0
        while True:
            while told < len(self.gathering.trajectory):
                yield b"data: " + msgspec.json.encode(self.gathering.trajectory[told]) + b"\n\n"
                told += 1
            if self.gathering.over:
                yield b"event: over\ndata: {}\n\n"
                return
            try:
                await asyncio.wait_for(self._moved.wait(), 15.0)
            except TimeoutError:
                yield b": still here\n\n"

    async def _metrics(self, _: Request) -> Response:
        """Count, for Prometheus; nothing of a report is told."""
        gathering = self.gathering
        lines = ["# TYPE sottovoce_reports_total counter"]
        for group, fold in enumerate(gathering.folds):
            lines.append(f'sottovoce_reports_total{{group="{group}"}} {fold.reports}')
        lines.append("# TYPE sottovoce_uploads_total counter")
        lines.append(f"sottovoce_uploads_total {self.uploads}")
        lines.append("# TYPE sottovoce_refused_total counter")
        for why, count in sorted(gathering.refusals.items()):
            lines.append(f'sottovoce_refused_total{{why="{why}"}} {count}')
        return PlainTextResponse("\n".join(lines) + "\n")

    def _group(self, request: Request) -> int | None:
        """Return the number of the group that was asked for; the first where none was named."""
        groups = self.gathering.study.groups
        name = request.query_params.get("group", groups[0])
        return groups.index(name) if name in groups else None


def _said(uploaded: Uploaded) -> dict[str, Any]:
    """Return what the sender is told: how many are kept, and which are not and why."""
    return {"accepted": uploaded.accepted, "refused": uploaded.refused}


async def _body(receive: Receive) -> bytes:
    """Read a body, and stop reading where it grows too large."""
    parts, size = [], 0
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise BadInput("the upload broke off; send it again.")
        part = event.get("body", b"")
        size += len(part)
        if size > LARGEST:
            raise BadInput(f"an upload has at most {LARGEST:,} bytes; send fewer reports at a time.")
        parts.append(part)
        if not event.get("more_body", False):
            return b"".join(parts)


async def _told(send: Send, status: int, value: Any) -> None:
    """Send an answer."""
    body = msgspec.json.encode(value)
    length = (b"content-length", str(len(body)).encode())
    headers = [(b"content-type", b"application/json"), length, *_RAW]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _with_headers(send: Send, headers: list[tuple[bytes, bytes]]) -> Send:
    """Add the headers of security to whatever is sent."""

    async def sent(event: MutableMapping[str, Any]) -> None:
        if event["type"] == "http.response.start":
            event["headers"] = [*event.get("headers", []), *headers]
        await send(event)

    return sent

"""The direct carrier: an HTTPS server that sites poll, each known by its certificate; nobody is called.

A site posts its reply to the last order, or nothing, and gets the next order as soon as there is one. What was handed
out but not answered is handed out again, so that a site may die at any time.
"""

import asyncio
import queue
import ssl
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sottovoce.core.errors import BadInput
from sottovoce.federation import words
from sottovoce.federation.study import Certificates

HOLD = 20.0  # seconds that a poll waits for an order
ORDER, SITE, LAST = "x-order", "x-site", "x-last"  # headers: the order answered, a name without TLS, no poll to come
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass
class _Mailbox:
    """The newest order to a site, and whether a reply to it has come."""

    order: bytes | None = None
    mark: str = ""
    done: bool = True
    handed: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class PeerProtocol(HttpToolsProtocol):
    """Shows the application whose certificate a connection came with: uvicorn does not."""

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self.scope["extensions"] = {"peer": {"name": peer_of(self.transport)}}


def peer_of(transport: Any) -> str:
    """Return the common name of the certificate behind a connection; empty without one."""
    layer = transport.get_extra_info("ssl_object")
    subject = (layer.getpeercert() or {}).get("subject", ()) if layer is not None else ()
    names = [value for part in subject for key, value in part if key == "commonName"]
    return names[0] if len(names) == 1 else ""


class HttpPost:
    """A post over HTTPS; ``insecure`` takes a site's name on trust, which only loopback allows."""

    def __init__(
        self,
        sites: Sequence[str],
        host: str,
        port: int,
        certificates: Certificates | None,
    ) -> None:
        if certificates is None and host not in LOOPBACK:
            raise BadInput("without certificates the coordinator listens on loopback alone; give --certificates.")
        self._secure, self._closing = certificates is not None, False
        self._boxes = {site: _Mailbox() for site in sites}
        self.seen: dict[str, float] = {}  # when each site was last in touch
        self._came: queue.Queue[tuple[str, bytes]] = queue.Queue(maxsize=16 * len(sites) + 64)
        routes = [Route("/exchange", self._exchange, methods=["POST"]), Route("/health", _health)]
        config = uvicorn.Config(
            Starlette(routes=routes), host=host, port=port, http=PeerProtocol, ws="none", lifespan="off",
            log_level="critical", access_log=False, server_header=False, date_header=False, timeout_keep_alive=75,
            timeout_graceful_shutdown=2, h11_max_incomplete_event_size=1 << 16,
        )  # fmt: skip
        config.load()
        if certificates is not None:
            config.ssl = server_context(certificates.check())
        self._server = uvicorn.Server(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._serve, name="sottovoce-coordinator", daemon=True)

    def __enter__(self) -> "HttpPost":
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise BadInput("the coordinator cannot listen there; is the port taken? Give another with --port.")
            threading.Event().wait(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._let_go)
        self._server.should_exit = True
        self._thread.join(5.0)

    @property
    def port(self) -> int:
        """Return the port that is listened on."""
        return int(self._server.servers[0].sockets[0].getsockname()[1])

    def send(self, site: str, order: bytes) -> None:
        """Put an order where the site will find it."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._put, site, order)

    def receive(self, timeout: float) -> tuple[str, bytes] | None:
        """Return the next reply and whose it is."""
        try:
            return self._came.get(timeout=timeout)
        except queue.Empty:
            return None

    def handed(self, site: str) -> bool:
        """Tell whether the newest order was handed out."""
        return self._boxes[site].handed

    def _serve(self) -> None:
        async def run() -> None:
            self._loop = asyncio.get_running_loop()
            await self._server.serve()

        try:
            asyncio.run(run())
        except SystemExit:  # uvicorn's way to say that the port is taken
            return

    def _let_go(self) -> None:
        """Send everybody who waits away: there will be no order any more."""
        self._closing = True
        for box in self._boxes.values():
            box.changed.set()

    def _put(self, site: str, order: bytes) -> None:
        box = self._boxes[site]
        mark = words.digest(order).hex()
        box.handed = box.handed and box.mark == mark  # the same order again was handed out before
        box.order, box.mark, box.done = order, mark, False
        box.changed.set()

    async def _exchange(self, request: Request) -> Response:
        """Take a reply, if there is one, and hand out the next order."""
        site = request.scope["extensions"]["peer"]["name"] if self._secure else request.headers.get(SITE, "")
        box = self._boxes.get(site)
        if box is None:
            return PlainTextResponse("this study has no site of that name", 403)
        self.seen[site] = time.time()
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > words.MOST:
                return PlainTextResponse("the reply is too large", 413)
        if body:
            if request.headers.get(ORDER, "") == box.mark:
                box.done = True
            try:
                self._came.put_nowait((site, bytes(body)))
            except queue.Full:  # whoever floods is asked again later
                return PlainTextResponse("too many replies", 429)
        if LAST in request.headers:
            return Response(status_code=204)
        try:
            async with asyncio.timeout(HOLD):
                while (box.done or box.order is None) and not self._closing:
                    box.changed.clear()
                    await box.changed.wait()
        except TimeoutError:
            return Response(status_code=204)
        if box.done or box.order is None:
            return Response(status_code=204)
        box.handed = True
        return Response(box.order, headers={ORDER: box.mark}, media_type="application/octet-stream")


async def _health(_: Request) -> Response:
    return JSONResponse({"ok": True})


def server_context(files: Certificates) -> ssl.SSLContext:
    """Return what the coordinator shows and asks for: a certificate of the same authority, both ways."""
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(files.certificate, files.key)
        context.load_verify_locations(files.authority)
    except (ssl.SSLError, OSError):
        raise BadInput(f"{files.certificate}, its key or the authority cannot be used; make them again.") from None
    context.verify_mode = ssl.CERT_REQUIRED
    return context

"""What may be asked of a collector over HTTP, beside uploads: studies and their cards, queries, estimates, events."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from sottovoce.collector.gathering import Gathering, owned
from sottovoce.collector.studies import CollectedStudies
from sottovoce.collector.uploads import Uploads
from sottovoce.core.errors import BadInput

LARGEST = 1 << 16  # bytes of a study's file sent over HTTP
STILL = 15.0  # seconds after which an event stream says that it is there
SOON = 1.0  # seconds between two counts on an event stream
NO_STUDY = "there is no such study here; /v1/studies lists them."
NO_GROUP = "the study has no such group; its card names them."

Handler = Callable[[Request, Gathering], Awaitable[Response]]


class Routes:
    """The routes around the studies of a collector."""

    def __init__(self, studies: CollectedStudies, uploads: Uploads) -> None:
        self._studies, self._uploads = studies, uploads
        self.routes = [
            Route("/health", self._health),
            Route("/metrics", self._metrics),
            Route("/v1/studies", self._list),
            Route("/v1/studies", self._create, methods=["POST"]),
            Route("/v1/studies/{study}", self._of(self._about)),
            Route("/v1/studies/{study}/card", self._of(self._card)),
            Route("/v1/studies/{study}/query", self._of(self._query)),
            Route("/v1/studies/{study}/estimate", self._of(self._estimate)),
            Route("/v1/studies/{study}/trajectory", self._of(self._trajectory)),
            Route("/v1/studies/{study}/events", self._of(self._events)),
            Route("/v1/studies/{study}/state", self._of(self._state), methods=["POST"]),
            Route("/v1/studies/{study}/scrub", self._of(self._scrub), methods=["POST"]),
        ]

    def _of(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        """Return a handler that finds the study first, and says in one sentence what is wrong."""

        async def found(request: Request) -> Response:
            gathering = self._studies.named(request.path_params["study"])
            if gathering is None:
                return refused(404, NO_STUDY)
            try:
                return await handler(request, gathering)
            except BadInput as error:
                return refused(400, str(error))

        return found

    async def _health(self, _: Request) -> Response:
        return JSONResponse({"studies": len(self._studies), "open": sum(not each.over for each in self._studies)})

    async def _list(self, _: Request) -> Response:
        return JSONResponse([_about(each) for each in self._studies])

    async def _create(self, request: Request) -> Response:
        """Begin a study from what its file would hold."""
        try:
            gathering = self._studies.create(await _json(request))
        except BadInput as error:
            return refused(400, str(error))
        return JSONResponse(_about(gathering), 201)

    async def _about(self, _: Request, gathering: Gathering) -> Response:
        return JSONResponse(_about(gathering))

    async def _card(self, _: Request, gathering: Gathering) -> Response:
        return Response(gathering.card, media_type="application/json")

    async def _query(self, request: Request, gathering: Gathering) -> Response:
        """Say what a group is asked now, or when to ask again."""
        group = owned(gathering.study.groups, request.query_params.get("group"))
        if group is None:
            return refused(404, NO_GROUP)
        here = {"study": gathering.identity.hex(), "group": group}
        asked = gathering.asked(group)
        if asked is None:
            over = gathering.state == "closed" or gathering.folds[group].over
            return JSONResponse({**here, "over": over, "wait": None if over else 0.2})
        return JSONResponse({**here, **asked})

    async def _estimate(self, request: Request, gathering: Gathering) -> Response:
        group = owned(gathering.study.groups, request.query_params.get("group"))
        return refused(404, NO_GROUP) if group is None else JSONResponse(gathering.estimate(group))

    async def _trajectory(self, _: Request, gathering: Gathering) -> Response:
        return JSONResponse(gathering.trajectory)

    async def _events(self, _: Request, gathering: Gathering) -> Response:
        """Tell each round that closes, and how many reports there are, as server-sent events."""
        return StreamingResponse(self._told(gathering), media_type="text/event-stream")

    async def _told(self, gathering: Gathering) -> AsyncIterator[bytes]:
        told, reports, spoke = 0, -1, time.monotonic()
        while True:
            if reports != gathering.reports:
                reports, spoke = gathering.reports, time.monotonic()
                yield b"event: count\ndata: " + msgspec.json.encode({"reports": reports, "at": time.time()}) + b"\n\n"
            while told < len(gathering.trajectory):
                yield b"data: " + msgspec.json.encode(gathering.trajectory[told]) + b"\n\n"
                told += 1
            if gathering.over:
                yield b"event: over\ndata: {}\n\n"
                return
            try:
                await asyncio.wait_for(self._uploads.moved.wait(), SOON)
            except TimeoutError:
                if time.monotonic() - spoke > STILL:
                    spoke = time.monotonic()
                    yield b": still here\n\n"

    async def _state(self, request: Request, gathering: Gathering) -> Response:
        """Pause, open or close a study."""
        given = await _json(request)
        self._studies.set_state(gathering, given.get("state") if isinstance(given, dict) else None)
        return JSONResponse(_about(gathering))

    async def _scrub(self, _: Request, gathering: Gathering) -> Response:
        """Remove the letters of closed rounds."""
        return JSONResponse({"scrubbed": self._studies.scrub(gathering)})

    async def _metrics(self, _: Request) -> Response:
        """Count, for Prometheus; nothing of a report is told."""
        lines = ["# TYPE sottovoce_uploads_total counter", f"sottovoce_uploads_total {self._uploads.uploads}"]
        lines.append("# TYPE sottovoce_reports_total counter")
        for each in self._studies:
            name = each.identity.hex()
            for group, fold in enumerate(each.folds):
                lines.append(f'sottovoce_reports_total{{study="{name}",group="{group}"}} {fold.reports}')
        lines.append("# TYPE sottovoce_refused_total counter")
        for each in self._studies:
            for why, count in sorted(each.refusals.items()):
                lines.append(f'sottovoce_refused_total{{study="{each.identity.hex()}",why="{why}"}} {count}')
        return PlainTextResponse("\n".join(lines) + "\n")


def _about(gathering: Gathering) -> dict[str, Any]:
    """Return what a list of studies says of one."""
    study = gathering.study
    return {
        "study": gathering.identity.hex(),
        "name": study.name,
        "question": study.question,
        "groups": study.groups,
        "method": study.method,
        "level": study.level,
        "epsilon": study.epsilon,
        "people": study.people,
        "state": gathering.state,
        "over": gathering.over,
        "reports": gathering.reports,
    }


def refused(status: int, sentence: str) -> Response:
    """Say in one sentence what is wrong."""
    return JSONResponse({"error": sentence}, status)


async def _json(request: Request) -> Any:
    """Read the JSON of a request, or refuse."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > LARGEST:
            raise BadInput(f"what is sent here has at most {LARGEST:,} bytes; send less.")
        parts.append(part)
    try:
        return msgspec.json.decode(b"".join(parts))
    except (msgspec.DecodeError, RecursionError):
        raise BadInput("what was sent is not JSON; correct it.") from None

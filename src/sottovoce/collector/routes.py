"""What may be asked of a collector over HTTP, beside uploads: studies and their cards, queries, estimates, events."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from sottovoce.collector.access import ADMIN, READER, Access
from sottovoce.collector.gathering import ASIDE, Gathering, owned
from sottovoce.collector.log_connection import AWAY
from sottovoce.collector.openapi import description
from sottovoce.collector.peers import CHANGE, COUNTS, LOOK, QUERY, SCRUB, Peers
from sottovoce.collector.planning import planned
from sottovoce.collector.studies import CollectedStudies
from sottovoce.collector.uploads import Uploads, status_of, whole_body
from sottovoce.core.errors import BadInput
from sottovoce.protocol.device import IDENTITY

LARGEST = 1 << 16  # bytes of a study's file sent over HTTP
WATCHING = 1000  # event streams at a time, so that connections are left for those who answer
STILL = 15.0  # seconds after which an event stream says that it is there
SOON = 1.0  # seconds between two counts on an event stream
NO_STUDY = "there is no such study here; /v1/studies lists them."
MANY = "too many look on at this moment; ask for the estimate now and then instead."
ELSEWHERE = "another host owns this group; let the proxy send requests with its name there."
PARTLY = "a process is away, and the letters in its log stay; send the same again later."
NO_GROUP = "the study has no such group; its card names them."
NO_PATH = "there is nothing at this address; /v1/openapi.json describes what there is."
NO_METHOD = "this is done by another method; the header 'allow' names it."
PATIENCE = 10.0  # seconds that a body may take

Handler = Callable[[Request, Gathering], Awaitable[Response]]


class ProcessCounts(msgspec.Struct):
    """What one process has counted: uploads, reports a study and group, refusals a study and reason."""

    uploads: int
    reports: list[tuple[str, int, int]]
    refused: list[tuple[str, str, int]]


class Routes:
    """The routes around the studies of a collector."""

    def __init__(self, studies: CollectedStudies, uploads: Uploads, access: Access, peers: Peers | None = None) -> None:
        self._studies, self._uploads, self._access, self._peers = studies, uploads, access, peers
        self._watching = 0
        self.routes = [
            Route("/health", self._health),
            Route("/metrics", self._metrics),
            Route("/v1/openapi.json", self._openapi),
            Route("/v1/studies", self._list),
            Route("/v1/studies", self._create, methods=["POST"]),
            Route("/v1/plan", self._plan, methods=["POST"]),
            Route("/v1/studies/{study}", self._of(self._about, reads=True)),
            Route("/v1/studies/{study}/card", self._of(self._card)),
            Route("/v1/studies/{study}/query", self._of(self._query)),
            Route("/v1/studies/{study}/estimate", self._of(self._estimate, reads=True)),
            Route("/v1/studies/{study}/trajectory", self._of(self._trajectory, reads=True)),
            Route("/v1/studies/{study}/events", self._of(self._events, reads=True)),
            Route("/v1/studies/{study}/state", self._of(self._state, changes=True), methods=["POST"]),
            Route("/v1/studies/{study}/scrub", self._of(self._scrub, changes=True), methods=["POST"]),
        ]

    def _allowed(self, request: Request, changes: bool, reads: bool) -> Response | None:
        """Return None if a request may change or read, or what it is told."""
        header = request.headers.get("authorization")
        if changes and not self._access.may_change(header):
            return refused(401, ADMIN, {"www-authenticate": "Bearer"})
        if reads and not self._access.may_read(header):
            return refused(401, READER, {"www-authenticate": 'Basic realm="results"'})
        return None

    def _of(
        self, handler: Handler, *, changes: bool = False, reads: bool = False
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return a handler that finds the study first, and says in one sentence what is wrong."""

        async def found(request: Request) -> Response:
            if (no := self._allowed(request, changes, reads)) is not None:
                return no
            gathering = self._studies.named(request.path_params["study"])
            if gathering is None:
                return refused(404, NO_STUDY)
            try:
                return await handler(request, gathering)
            except BadInput as error:
                return refused(status_of(error), str(error))

        return found

    async def _health(self, _: Request) -> Response:
        if self._studies.broken:
            return refused(503, AWAY)
        return JSONResponse({"studies": len(self._studies), "open": sum(not each.over for each in self._studies)})

    async def _openapi(self, _: Request) -> Response:
        return JSONResponse(description())

    async def _list(self, _: Request) -> Response:
        return JSONResponse([_about(each) for each in self._studies])

    async def _create(self, request: Request) -> Response:
        """Begin a study from what its file would hold."""
        if (no := self._allowed(request, True, False)) is not None:
            return no
        try:
            return await self._change({"create": await _json(request)})
        except BadInput as error:
            return refused(status_of(error), str(error))

    async def _change(self, what: dict[str, Any]) -> Response:
        """Have the first process change what stands in the log, and let all others look."""
        if self._peers is None or self._peers.part.number == 0:
            status, said = self._changed(what)
        else:
            try:
                status, said = await self._peers.ask(0, CHANGE, msgspec.json.encode(what))
            except BadInput as error:
                return refused(503, str(error))
            if not self._studies.broken:
                self._studies.look()
        if self._peers is not None and status < 300:
            await self._peers.ask_all(LOOK)
        return Response(said, status, media_type="application/json")

    def _changed(self, what: dict[str, Any]) -> tuple[int, bytes]:
        """Begin a study, or bring it to another state."""
        try:
            if "create" in what:
                return 201, msgspec.json.encode(_about(self._studies.create(what["create"])))
            gathering = self._studies.named(what["study"])
            if gathering is None:
                return 404, msgspec.json.encode({"error": NO_STUDY})
            self._studies.set_state(gathering, what["state"])
            return 200, msgspec.json.encode(_about(gathering))
        except BadInput as error:
            return status_of(error), msgspec.json.encode({"error": str(error)})

    async def handed(self, kind: int, said: bytes) -> tuple[int, bytes]:
        """Answer what another process has handed on: who may ask was looked at there."""
        if kind == CHANGE:
            return self._changed(msgspec.json.decode(said))
        if kind == COUNTS:
            return 200, msgspec.json.encode(self._counts())
        gathering = self._studies.named(said[:IDENTITY].hex())
        if gathering is None:
            return 404, msgspec.json.encode({"error": NO_STUDY})
        try:
            if kind == SCRUB:
                return 200, msgspec.json.encode(await self._scrubbed(gathering))
        except BadInput as error:
            return status_of(error), msgspec.json.encode({"error": str(error)})
        if self._studies.broken:
            return 503, msgspec.json.encode({"error": AWAY})
        return 200, msgspec.json.encode(_asked(gathering, int.from_bytes(said[IDENTITY:], "big")))

    async def _plan(self, request: Request) -> Response:
        """Say what a study would come to, or that it could not begin; nothing is begun."""
        if (no := self._allowed(request, True, False)) is not None:
            return no
        try:
            given = await _json(request)
        except BadInput as error:
            return refused(400, str(error))
        try:
            return JSONResponse(planned(given))
        except BadInput as error:
            return JSONResponse({"refused": str(error)})

    async def _about(self, _: Request, gathering: Gathering) -> Response:
        return JSONResponse(_about(gathering))

    async def _card(self, _: Request, gathering: Gathering) -> Response:
        return Response(gathering.card, media_type="application/json")

    async def _query(self, request: Request, gathering: Gathering) -> Response:
        """Say what a group is asked now, or when to ask again."""
        group = owned(gathering.study.groups, request.query_params.get("group"))
        if group is None:
            return refused(404, NO_GROUP)
        if self._studies.broken:  # a round that is not kept yet may not be asked for
            return refused(503, AWAY)
        if gathering.part.owns(group):
            return JSONResponse(_asked(gathering, group))
        if self._peers is None:
            return refused(421, ELSEWHERE)
        try:
            said = gathering.identity + group.to_bytes(2, "big")
            status, told = await self._peers.ask(gathering.part.owner(group), QUERY, said)
        except BadInput as error:
            return refused(503, str(error))
        return Response(told, status, media_type="application/json")

    async def _estimate(self, request: Request, gathering: Gathering) -> Response:
        group = owned(gathering.study.groups, request.query_params.get("group"))
        if gathering.aside:
            return refused(503, f"{ASIDE}.")
        return refused(404, NO_GROUP) if group is None else JSONResponse(gathering.estimate(group))

    async def _trajectory(self, _: Request, gathering: Gathering) -> Response:
        return Response(b"[" + b",".join(gathering.trajectory) + b"]", media_type="application/json")

    async def _events(self, _: Request, gathering: Gathering) -> Response:
        """Tell each round that closes, and how many reports there are, as server-sent events."""
        if self._watching >= WATCHING:
            return refused(503, MANY, {"retry-after": "5"})
        return StreamingResponse(self._told(gathering), media_type="text/event-stream")

    async def _told(self, gathering: Gathering) -> AsyncIterator[bytes]:
        self._watching += 1
        try:
            async for event in self._happened(gathering):
                yield event
        finally:
            self._watching -= 1

    async def _happened(self, gathering: Gathering) -> AsyncIterator[bytes]:
        """Return what happens to a study, from its beginning on."""
        told, reports, spoke = 0, -1, time.monotonic()
        while True:
            gathering = self._studies.named(gathering.identity.hex()) or gathering  # made anew where a log was away
            if reports != gathering.reports:
                reports, spoke = gathering.reports, time.monotonic()
                yield b"event: count\ndata: " + msgspec.json.encode({"reports": reports, "at": time.time()}) + b"\n\n"
            while told < len(gathering.trajectory):
                yield b"data: " + gathering.trajectory[told] + b"\n\n"
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
        if not isinstance(given, dict) or set(given) != {"state"}:
            raise BadInput('the state of a study is {"state": "open"}, or paused, or closed; send that alone.')
        return await self._change({"study": gathering.identity.hex(), "state": given["state"]})

    async def _scrub(self, _: Request, gathering: Gathering) -> Response:
        """Remove the letters of closed rounds."""
        scrubbed = await self._scrubbed(gathering)
        if self._peers is not None and not self._studies.shared:
            told = await self._peers.ask_all(SCRUB, gathering.identity)
            if len(told) < self._peers.part.of - 1 or any(status != 200 for status, _ in told):
                return refused(503, PARTLY)
            scrubbed += sum(int(said) for _, said in told)
        return JSONResponse({"scrubbed": scrubbed})

    async def _scrubbed(self, gathering: Gathering) -> int:
        """Scrub what is in this process's log, and let others be served between two steps."""
        scrubbed = 0
        for count in self._studies.scrub(gathering):
            scrubbed += count
            await asyncio.sleep(0)
        return scrubbed

    async def _metrics(self, _: Request) -> Response:
        """Count, for Prometheus; nothing of a report is told."""
        found = [self._counts()]
        if self._peers is not None:
            found += [msgspec.json.decode(said, type=ProcessCounts) for _, said in await self._peers.ask_all(COUNTS)]
        lines = ["# TYPE sottovoce_uploads_total counter"]
        lines.append(f"sottovoce_uploads_total {sum(each.uploads for each in found)}")
        lines.append("# TYPE sottovoce_reports_total counter")
        for study, group, count in (row for each in found for row in each.reports):
            lines.append(f'sottovoce_reports_total{{study="{study}",group="{group}"}} {count}')
        lines.append("# TYPE sottovoce_refused_total counter")
        refusals: dict[tuple[str, str], int] = {}
        for study, why, count in (row for each in found for row in each.refused):
            refusals[study, why] = refusals.get((study, why), 0) + count
        for (study, why), count in sorted(refusals.items()):
            lines.append(f'sottovoce_refused_total{{study="{study}",why="{why}"}} {count}')
        return PlainTextResponse("\n".join(lines) + "\n")

    def _counts(self) -> ProcessCounts:
        """Return what this process has counted."""
        reports = [(each.identity.hex(), k, each.folds[k].reports) for each in self._studies for k in each.mine]
        refused_ = [(each.identity.hex(), why, n) for each in self._studies for why, n in each.refusals.items()]
        return ProcessCounts(self._uploads.uploads, reports, refused_)

    async def hear(self) -> None:
        """Ask the other processes how many reports they have by now."""
        if self._peers is None:
            return
        for _, said in await self._peers.ask_all(COUNTS):
            for study, group, count in msgspec.json.decode(said, type=ProcessCounts).reports:
                if (gathering := self._studies.named(study)) is not None:
                    gathering.elsewhere[group] = count


def _asked(gathering: Gathering, group: int) -> dict[str, Any]:
    """Return what a group is asked now, or when to ask again."""
    here = {"study": gathering.identity.hex(), "group": group}
    asked = gathering.asked(group)
    if asked is None:
        over = gathering.state == "closed" or gathering.folds[group].over
        return {**here, "over": over, "wait": None if over else 0.2}
    return {**here, **asked}


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
        "state": "paused" if gathering.aside else gathering.state,
        "over": gathering.over,
        "reports": gathering.reports,
    }


async def away(_: Request, error: Exception) -> Response:
    """Say that the log cannot be used now."""
    return refused(503, str(error))


def refused(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    """Say in one sentence what is wrong."""
    return JSONResponse({"error": sentence}, status, headers)


async def _json(request: Request) -> Any:
    """Read the JSON of a request, or refuse."""
    try:
        body = await asyncio.wait_for(whole_body(request.receive, LARGEST), PATIENCE)
    except TimeoutError:
        raise BadInput("what was sent took too long; send it again.") from None
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        raise BadInput("what was sent is not JSON; correct it.") from None


async def _no_path(_: Request, __: Exception) -> Response:
    return refused(404, NO_PATH)


async def _no_method(_: Request, error: Exception) -> Response:
    return refused(405, NO_METHOD, dict(getattr(error, "headers", None) or {}))


SAID = {404: _no_path, 405: _no_method}  # where Starlette would say two words

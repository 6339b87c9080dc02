"""The pages of a collector, as files: a list, a live dashboard, a survey, a wizard; plotly's script draws charts."""

import gzip
from collections.abc import AsyncIterator
from importlib.resources import files

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route

from sottovoce.web.parts import page_part

PLOTLY = "/plotly.js"
SCRIPT, PART = "text/javascript; charset=utf-8", 1 << 16  # bytes of a part
SERVED = {
    "/": "index.html",
    "/new": "new.html",
    "/studies/{study}": "dashboard.html",
    "/studies/{study}/survey": "survey.html",
    **{
        f"/{name}": name
        for name in (
            "studies.js", "wizard.js", "dashboard.js", "chart.js", "survey.js", "page.js", "device.js", "style.css",
            "parts.js",
        )
    },
}  # fmt: skip


def pages() -> list[Route]:
    """Return the routes of the pages."""
    return [*(Route(path, _file(name)) for path, name in SERVED.items()), Route(PLOTLY, ChartScript().send)]


def draws(path: str) -> bool:
    """Tell whether the page at a path draws charts, whose script writes styles into it."""
    return path.startswith("/studies/") and path.count("/") == 2


def _file(name: str):  # type: ignore[no-untyped-def]  # what Starlette takes has no short name
    part = page_part(name, "collector")

    async def sent(_: Request) -> Response:
        return Response(part.body, media_type=part.kind)

    return sent


class ChartScript:
    """Plotly's script as its wheel ships it, compressed once, when it is first asked for; sent part by part.

    Of what is sent as one, a copy would wait in memory for each reader who does not read.
    """

    def __init__(self) -> None:
        self._packed: bytes | None = None

    async def send(self, request: Request) -> Response:
        """Send the script, compressed where the browser takes it."""
        script = files("plotly") / "package_data" / "plotly.min.js"
        vary = {"vary": "accept-encoding"}
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return FileResponse(str(script), media_type=SCRIPT, headers=vary)
        if self._packed is None:
            self._packed = await run_in_threadpool(lambda: gzip.compress(script.read_bytes(), 6, mtime=0))
        size = {"content-length": str(len(self._packed)), "content-encoding": "gzip"}
        return StreamingResponse(_parts(self._packed), media_type=SCRIPT, headers={**vary, **size})


async def _parts(whole: bytes) -> AsyncIterator[bytes]:
    """Return bytes part by part."""
    for begun in range(0, len(whole), PART):
        yield whole[begun : begun + PART]

"""The pages of a collector: a live dashboard and a survey, as files; plotly's own script draws the charts."""

from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
SERVED = {
    "/studies/{study}": "dashboard.html",
    "/studies/{study}/survey": "survey.html",
    "/dashboard.js": "dashboard.js",
    "/survey.js": "survey.js",
    "/device.js": "device.js",
    "/style.css": "style.css",
}


def pages() -> list[Route]:
    """Return the routes of the pages."""
    return [*(Route(path, _file(name)) for path, name in SERVED.items()), Route("/plotly.js", _plotly)]


def _file(name: str):  # type: ignore[no-untyped-def]  # what Starlette takes has no short name
    body = (files("sottovoce.collector") / "web" / name).read_bytes()
    kind = f"{KINDS[name.rpartition('.')[2]]}; charset=utf-8"

    async def sent(_: Request) -> Response:
        return Response(body, media_type=kind)

    return sent


async def _plotly(_: Request) -> Response:
    """Send the script that draws, which the browser may keep."""
    script = files("plotly") / "package_data" / "plotly.min.js"
    return Response(script.read_bytes(), media_type="text/javascript; charset=utf-8")

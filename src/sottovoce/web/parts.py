"""The files that pages share, and the headers that keep a page to itself: it may ask nobody but whoever served it."""

from importlib.resources import files
from typing import NamedTuple

SHARED = ("style.css", "parts.js")
KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


class PagePart(NamedTuple):
    """A file of a page, and its type as browsers are told it."""

    body: bytes
    kind: str


def page_part(name: str, side: str) -> PagePart:
    """Return a file that pages share, or one of the folder ``web`` of a side that has pages of its own.

    >>> page_part("style.css", "collector").kind, page_part("wizard.js", "collector").kind
    ('text/css; charset=utf-8', 'text/javascript; charset=utf-8')
    """
    folder = files("sottovoce.web") if name in SHARED else files(f"sottovoce.{side}") / "web"
    return PagePart((folder / name).read_bytes(), f"{KINDS[name.rpartition('.')[2]]}; charset=utf-8")

"""The site's side of the direct carrier: it connects outward, asks for orders and answers them, as long as it runs.

The connection may break and the coordinator may die: the site goes on asking, with pauses that grow to a few seconds,
and sends its last reply again, which is the same bytes.
"""

import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

import httpx

from sottovoce.core.errors import BadInput
from sottovoce.federation import words

HOLD = 40.0  # seconds for which a poll is waited for
SHORTEST, LONGEST = 0.1, 5.0  # pauses after a failure
ORDER, SITE, LAST = "x-order", "x-site", "x-last"  # headers: the order answered, a name without TLS, no poll to come


class Handles(Protocol):
    """What answers orders."""

    def handle(self, data: bytes) -> bytes:
        """Answer an order."""


class SiteLine(NamedTuple):
    """Where the coordinator is, and by what both sides know each other; without files the site only says its name."""

    url: str
    name: str
    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


def connect(line: SiteLine) -> httpx.Client:
    """Open a client that trusts one authority alone and shows its own certificate; plain HTTP on loopback only."""
    try:
        url = httpx.URL(line.url)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:
        raise BadInput("the coordinator's address must be a URL such as https://coordinator.example:8443; give one.")
    timeout = httpx.Timeout(HOLD, connect=10.0)
    if line.authority is None or line.certificate is None or line.key is None:
        if url.scheme != "http" or url.host not in ("127.0.0.1", "::1", "localhost"):
            raise BadInput("without certificates a site talks over loopback alone; give --certificates.")
        return httpx.Client(base_url=url, timeout=timeout, headers={SITE: line.name}, trust_env=False)
    if url.scheme != "https":
        raise BadInput("a site with certificates talks over HTTPS; give a URL that begins with https://.")
    try:
        context = ssl.create_default_context(cafile=str(line.authority))
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(line.certificate, line.key)
    except (ssl.SSLError, OSError):
        raise BadInput(f"{line.certificate}, its key or the authority cannot be used; ask for them again.") from None
    return httpx.Client(base_url=url, timeout=timeout, verify=context, trust_env=False)


def poll(
    client: httpx.Client,
    site: Handles,
    stop: threading.Event,
    *,
    once: bool = False,
    heard: Callable[[str], None] | None = None,
) -> None:
    """Answer orders until told to stop or, with ``once``, until a study is over; ``heard`` learns of the line."""
    reply, mark, pause, over = b"", "", SHORTEST, False
    say = (lambda _: None) if heard is None else heard
    while not stop.is_set():
        try:
            last = {LAST: "yes"} if over and once else {}
            got = client.post("/exchange", content=reply, headers={ORDER: mark, **last})
        except httpx.TransportError as error:
            say(f"no line to the coordinator ({type(error).__name__}); trying again")
            if over and once:
                return
            stop.wait(pause)
            pause = min(2 * pause, LONGEST)
            continue
        if got.status_code == 403:
            raise BadInput("the coordinator has no site of this name in its study; check the name in the policy.")
        if got.status_code not in (200, 204):
            say(f"the coordinator answers {got.status_code}; trying again")
            stop.wait(pause)
            pause = min(2 * pause, LONGEST)
            continue
        pause, reply, mark = SHORTEST, b"", ""
        if over and once:
            return
        if got.status_code == 204 or len(got.content) > words.MOST:
            continue
        mark, reply = got.headers.get(ORDER, ""), site.handle(got.content)
        over = isinstance(words.order_of(got.content), words.Over) if len(got.content) < 4096 else False

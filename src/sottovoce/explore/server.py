"""The page over HTTP, on loopback alone: files without a secret, and under /v1 whatever needs the key.

Every answer is a file of the page, JSON, or a report; every refusal one sentence. Requests are written down nowhere.
"""

import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from sottovoce.core.calling import places
from sottovoce.core.errors import BadInput
from sottovoce.explore.entrance import HOST, STRANGER, UNKNOWN, USED, Entrance, refusal
from sottovoce.explore.session import ExploreSession, NotNow, UnknownRun
from sottovoce.explore.words import on_page
from sottovoce.web.parts import HEADERS, page_part

LARGEST = 1 << 14  # bytes of a request's body
SECONDS = 30  # that a connection may stay idle
PAGE = {
    "/": "index.html",
    **{
        f"/{name}": name
        for name in ("explore.js", "controls.js", "plan.js", "picture.js", "parts.js", "style.css", "explore.css")
    },
}
JSON, HTML = "application/json", "text/html; charset=utf-8"
_LENGTH = re.compile(r"[0-9]{1,9}")
OWN = {**HEADERS, "cross-origin-opener-policy": "same-origin", "cross-origin-resource-policy": "same-origin"}


class Answer(NamedTuple):
    """What is sent back."""

    status: int
    kind: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class QuietServer(ThreadingHTTPServer):
    """A server whose broken connections are nobody's concern: the terminal is for addresses and hints."""

    request_queue_size = 64  # connections that wait while the program is busy; a browser opens several at once

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a connection that broke."""


class ExploreServer:
    """Serves a session on a port of loopback until it is ended; ``said`` is called with each new address."""

    def __init__(self, session: ExploreSession, port: int, said: Callable[[str], None]) -> None:
        self._session, self._said = session, said
        self._entrance = Entrance(lambda _: said(self.url))
        try:
            self._server = QuietServer((HOST, port), _handler(self))
        except (OSError, OverflowError):
            raise BadInput(f"the page cannot use port {port}; give another with port=, or none.") from None
        self._server.daemon_threads = True

    @property
    def port(self) -> int:
        """Return the port."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Return the address of the page, with a token that is good once."""
        return f"http://{HOST}:{self.port}/#{self._entrance.token}"

    def serve(self) -> None:
        """Answer requests until the page, or whoever holds the terminal, ends it."""
        try:
            self._server.serve_forever(poll_interval=0.1)
        finally:
            self._server.server_close()

    def end(self) -> None:
        """End serving, from any thread but the one that serves."""
        threading.Thread(target=self._server.shutdown, daemon=True).start()

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        """Answer one request."""
        if (why := refusal(method, path, headers, self.port)) is not None:
            return _refused(403, why)
        if not path.startswith("/v1/"):
            return self._page(method, path)
        if path != "/v1/enter" and not self._entrance.knows(headers.get("authorization")):
            return _refused(401, STRANGER)
        try:
            if method == "GET":
                return self._told(path.removeprefix("/v1/").split("/"))
            return self._done(path.removeprefix("/v1/"), _object(headers, body))
        except (NotNow, UnknownRun) as error:
            return _refused(409 if isinstance(error, NotNow) else 404, str(error))
        except BadInput as error:
            return _refused(400, on_page(str(error)))

    def _page(self, method: str, path: str) -> Answer:
        """Return a file of the page."""
        if path not in PAGE:
            return _refused(404, "there is no such page here.")
        if method != "GET":
            return _refused(405, "there is only GET here.")
        part = page_part(PAGE[path], "explore")
        return Answer(200, part.kind, part.body)

    def _told(self, path: list[str]) -> Answer:
        """Answer what changes nothing."""
        if path == ["file"]:
            return _json(self._session.about())
        if path == ["runs"]:
            return _json(self._session.runs())
        if path[0] == "runs" and len(path) == 2:
            return _json(self._session.run(path[1]).on_page())
        if path[0] == "runs" and path[2:] == ["result"]:
            return Answer(200, JSON, self._session.result(path[1]).encode())
        if path[0] == "runs" and path[2:] == ["report"]:
            return Answer(200, HTML, self._session.report(path[1]).encode())
        return _refused(404, "there is no such thing here.")

    def _done(self, what: str, given: dict[str, Any]) -> Answer:
        """Answer what is sent with a body."""
        if what == "enter":
            key = self._entrance.enter(given.get("token"))
            if key is None:
                return _refused(401, USED if self._entrance.was_used(given.get("token")) else UNKNOWN)
            return _json({"key": key})
        if what == "plan":
            return _json(self._session.plan(given.get("question")))
        if what == "sites":
            return _json({"sites": self._session.sites(given.get("question"))})
        if what == "runs":
            return _json(self._session.begin(given.get("id"), given.get("question")).on_page())
        if what == "end":
            if self._session.asking:
                raise NotNow("a question is being asked; end when it is answered.")
            self.end()
            return _json({"ended": True})
        return _refused(404, "there is no such thing here.")


def _object(headers: dict[str, str], body: bytes) -> dict[str, Any]:
    """Read a body of JSON, or refuse it without quoting it."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise BadInput("what is sent here is JSON; load the page again.")
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BadInput("what was sent cannot be read; load the page again.")
    return found


def _json(value: Any) -> Answer:
    return Answer(200, JSON, json.dumps(value, allow_nan=False, ensure_ascii=False).encode())


def _refused(status: int, why: str) -> Answer:
    return Answer(status, JSON, json.dumps({"error": why}, ensure_ascii=False).encode())


def _handler(server: ExploreServer) -> type[BaseHTTPRequestHandler]:
    """Return what reads a request and sends its answer."""

    class ExploreRequest(BaseHTTPRequestHandler):
        """One connection; whatever goes wrong in it is one sentence, and none of the data."""

        protocol_version = "HTTP/1.1"
        timeout = SECONDS
        server_version, sys_version = "sottovoce", ""

        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            length = headers.get("content-length", "0")
            if "transfer-encoding" in headers or not _LENGTH.fullmatch(length) or int(length) > LARGEST:
                self.close_connection = True
                self._send(_refused(413, f"what is sent here has a length, of at most {LARGEST:,} bytes."))
                return
            body = self.rfile.read(int(length))
            try:
                answer = server.answer(self.command, self.path, headers, body)
            except Exception as error:  # its message may quote the data
                where = places(error)
                at = where[-1] if where else "an unknown place"
                said = f"an unexpected {type(error).__name__} at {at}; please report this line, which shows no data."
                answer = _refused(500, said)
            self._send(answer)

        def do_POST(self) -> None:
            self.do_GET()

        def _send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for name, value in {**OWN, "content-type": answer.kind, "content-length": str(len(answer.body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)

        def send_error(self, code: int, *_: str | None) -> None:
            """Refuse what is no request that the page would send, without quoting it."""
            self.close_connection = True
            self._send(_refused(code, "this is no request that the page would send."))

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: an address holds a token, and the terminal belongs to the command."""

    return ExploreRequest

"""The site's door on its own machine: a Unix socket for its owner alone, where a carrier hands orders in as bytes.

Whoever carries for a site, and whatever code it was sent, can put orders and hear replies; the records stay here.
A message is its length in four bytes and then its bytes, both ways.
"""

import contextlib
import errno
import socket
import socketserver
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from sottovoce.core.errors import BadInput
from sottovoce.federation import words

HEAD = 4  # bytes that say how long a message is
IDLE = 60.0  # seconds that one message may take to come or go
ANSWER = 600.0  # seconds that a reply is waited for
NONE = bytes(16)


class Handling(Protocol):
    """What answers orders."""

    def handle(self, data: bytes) -> bytes:
        """Answer an order."""


def ask(path: str | Path, order: bytes) -> bytes:
    """Hand an order to the site behind a socket, and return its reply."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.settimeout(ANSWER)
            line.connect(str(path))
            _put(line, order)
            reply = _take(line)
    except (OSError, ValueError) as error:
        raise BadInput(
            f"no site answers at the socket of this node ({type(error).__name__}); start sottovoce site --socket there."
        ) from None
    if reply is None:
        raise BadInput("the site behind the socket ended without a reply; look at its own messages.")
    return reply


def answer_on(path: str | Path, site: Handling, stop: threading.Event, *, once: bool = False) -> None:
    """Answer orders on a socket until told to stop or, with ``once``, until a study is over."""

    def done(order: bytes) -> None:
        with contextlib.suppress(BadInput):
            if once and isinstance(words.order_of(order), words.Over):
                stop.set()

    SocketDoor(path, site, done).serve(stop)


class SocketDoor:
    """Answers orders on a Unix socket until stopped; connections are answered side by side."""

    def __init__(self, path: str | Path, site: Handling, done: Callable[[bytes], None] | None = None) -> None:
        self._path = Path(path)
        _clear(self._path)

        class Caller(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                self.request.settimeout(IDLE)
                with contextlib.suppress(OSError):
                    _converse(self.request, site, done)

        try:
            self._server = _Server(str(self._path), Caller)
        except OSError as error:
            why = (
                "its path is too long" if "too long" in str(error) else errno.errorcode.get(error.errno or 0, "failed")
            )
            raise BadInput(f"the socket {self._path} cannot be made ({why}); give another path.") from None

    def serve(self, stop: threading.Event) -> None:
        """Answer until told to stop, and take the socket away."""
        worker = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="sottovoce-socket", daemon=True)
        worker.start()
        try:
            stop.wait()
        finally:
            self._server.shutdown()
            self._server.server_close()
            self._path.unlink(missing_ok=True)


class _Server(socketserver.ThreadingUnixStreamServer):
    """A server whose socket is its owner's before anybody can connect."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def server_bind(self) -> None:
        super().server_bind()
        Path(str(self.server_address)).chmod(stat.S_IRUSR | stat.S_IWUSR)  # nobody can connect before it listens


def _converse(line: socket.socket, site: Handling, done: Callable[[bytes], None] | None) -> None:
    """Answer the orders of one connection."""
    while True:
        try:
            order = _take(line)
        except ValueError:
            _put(line, words.encode(words.Refused(NONE, f"an order is larger than {words.MOST:,} bytes; send less.")))
            return
        if order is None:
            return
        _put(line, site.handle(order))
        if done is not None:
            done(order)


def _put(line: socket.socket, data: bytes) -> None:
    if len(data) > words.MOST:
        raise ValueError("too large")
    line.sendall(len(data).to_bytes(HEAD, "big") + data)


def _take(line: socket.socket) -> bytes | None:
    """Read one message; None where the other side has ended, ValueError where it announces too much."""
    head = _read(line, HEAD)
    if head is None:
        return None
    length = int.from_bytes(head, "big")
    if length > words.MOST:
        raise ValueError("too large")
    return _read(line, length)


def _read(line: socket.socket, count: int) -> bytes | None:
    """Read so many bytes, or None if they do not come to an end."""
    data = bytearray()
    while len(data) < count:
        piece = line.recv(min(count - len(data), 1 << 16))
        if not piece:
            return None
        data += piece
    return bytes(data)


def _clear(path: Path) -> None:
    """Remove the socket that a killed site left behind; leave everything else alone."""
    if not path.parent.is_dir():
        raise BadInput(f"there is no folder for the socket {path}; make it, for the site's user alone.")
    if not path.exists():
        return
    if not path.is_socket():
        raise BadInput(f"{path} is a file and no socket; give another path.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        try:
            line.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except OSError:
            raise BadInput(f"the socket {path} belongs to somebody else; give another path.") from None
    raise BadInput(f"a site answers at {path} already; stop it first, or give another path.")

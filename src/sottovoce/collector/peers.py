"""The processes of one collector speak to each other over Unix sockets: what belongs to another one is handed on.

Each process owns some groups of every study. A frame is its length (4 bytes), the number of the request (4), a kind (1,
in an answer 2 bytes of status), and what is said. Answers come in any order.
"""

import asyncio
import contextlib
import logging
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from sottovoce.core.errors import BadInput

LOG = logging.getLogger("sottovoce.collector")
UPLOAD, QUERY, COUNTS, LOOK, SCRUB, CHANGE = range(6)
LARGEST = 1 << 20  # bytes of a frame
PATIENCE = 15.0  # seconds that another process may take
TRIES, BETWEEN = 100, 0.05  # to reach it, and seconds between them
AWAY = "the process that owns this group is away; send the same again later."
_ASKED, _TOLD = struct.Struct(">IIB"), struct.Struct(">IIH")

Handler = Callable[[int, bytes], Awaitable[tuple[int, bytes]]]


class Part(NamedTuple):
    """Which of how many processes this is: it owns every so manieth group, and counts from 0."""

    number: int = 0
    of: int = 1

    def owner(self, group: int) -> int:
        """Return which process owns a group."""
        return group % self.of

    def owns(self, group: int) -> bool:
        """Tell whether this process owns a group."""
        return group % self.of == self.number


class Peers:
    """The other processes, by the sockets in a folder that they share."""

    def __init__(self, part: Part, folder: Path) -> None:
        self.part, self._folder = part, folder
        self._lines: dict[int, _Line] = {}
        self._server: asyncio.Server | None = None

    async def serve(self, handler: Handler) -> None:
        """Answer what the others hand on, until `close`."""
        self._server = await asyncio.start_unix_server(
            lambda reader, writer: _answer(reader, writer, handler), self._folder / f"{self.part.number}.sock"
        )

    def close(self) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.close()
        for line in self._lines.values():
            line.close()

    async def ask(self, part: int, kind: int, said: bytes = b"") -> tuple[int, bytes]:
        """Hand something on, and return status and answer; refuse where the other one is away."""
        line = self._lines.get(part)
        if line is None or line.broken:
            line = self._lines[part] = _Line(self._folder / f"{part}.sock")
        try:
            return await asyncio.wait_for(line.ask(kind, said), PATIENCE)
        except (OSError, EOFError, TimeoutError):
            line.close()
            raise BadInput(AWAY) from None

    async def ask_all(self, kind: int, said: bytes = b"") -> list[tuple[int, bytes]]:
        """Ask all other processes; those that are away do not answer."""
        others = (k for k in range(self.part.of) if k != self.part.number)
        told = await asyncio.gather(*(self.ask(k, kind, said) for k in others), return_exceptions=True)
        return [each for each in told if isinstance(each, tuple)]


class _Line:
    """A connection to one other process, with the requests that wait for an answer."""

    def __init__(self, path: Path) -> None:
        self._path, self._next, self.broken = path, 0, False
        self._waiting: dict[int, asyncio.Future[tuple[int, bytes]]] = {}
        self._opened: asyncio.Task[asyncio.StreamWriter] | None = None
        self._reading: asyncio.Task[None] | None = None

    async def ask(self, kind: int, said: bytes) -> tuple[int, bytes]:
        """Send a request and wait for its answer."""
        if self._opened is None:
            self._opened = asyncio.create_task(self._open())
        writer = await asyncio.shield(self._opened)
        self._next = self._next + 1 & 0xFFFFFFFF
        number = self._next
        told: asyncio.Future[tuple[int, bytes]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = told
        try:
            writer.write(_ASKED.pack(len(said), number, kind) + said)
            await writer.drain()
            return await told
        finally:
            self._waiting.pop(number, None)

    async def _open(self) -> asyncio.StreamWriter:
        for left in reversed(range(TRIES)):
            try:
                reader, writer = await asyncio.open_unix_connection(self._path)
                break
            except OSError:  # it has not begun yet, or has died and comes back
                if not left:
                    raise
                await asyncio.sleep(BETWEEN)
        self._reading = asyncio.create_task(self._read(reader, writer))
        if self.broken:  # whoever asked has given up meanwhile
            self._reading.cancel()
        return writer

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Give answers to those who wait; where the connection ends, they are told so."""
        try:
            while True:
                length, number, status = _TOLD.unpack(await reader.readexactly(_TOLD.size))
                said = await reader.readexactly(length)
                waiting = self._waiting.get(number)
                if waiting is not None and not waiting.done():
                    waiting.set_result((status, said))
        except (OSError, EOFError):
            self.close()
        finally:
            writer.close()

    def close(self) -> None:
        """End the connection; whoever waits is told so."""
        self.broken = True
        if self._reading is not None:
            self._reading.cancel()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ConnectionResetError())


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handler: Handler) -> None:
    """Answer the requests of one connection, each as soon as it is done."""
    tasks: set[asyncio.Task[None]] = set()

    async def one(number: int, kind: int, said: bytes) -> None:
        try:
            status, told = await handler(kind, said)
        except BadInput as error:
            status, told = 503, msgspec.json.encode({"error": str(error)})
        except Exception as error:  # whoever asked would wait for nothing
            LOG.warning("what another process asked for failed (%s).", type(error).__name__)
            status, told = 503, msgspec.json.encode({"error": AWAY})
        with contextlib.suppress(OSError):
            writer.write(_TOLD.pack(len(told), number, status) + told)
            await writer.drain()

    try:
        while True:
            length, number, kind = _ASKED.unpack(await reader.readexactly(_ASKED.size))
            if length > LARGEST:
                return
            task = asyncio.create_task(one(number, kind, await reader.readexactly(length)))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
    except (OSError, EOFError, asyncio.CancelledError):
        return
    finally:
        writer.close()

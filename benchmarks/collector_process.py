"""A collector as a program of its own for benchmarks: started, asked over plain sockets, killed, and measured."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

PATIENCE = 60.0  # seconds until a collector that does not answer is given up


class Answer(NamedTuple):
    """What a collector answered: status, headers in lower case, and body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the body, which is JSON."""
        return json.loads(self.body)


class Line:
    """A connection that is kept, and opened again where the other side has closed it."""

    def __init__(self, port: int, patience: float = 30.0) -> None:
        self._port, self._patience = port, patience
        self._socket: socket.socket | None = None
        self._left = b""

    def ask(
        self, method: str, target: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request and read its answer; an OSError where the connection ends."""
        words = {"host": "collector", **(headers or {})}
        if body is not None:
            words.setdefault("content-length", str(len(body)))
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in words.items()), "", ""]
        return self.send("\r\n".join(lines).encode("latin-1", "replace") + (body or b""), head=method == "HEAD")

    def send(self, data: bytes, head: bool = False) -> Answer:
        """Send the bytes of one request and read its answer."""
        try:
            if self._socket is None:
                self._socket, self._left = socket.create_connection(("127.0.0.1", self._port), self._patience), b""
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.sendall(data)
            return self._read(head)
        except OSError:
            self.close()
            raise

    def _more(self) -> None:
        assert self._socket is not None
        data = self._socket.recv(1 << 16)
        if not data:
            raise ConnectionResetError("the collector has closed the connection")
        self._left += data

    def _read(self, head: bool) -> Answer:
        while b"\r\n\r\n" not in self._left:
            self._more()
        top, _, self._left = self._left.partition(b"\r\n\r\n")
        first, *rest = top.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
        length = 0 if head else int(headers.get("content-length", 0))
        while len(self._left) < length:
            self._more()
        body, self._left = self._left[:length], self._left[length:]
        if headers.get("connection") == "close":
            self.close()
        return Answer(int(first.split()[1]), headers, body)

    def close(self) -> None:
        """Let go of the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class Process:
    """A collector of some studies in a folder, on a free port; what it says on stderr is kept in a file."""

    def __init__(self, folder: Path, studies: Sequence[str], more: Sequence[str] = ("--rate", "0")) -> None:
        self.folder, self.more = folder, tuple(more)
        self.files = []
        for k, text in enumerate(studies):
            (folder / f"study{k}.toml").write_text(text)
            self.files.append(str(folder / f"study{k}.toml"))
        self.log, self.said = str(folder / "log"), folder / "said"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Start, and return the seconds until /health has answered."""
        words = [sys.executable, "-m", "sottovoce", "collect", *self.files, "--log", self.log]
        begun = time.perf_counter()
        with self.said.open("ab") as said:
            self._process = subprocess.Popen(
                [*words, "--port", str(self.port), *self.more], stdout=said, stderr=said, stdin=subprocess.DEVNULL
            )
        while time.perf_counter() - begun < PATIENCE:
            line = Line(self.port)
            try:
                if line.ask("GET", "/health").status == 200:
                    return time.perf_counter() - begun
            except OSError:
                time.sleep(0.01)
            finally:
                line.close()
            if not self.alive:
                break
        raise RuntimeError(f"the collector did not start; it said: {self.said.read_text()[-2000:]}")

    @property
    def alive(self) -> bool:
        """Tell whether it runs."""
        return self._process is not None and self._process.poll() is None

    def end(self, how: int = signal.SIGKILL) -> None:
        """Kill it, or have it stop by itself."""
        assert self._process is not None
        if self.alive:
            self._process.send_signal(how)
        self._process.wait(60)

    @property
    def rss(self) -> float:
        """Return the memory that it holds, in MB."""
        assert self._process is not None
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE") / 1e6

    def get(self, path: str) -> Any:
        """Return what stands at a path."""
        line = Line(self.port)
        try:
            return line.ask("GET", path).json
        finally:
            line.close()

    def studies(self) -> dict[str, bytes]:
        """Return names and identities of its studies."""
        return {each["name"]: bytes.fromhex(each["study"]) for each in self.get("/v1/studies")}

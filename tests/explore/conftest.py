"""A file with marks in it, a session over it, and its page served in this process."""

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import sottovoce as sv
from sottovoce.api.explored import ExploredFile
from sottovoce.core.arrays import Words
from sottovoce.core.random_source import SystemEntropy
from sottovoce.explore.server import ExploreServer
from sottovoce.explore.session import ExploreSession

N = 8000
MARKS = ("987654", "123456", "Zebulon", "Quillfeather", "1999-09-09")  # in records that no answer may show


@pytest.fixture(autouse=True)
def loaded_dice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the system's words from a seed: what passes once passes always."""
    seeded, lock = sv.sim.dice(11), threading.Lock()

    def words(_: SystemEntropy, n: int) -> Words:
        with lock:
            return seeded.words(n)

    monkeypatch.setattr(SystemEntropy, "words", words)


def write_file(path: Path) -> Path:
    """Write a file with the largest and the smallest value, names and a date that are marked."""
    draw = sv.sim.dice(3).generator()
    wait, age, score = draw.gamma(2.0, 10.0, N).round(3), draw.integers(18, 90, N), draw.normal(size=N).round(3)
    lines = ["wait,age,score,clinic,name,day"]
    for k in range(N):
        value, years, name, day = f"{wait[k]}", f"{age[k]}", f"P{k % 97}", f"2013-05-{1 + k % 28:02}"
        if k % 1000 == 7:
            value, years, name, day = "987654.321", "-123456", "Zebulon Quillfeather", "1999-09-09"
        lines.append(f"{value if k % 50 else ''},{years},{score[k]},{'north' if k % 3 else 'south'},{name},{day}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="session")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_file(tmp_path_factory.mktemp("explore") / "marked.csv")


@pytest.fixture
def file(marked: Path) -> ExploredFile:
    return ExploredFile(marked)


@pytest.fixture
def hints() -> list[str]:
    return []


@pytest.fixture
def session(file: ExploredFile, hints: list[str]) -> ExploreSession:
    return ExploreSession(file, hints.append)


class Answered(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Served:
    """The page on a port, and a browser that sends what it is told to."""

    def __init__(self, session: ExploreSession) -> None:
        self.said: list[str] = []
        self.server = ExploreServer(session, 0, self.said.append)
        self.bodies: list[bytes] = []
        self.key = ""
        self._thread = threading.Thread(target=self.server.serve)
        self._thread.start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server.port}"

    @property
    def token(self) -> str:
        return self.server.url.partition("#")[2]

    def send(self, method: str, path: str, body: Any = None, **headers: str | None) -> Answered:
        """Send a request as the page would; a header that is None is left out."""
        usual: dict[str, str | None] = {"host": self.host}
        if method == "POST":
            usual |= {"origin": f"http://{self.host}", "content-type": "application/json"}
        if self.key:
            usual["authorization"] = f"Bearer {self.key}"
        usual |= {name.replace("_", "-"): value for name, value in headers.items()}
        sent = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=20)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in usual.items():
            if value is not None:
                connection.putheader(name, value)
        if sent is not None and "content_length" not in headers:
            connection.putheader("content-length", str(len(sent)))
        connection.endheaders(sent)
        answer = connection.getresponse()
        found = Answered(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        connection.close()
        self.bodies.append(found.body)
        return found

    def enter(self) -> None:
        self.key = self.send("POST", "/v1/enter", {"token": self.token}).json["key"]

    def close(self) -> None:
        self.server.end()
        self._thread.join(20)
        assert not self._thread.is_alive()


@pytest.fixture
def served(session: ExploreSession) -> Iterator[Served]:
    found = Served(session)
    yield found
    found.close()


def question(**given: Any) -> dict[str, Any]:
    """Return a question as the page sends it."""
    return {"value": "wait", "taus": [0.5], "epsilon": 2.0, "method": "certified", **given}

"""A collector as a program of its own: devices answer over HTTP, it is killed and goes on, and logs nothing of them."""

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.collector.calling import call

from sottovoce.client.device import Device, make_report
from sottovoce.collector.access import Access
from sottovoce.collector.routes import NO_METHOD, NO_PATH
from sottovoce.collector.service import CollectorService
from sottovoce.collector.store import CollectorStore
from sottovoce.collector.studies import CollectedStudies
from sottovoce.core.errors import BadInput
from sottovoce.protocol.device import identity, read_card

STUDY = """
name = "age"
people = 4000
groups = ["a", "b"]
[quantile]
tau = 0.5
epsilon = 1.0
bounds = [0, 120]
[rounds]
grace = 0.0
"""


class Running:
    """A collector that can be killed and started again."""

    def __init__(self, folder: Path, log: str | None = None) -> None:
        folder.mkdir(exist_ok=True)
        self.log = [] if log is None else ["--log", log]
        self.study = folder / "study.toml"
        self.study.write_text(STUDY)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[str] | None = None
        self.more = ["--rate", "0"]

    def start(self) -> None:
        words = [
            sys.executable,
            "-m",
            "sottovoce",
            "collect",
            str(self.study),
            "--port",
            str(self.port),
            *self.log,
            *self.more,
        ]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(300):
            try:
                self.get("/health")
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the collector did not start")

    def stop(self, how: int = signal.SIGKILL) -> str:
        assert self.process is not None
        self.process.send_signal(how)
        said, _ = self.process.communicate(timeout=30)
        return said

    def replayed(self) -> int:
        """Return how many reports a replay of the log finds, which must give the same sums."""
        words = [sys.executable, "-m", "sottovoce", "replay", str(self.study), "--json", *self.log]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        return int(json.loads(done.stdout)["reports"])

    @property
    def named(self) -> str:
        """The path of the only study."""
        return f"/v1/studies/{self.get('/v1/studies')[0]['study']}"

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            body = answer.read()
            return json.loads(body) if "json" in answer.headers["content-type"] else body.decode()

    def text(self, path: str) -> str:
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            return str(answer.read().decode())

    def post(self, body: bytes) -> tuple[int, Any]:
        try:
            with urllib.request.urlopen(f"{self.url}/v1/reports", data=body, timeout=10) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def upload(self, group: str, count: int, value: float) -> bytes:
        text = self.text(f"{self.named}/card")
        card, study = read_card(text), identity(text)
        query = self.get(f"{self.named}/query?group={group}")
        return study + b"".join(make_report(card, study, query, value)[16:] for _ in range(count))


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    collector = Running(tmp_path)
    collector.start()
    yield collector
    if collector.process is not None and collector.process.poll() is None:
        collector.stop()


def reports(running: Running) -> int:
    return sum(int(running.get(f"{running.named}/estimate?group={group}")["reports"]) for group in "ab")


def test_a_device_answers_once_and_sends_the_same_again(running: Running, tmp_path: Path) -> None:
    device = Device(tmp_path / "device", cap=1.0)
    first = device.answer(running.url, 44, "b")
    second = device.answer(running.url, 10, "b")
    assert first.accepted
    assert second == first
    assert reports(running) == 1
    with pytest.raises(BadInput, match="more epsilon than this device allows"):
        Device(tmp_path / "other", cap=0.5).answer(running.url, 44)
    assert not list((tmp_path / "other").iterdir())


def test_all_studies_of_a_device_have_a_cap_together(running: Running, tmp_path: Path) -> None:
    device = Device(tmp_path / "device", cap=1.0, total=1.5)
    assert device.answer(running.url, 44).accepted
    assert device.answer(running.url, 44).accepted  # the same bytes cost nothing more
    card = next((tmp_path / "device").glob("*.card"))
    for total, refused in ((1.5, True), (2.0, False)):
        other = tmp_path / str(total)
        other.mkdir()
        (other / ("00" * 16 + ".card")).write_text(card.read_text())  # of another study, as dear
        again = Device(other, cap=1.0, total=total)
        if refused:
            with pytest.raises(BadInput, match="all studies of this device"):
                again.answer(running.url, 44)
        assert refused or again.answer(running.url, 44).accepted


def test_two_processes_of_a_device_send_one_report(running: Running, tmp_path: Path) -> None:
    script = (
        "import sys; from sottovoce.client.device import Device\n"
        "print(Device(sys.argv[1], 1.0).answer(sys.argv[2], 4).body.hex())"
    )
    words = [sys.executable, "-c", script, str(tmp_path / "device"), running.url]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert len({process.communicate(timeout=60)[0] for process in both}) == 1
    assert reports(running) == 1


def test_killed_at_any_time_nothing_acknowledged_is_lost_or_doubled(place: str, tmp_path: Path) -> None:
    running, kept, last = Running(tmp_path, place), 0, b""
    running.start()
    for kill in range(3):
        for _ in range(4 + kill):
            last = running.upload("a", 30, 40.0)
            status, told = running.post(last)
            assert status == 200
            assert told == {"accepted": 30, "refused": []}
            kept += 30
        running.stop()
        running.start()
        assert reports(running) == kept
        status, told = running.post(last)  # acknowledged before: known, or of a round that is over
        assert status == 200
        assert {why for _, why in told["refused"]} <= {"the round is over"}
        assert reports(running) == kept
    assert running.replayed() == kept  # while the collector runs, and afterwards
    running.stop(signal.SIGINT)
    assert running.replayed() == kept


def test_what_is_wrong_is_said_in_one_sentence_and_nothing_is_logged(running: Running) -> None:
    for body in (b"", b"x" * 41, b"x" * 300_000, running.upload("a", 1, 1.0)[:-1]):
        status, told = running.post(body)
        assert status == 400
        assert told["error"].count(".") == 1
    with pytest.raises(urllib.error.HTTPError) as refused:
        running.get(f"{running.named}/query?group=nobody")
    with refused.value as error:
        assert error.code == 404
    assert reports(running) == 0
    lines = running.stop(signal.SIGINT).splitlines()
    assert [line for line in lines if not line.startswith("Collecting on")] == []


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/card", 404),
        ("DELETE", "/v1/studies", 405),
        ("GET", "/../etc/passwd", 404),
        ("GET", "/%2e%2e/x", 404),
    ],
)
def test_an_address_that_leads_nowhere_says_so_in_one_sentence(
    tmp_path: Path, method: str, path: str, status: int
) -> None:
    store = CollectorStore(str(tmp_path / "log"))
    told = call(CollectorService(CollectedStudies(store), Access(store)), method, path)
    assert (told.status_code, told.json()) == (status, {"error": NO_PATH if status == 404 else NO_METHOD})
    assert "default-src 'none'" in told.headers["content-security-policy"]
    store.close()


def test_pages_come_from_here_alone(running: Running) -> None:
    page = running.named.removeprefix("/v1")
    for path, word in (
        (page, "dashboard.js"),
        (f"{page}/survey", "survey.js"),
        ("/device.js", "letterOf"),
        ("/plotly.js", "Plotly"),
    ):
        with urllib.request.urlopen(running.url + path, timeout=10) as answer:
            body, policy = answer.read().decode(), answer.headers["content-security-policy"]
        assert word in body
        assert policy.startswith("default-src 'none'; script-src 'self';")
        if path.startswith(page):
            assert "http" not in body.replace("http-equiv", "")
    running.post(running.upload("a", 5, 40.0))
    study = page.rpartition("/")[2]
    assert f'sottovoce_reports_total{{study="{study}",group="0"}} 5' in running.get("/metrics")
    assert running.get(f"{running.named}/trajectory") == []

"""A collector divided among processes: any of them takes what is anybody's, and one that is killed comes back."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.collector.sending import Sending
from tests.collector.test_service import STUDY, Running

from sottovoce.client.device import make_report
from sottovoce.protocol.device import identity, read_card

GROUPS = ["a", "b", "c"]


class Divided(Running):
    """A collector of three groups and several processes."""

    def __init__(self, folder: Path, workers: int, log: str | None = None) -> None:
        super().__init__(folder, log)
        waits = (
            STUDY.replace("grace = 0.0", "grace = 1000.0")
            .replace("4000", "400000")
            .replace("tau", 'method = "staged"\ntau')
        )
        self.study.write_text(waits.replace('["a", "b"]', json.dumps(GROUPS)))
        self.more = ["--workers", str(workers), "--rate", "0"]

    @property
    def workers(self) -> list[int]:
        """The processes below the first."""
        assert self.process is not None
        found = subprocess.run(
            ["pgrep", "-P", str(self.process.pid), "-f", "spawn_main"], capture_output=True, text=True
        )
        return [int(word) for word in found.stdout.split()]

    def mixed(self, count: int) -> bytes:
        """An upload of reports of all groups."""
        text = self.text(f"{self.named}/card")
        card, study = read_card(text), identity(text)
        parts = []
        for group in GROUPS:
            query = self.get(f"{self.named}/query?group={group}")
            parts += [make_report(card, study, query, 40.0)[16:] for _ in range(count)]
        return study + b"".join(parts)

    def whole(self) -> int:
        """How many reports the processes together say that they have."""
        lines = [line for line in self.get("/metrics").splitlines() if line.startswith("sottovoce_reports_total{")]
        return sum(int(line.rpartition(" ")[2]) for line in lines)


@pytest.fixture
def divided(tmp_path: Path, place: str) -> Iterator[Divided]:
    collector = Divided(tmp_path, 2, place)
    collector.start()
    yield collector
    if collector.process is not None and collector.process.poll() is None:
        collector.stop(signal.SIGTERM)


def test_any_process_takes_what_is_anybodys_and_one_that_is_killed_comes_back(divided: Divided, place: str) -> None:
    sent = []
    for _ in range(4):  # each on a connection of its own, which either process may take
        body = divided.mixed(3)
        status, told = divided.post(body)
        assert (status, told) == (200, {"accepted": 9, "refused": []})
        sent.append(body)
    assert divided.whole() == 36
    status, told = divided.post(sent[-1])
    assert (status, told["accepted"]) == (200, 9)  # known to whoever owns the group
    os.kill(divided.workers[1], signal.SIGKILL)
    for _ in range(200):
        try:
            if divided.whole() == 36 and divided.post(sent[-1])[1].get("accepted") == 9:
                break
        except OSError:
            pass
        time.sleep(0.05)
    assert divided.whole() == 36
    assert divided.post(divided.mixed(1))[1] == {"accepted": 3, "refused": []}
    assert [divided.get(f"{divided.named}/estimate?group={group}")["group"] for group in GROUPS] == GROUPS
    divided.stop(signal.SIGTERM)
    assert divided.replayed() == 39
    logs = sorted(path.name for path in divided.study.parent.glob("log*") if path.suffix in ("", ".2"))
    assert logs == ([] if place.startswith("postgresql:") else ["log", "log.2"])


def test_a_process_killed_under_load_loses_and_doubles_nothing(divided: Divided) -> None:
    first = divided.mixed(5)
    assert divided.post(first)[0] == 200
    sending = Sending(divided, first)
    for k in (1, 0):
        time.sleep(0.5)
        os.kill(divided.workers[k], signal.SIGKILL)
        before = len(sending.sent)
        for _ in range(200):
            if len(sending.sent) > before + 3:
                break
            time.sleep(0.05)
    sending.stop()
    assert {code for code, _ in sending.told} <= {200, 503}
    assert all(said == {"accepted": 15, "refused": []} for code, said in sending.told if code == 200)
    assert all(said["error"].endswith("again later.") for code, said in sending.told if code == 503)
    for _ in range(200):
        if divided.whole() == 15 * (1 + len(sending.sent)):
            break
        time.sleep(0.05)
    divided.stop(signal.SIGTERM)
    assert divided.replayed() == 15 * (1 + len(sending.sent))


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)  # nothing in it depends on the log
def test_what_is_below_ends_with_the_first_process(divided: Divided) -> None:
    workers = divided.workers
    divided.stop(signal.SIGKILL)
    assert len(workers) == 2
    for _ in range(200):
        if not any(cmdline(each) for each in workers):
            break
        time.sleep(0.05)
    divided.start()  # the port is free, and so is the log
    assert divided.post(divided.mixed(1))[1] == {"accepted": 3, "refused": []}


def cmdline(process: int) -> bytes:
    """Return how a process was called; nothing where it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)  # nothing in it depends on the log
def test_as_many_processes_as_begun_the_log(divided: Divided) -> None:
    divided.stop(signal.SIGTERM)
    more = ["--workers", "3", "--port", "0", *divided.log]
    words = [sys.executable, "-m", "sottovoce", "collect", str(divided.study), *more]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "begun by 2 processes" in done.stderr


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)  # nothing in it depends on the log
def test_two_collectors_do_not_share_a_log(tmp_path: Path, place: str) -> None:
    first = Running(tmp_path, place)
    first.start()
    words = [sys.executable, "-m", "sottovoce", "collect", str(first.study), "--port", "0", *first.log]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    first.stop()
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "another collector writes to this log" in done.stderr

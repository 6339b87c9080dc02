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
from tests.collector.test_service import STUDY, Running

from sottovoce.client.device import make_report
from sottovoce.protocol.device import identity, read_card

GROUPS = ["a", "b", "c"]


class Divided(Running):
    """A collector of three groups and several processes."""

    def __init__(self, folder: Path, workers: int) -> None:
        super().__init__(folder)
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
def divided(tmp_path: Path) -> Iterator[Divided]:
    collector = Divided(tmp_path, 2)
    collector.start()
    yield collector
    if collector.process is not None and collector.process.poll() is None:
        collector.stop(signal.SIGTERM)


def test_any_process_takes_what_is_anybodys_and_one_that_is_killed_comes_back(divided: Divided) -> None:
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
    logs = [divided.study.with_suffix(".toml.log"), divided.study.with_suffix(".toml.log.2")]
    assert all(log.exists() for log in logs)
    words = [sys.executable, "-m", "sottovoce", "replay", str(divided.study), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["reports"] == 39


def test_as_many_processes_as_begun_the_log(divided: Divided) -> None:
    divided.stop(signal.SIGTERM)
    words = [sys.executable, "-m", "sottovoce", "collect", str(divided.study), "--workers", "3", "--port", "0"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "begun by 2 processes" in done.stderr


def test_two_collectors_do_not_share_a_log(tmp_path: Path) -> None:
    first = Running(tmp_path)
    first.start()
    words = [sys.executable, "-m", "sottovoce", "collect", str(first.study), "--port", "0"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    first.stop()
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "another collector writes to this log" in done.stderr

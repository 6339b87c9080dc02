"""How many reports a collector takes on this machine: commit before acknowledgement, a log on disk, load by wrk.

Devices in crowds ask what is asked and answer it, so rounds close while they come, and the few looks are counted in the
latency, too. Server and load share the machine. What is printed is checked: reports acknowledged, reports in the
estimate and bytes in the log must be the same number.
"""

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from sottovoce.collector.store import CollectorStore
from sottovoce.collector.tables import REPORTS
from sottovoce.protocol.device import SIZE

SCRIPT = Path(__file__).with_name("collector_load.lua")
STUDY = """name = "load"
people = {people}
[quantile]
tau = 0.5
epsilon = 1.0
method = "{method}"
bounds = [0, 1000]
resolution = 1
[rounds]
grace = {grace}
"""
SINGLE = ("single reports", 1, 64, 200)
BATCHES = ("uploads of 1,000", 1000, 8, 20)


class Collector:
    """A collector as a program of its own, over a log."""

    def __init__(self, folder: Path, text: str, log: str | None = None, more: tuple[str, ...] = ()) -> None:
        (folder / "study.toml").write_text(text)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = log or str(folder / "log")
        words = ["collect", str(folder / "study.toml"), "--port", str(self.port), "--rate", "0", "--log", self.log]
        self.process = subprocess.Popen([sys.executable, "-m", "sottovoce", *words, *more])
        self.url, begun = f"http://127.0.0.1:{self.port}", time.perf_counter()
        while True:
            try:
                self.study = self.get("/v1/studies")[0]["study"]
                break
            except OSError:
                if self.process.poll() is not None or time.perf_counter() > begun + 60:
                    raise SystemExit("the collector did not start") from None
                time.sleep(0.01)
        self.started = time.perf_counter() - begun

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=20) as answer:
            return json.loads(answer.read())

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)

    def memory(self) -> float:
        """Return the resident megabytes of the process."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


@contextlib.contextmanager
def collector(text: str, *more: str) -> Iterator[Collector]:
    """Run a collector in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        running = Collector(Path(folder), text, more=more)
        try:
            yield running
        finally:
            running.stop()


def loaded(running: Collector, each: int, connections: int, looks: int, seconds: int) -> dict[str, Any]:
    """Return what wrk found."""
    line = ["wrk", "-t2", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(SCRIPT), running.url, "--"]
    line += [running.study, f"/v1/studies/{running.study}/query", str(each), str(looks)]
    said = subprocess.run(line, capture_output=True, text=True, timeout=seconds + 60, check=True).stdout
    found: dict[str, Any] = json.loads(said.split("FOUND", 1)[1])
    return found


def kept(log: str) -> int:
    """Return how many reports the log holds."""
    store = CollectorStore(log, existing=True)
    try:
        whole = store._base.execute(sa.select(sa.func.sum(sa.func.length(REPORTS.c.body)))).scalar() or 0
        return int(whole) // SIZE
    finally:
        store.close()


def measure(what: tuple[str, int, int, int], method: str, people: int, grace: float, seconds: int) -> None:
    """Print what one load comes to."""
    name, each, connections, looks = what
    with collector(STUDY.format(people=people, method=method, grace=grace)) as running:
        found = loaded(running, each, connections, looks, seconds)
        time.sleep(0.2)
        counted = running.get(f"/v1/studies/{running.study}/estimate")["reports"]
        in_log, memory = kept(running.log), running.memory()
    rate = found["accepted"] / found["seconds"]
    late = found["refused"] / max(found["accepted"] + found["refused"], 1)
    print(
        f"{name:18} {method:9} {connections:3} connections {rate:10,.0f}/s  p50 {found['p50']:6.1f}  "
        f"p99 {found['p99']:6.1f}  max {found['max']:6.1f} ms  rounds {found['rounds']:3}  refused {late:.2%}  "
        f"failed {found['failed']}  {memory:.0f} MB"
    )
    # a request that is under way when wrk stops is kept and not counted by it
    if not 0 <= in_log - found["accepted"] <= each * connections or counted != in_log:
        print(f"  NOT THE SAME: acknowledged {found['accepted']:,}, estimate {counted:,}, log {in_log:,}")


def run(seconds: int = 10) -> None:
    if shutil.which("wrk") is None:
        print("collector-load: wrk is not installed (Debian's package wrk); nothing was measured")
        return
    for method in ("sequence", "staged"):
        for what, people in ((SINGLE, 1_000_000), (BATCHES, 100_000_000)):
            measure(what, method, people, 0.02, seconds)

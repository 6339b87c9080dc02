"""A collector divided among processes, on SQLite and PostgreSQL: reports a second, CPU and disk a report, load by wrk.

The rounds of all groups stay open, and every report has a fresh random id, so none is answered as known. Server,
database and load share the machine. What is printed is checked: what wrk counts as kept, what the collector says it
has, and what stands in the log must be the same number.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from tests.postgres import Cluster, missing

from benchmarks.collector_load import Collector
from sottovoce.collector.peers import Part
from sottovoce.collector.store import CollectorStore
from sottovoce.collector.tables import REPORTS
from sottovoce.protocol.device import SIZE

SCRIPT = Path(__file__).with_name("collector_workers.lua")
GROUPS = 8
STUDY = f"""name = "load"
people = 2_000_000
groups = {json.dumps([f"group {k}" for k in range(GROUPS)])}
[quantile]
tau = 0.5
epsilon = 1.0
method = "staged"
bounds = [0, 1000]
[rounds]
grace = 1000
deadline = 10_000
"""
TICKS = os.sysconf("SC_CLK_TCK")


class Load(NamedTuple):
    """Reports an upload, connections, and whether an upload holds reports of all groups or of one."""

    each: int
    connections: int
    mixed: bool


APART, MIXED, SINGLE = Load(1000, 8, False), Load(1000, 8, True), Load(1, 64, False)


class Found(NamedTuple):
    """Reports a second, milliseconds, CPU seconds of collector and database a million reports, and bytes a report."""

    rate: float
    p50: float
    p99: float
    cpu: float
    base_cpu: float
    disk: float
    failed: int


def tails(hosts: Sequence[Collector]) -> list[list[str]]:
    """Return, host by host, what follows the id in a report of each of its groups: round, group, point, letter."""
    found: list[list[str]] = [[] for _ in hosts]
    for group in range(GROUPS):
        part = group % len(hosts)
        asked = hosts[part].get(f"/v1/studies/{hosts[part].study}/query?group=group%20{group}")
        point = next(k for k, need in enumerate(asked["needs"]) if need)
        places = asked["round"].to_bytes(4, "big"), group.to_bytes(2, "big"), point.to_bytes(2, "big")
        found[part].append(b"".join(places).hex() + "01")
    return found


def loaded(hosts: Sequence[Collector], load: Load, seconds: int) -> list[dict[str, Any]]:
    """Load all hosts at once, and return what wrk found of each."""
    running = []
    for host, ends in zip(hosts, tails(hosts), strict=True):
        threads, connections = max(2 // len(hosts), 1), load.connections // len(hosts)
        line = ["wrk", f"-t{threads}", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(SCRIPT), host.url]
        line += ["--", host.study, str(load.each), "mixed" if load.mixed else "apart", *ends]
        running.append(subprocess.Popen(line, stdout=subprocess.PIPE, text=True))
    return [json.loads(each.communicate(timeout=seconds + 60)[0].split("FOUND", 1)[1]) for each in running]


def cpu_of(root: int) -> float:
    """Return the CPU seconds of a process and of all below it, with those that have ended."""
    above: dict[int, int] = {}
    used: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        above[int(path.parent.name)] = int(words[1])
        used[int(path.parent.name)] = sum(map(int, words[11:15])) / TICKS
    below = {root}
    while more := {each for each, parent in above.items() if parent in below} - below:
        below |= more
    return sum(used[each] for each in below if each in used)


def in_log(log: str, workers: int) -> int:
    """Return how many reports the log holds."""
    files = 1 if log.startswith("postgresql:") else workers
    whole = 0
    for k in range(files):
        store = CollectorStore(log, Part(k, files), existing=True)
        whole += int(store._base.execute(sa.select(sa.func.sum(sa.func.length(REPORTS.c.body)))).scalar() or 0)
        store.close()
    return whole // SIZE


def counted(hosts: Sequence[Collector]) -> int:
    """Return how many reports the collectors say that they have."""
    lines = [line for host in hosts for line in text_of(host).splitlines() if line.startswith("sottovoce_reports_")]
    return sum(int(line.rpartition(" ")[2]) for line in lines)


def text_of(host: Collector) -> str:
    """Return the metrics of a host."""
    import urllib.request

    with urllib.request.urlopen(f"{host.url}/metrics", timeout=20) as answer:
        whole: str = answer.read().decode()
    return whole


def measured(cluster: Cluster | None, load: Load, *, workers: int = 1, hosts: int = 1, seconds: int = 5) -> Found:
    """Return what a load comes to on SQLite, or on a cluster, with several processes or hosts; refuse other counts."""
    with tempfile.TemporaryDirectory() as folder:
        log = str(Path(folder) / "log") if cluster is None else cluster.fresh()
        running = []
        for k in range(1, hosts + 1):
            own = Path(folder, str(k))
            own.mkdir()
            more = ("--part", f"{k}/{hosts}") if hosts > 1 else ("--workers", str(workers))
            running.append(Collector(own, STUDY, log, more))
        while len(text_of(running[0]).splitlines()) < GROUPS // hosts:  # until all processes have begun
            time.sleep(0.1)
        base, before = (cluster.process if cluster else 0), sum(cpu_of(each.process.pid) for each in running)
        base_before = cpu_of(base) if cluster else 0.0
        found = loaded(running, load, seconds)
        cpu = sum(cpu_of(each.process.pid) for each in running) - before
        base_cpu = cpu_of(base) - base_before if cluster else 0.0
        time.sleep(0.3)
        says = counted(running)
        for each in running:
            each.stop()
        kept, accepted = in_log(log, workers), sum(each["accepted"] for each in found)
        disk = sum(path.stat().st_size for path in Path(folder).glob("log*")) if cluster is None else cluster.size(log)
        wrong = sum(each["failed"] + each["refused"] for each in found)
        # a request that is under way when wrk stops is kept and not counted by it
        if says != kept or not 0 <= kept - accepted <= load.each * load.connections:
            print(f"  NOT THE SAME: acknowledged {accepted:,}, said {says:,}, log {kept:,}")
    rate = sum(each["accepted"] / each["seconds"] for each in found)
    p50, p99 = (max(each[name] for each in found) for name in ("p50", "p99"))
    return Found(rate, p50, p99, 1e6 * cpu / kept, 1e6 * base_cpu / kept, disk / kept, wrong)


def looks(seconds: int) -> None:
    """Print what a device asks before it answers: CPU and bytes of a card and of a query."""
    with tempfile.TemporaryDirectory() as folder:
        running = Collector(Path(folder), STUDY)
        for what in ("card", "query"):
            before = cpu_of(running.process.pid)
            line = ["wrk", "-t1", "-c16", f"-d{seconds}s", f"{running.url}/v1/studies/{running.study}/{what}"]
            said = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True).stdout
            found = re.search(r"(\d+) requests in [^,]*, ([\d.]+)MB read", said)
            assert found is not None, said
            count, size = int(found[1]), float(found[2]) * 2**20 / int(found[1])
            cpu = 1e6 * (cpu_of(running.process.pid) - before) / count
            print(f"  GET {what:6} {count / seconds:8,.0f}/s  CPU a million {cpu:6.1f} s  answer of {size:,.0f} bytes")
        running.stop()


def show(name: str, found: Found, first: Found | None = None) -> None:
    """Print one line."""
    ratio = f"x {found.rate / first.rate:4.2f}" if first else ""
    print(
        f"  {name:42} {found.rate:10,.0f}/s {ratio:6}  p50 {found.p50:6.1f}  p99 {found.p99:6.1f} ms  CPU a million "
        f"{found.cpu:6.2f} + {found.base_cpu:5.2f} s  disk {found.disk:5.1f} bytes  wrong {found.failed}",
        flush=True,
    )


def run(seconds: int = 5) -> None:
    if shutil.which("wrk") is None:
        print("collector-workers: wrk is not installed (Debian's package wrk); nothing was measured")
        return
    print(f"{GROUPS} groups, uploads of 1,000, 8 connections, {seconds} s each, {os.cpu_count()} cores for all")
    looks(seconds)
    cluster = None if missing() else Cluster("")
    for place in [None, *([cluster] if cluster else [])]:
        for load in (APART, MIXED):
            first = None
            for workers in (1, 2, 4):
                found = measured(place, load, workers=workers, seconds=seconds)
                kind = "all groups in an upload" if load.mixed else "one group an upload"
                show(f"{'PostgreSQL' if place else 'SQLite'}, {workers} processes, {kind}", found, first)
                first = first or found
    if cluster is None:
        print(f"  PostgreSQL: not measured, {missing()}")
    else:
        cluster.remove()

"""Kills a collector again and again while people answer, and counts what is left; how soon a large log is there again.

Senders keep the bytes of a report until they are answered, and send the same again after any failure. In the end every
acknowledged report must stand in the log once and count once, and a replay must give the same state.
"""

import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.collector_process import Line, Process
from sottovoce.collector.replaying import check_replay
from sottovoce.collector.store import CollectorStore
from sottovoce.collector.study import read_collected
from sottovoce.protocol.device import ID, IDENTITY, REPORT, SIZE
from sottovoce.sim import dice
from sottovoce_papers.simulation.families import Generator

KILLS, SENDERS = 20, 4
SIZES = (1, 1, 1, 20, 500)  # reports in an upload; each is as likely as the others
MILLION = 1_000_000
STUDY = """
name = "load"
groups = ["a", "b"]
people = {people}
[quantile]
tau = 0.5
epsilon = 1.0
bounds = [0, 120]
[rounds]
grace = {grace}
"""
LATE = {"the round is over", "the study is over"}  # the only refusals there may be


def answers(query: dict[str, Any], study: bytes, count: int, draws: Generator) -> bytes:
    """Return an upload of people whose values are normal around 40, their letters drawn by public draws."""
    needs = np.array(query["needs"], dtype=float)
    point = draws.choice(len(needs), size=count, p=needs / needs.sum())
    truth = draws.normal(40, 10, count) > np.array(query["points"])[point]
    reports = np.empty(count, REPORT)
    reports["id"] = np.frombuffer(draws.bytes(ID * count), "V16")
    reports["round"], reports["group"], reports["point"] = query["round"], query["group"], point
    reports["letter"] = truth ^ (draws.random(count) < 0.27)
    return study + reports.tobytes()


class Sender(threading.Thread):
    """Somebody who sends reports of many people until told to stop, each until it is answered."""

    def __init__(self, process: Process, study: bytes, seed: int) -> None:
        super().__init__(daemon=True)
        self._process, self._study, self._dice = process, study, dice(seed).generator()
        self._line = Line(process.port)
        self.kept: list[bytes] = []
        self.uploads = self.again = self.broken = self.late = 0
        self.wrong: list[str] = []
        self.stop = threading.Event()

    def _until_answered(self, method: str, target: str, body: bytes | None = None) -> Any:
        while True:
            try:
                answer = self._line.ask(method, target, body)
                if answer.status == 200:
                    return answer.json
                self.wrong.append(f"status {answer.status}: {answer.body[:100]!r}")
            except OSError:
                self.broken += 1
                self.again += body is not None
            time.sleep(0.01)

    def run(self) -> None:
        """Send until told to stop."""
        while not self.stop.is_set():
            group = "ab"[int(self._dice.integers(2))]
            query = self._until_answered("GET", f"/v1/studies/{self._study.hex()}/query?group={group}")
            if "needs" not in query:
                time.sleep(0.005)
                continue
            body = answers(query, self._study, SIZES[int(self._dice.integers(len(SIZES)))], self._dice)
            told = self._until_answered("POST", "/v1/reports", body)
            if any(why not in LATE for _, why in told["refused"]):
                self.wrong.append(f"refused: {told['refused'][:3]}")
            refused = {k for k, _ in told["refused"]}
            rows = [body[k : k + SIZE] for k in range(IDENTITY, len(body), SIZE)]
            self.kept += [row for k, row in enumerate(rows) if k not in refused]
            self.late += len(refused)
            self.uploads += 1
        self._line.close()


def crash(folder: Path, kills: int, seed: int, people: int = 400_000, longest: float = 1.5) -> dict[str, Any]:
    """Kill a collector so many times under load; return counts and what was wrong."""
    process, draws = Process(folder, [STUDY.format(people=people, grace=0.05)]), dice(seed).generator()
    restarts = [process.start()]
    try:
        study = process.studies()["load"]
        senders = [Sender(process, study, seed + 1 + k) for k in range(SENDERS)]
        for sender in senders:
            sender.start()
        for _ in range(kills):
            time.sleep(float(draws.uniform(0.2, longest)))
            process.end()
            restarts.append(process.start())
        time.sleep(0.5)
        for sender in senders:
            sender.stop.set()
        for sender in senders:
            sender.join(60)
        wrong = [each for sender in senders for each in sender.wrong]
        wrong += ["a sender did not end" for sender in senders if sender.is_alive()]
        return {"restarts": restarts, **_counted(process, study, senders, wrong)}
    finally:
        process.end()


def _counted(process: Process, study: bytes, senders: list[Sender], wrong: list[str]) -> dict[str, Any]:
    """Compare what senders were told with the estimates, the log and its replay."""
    where = f"/v1/studies/{study.hex()}"
    kept = [row for sender in senders for row in sender.kept]
    before = [process.get(f"{where}/estimate?group={group}") for group in "ab"]
    line = Line(process.port)
    known = 0
    for start in range(0, len(kept), 10_000):  # all once more: known, or of a round that is over
        told = line.ask("POST", "/v1/reports", study + b"".join(kept[start : start + 10_000])).json
        known += told["accepted"]
        wrong += [why for _, why in told["refused"] if why not in LATE]
    line.close()
    after = [process.get(f"{where}/estimate?group={group}") for group in "ab"]
    if [each["reports"] for each in before] != [each["reports"] for each in after]:
        wrong.append("a report that was sent again counted again")
    process.end(2)
    store = CollectorStore(process.log, existing=True)
    replayed = check_replay(read_collected(process.files[0])[0], store)
    ids = b"".join(store.ids("load"))
    store.close()
    logged = [ids[k : k + ID] for k in range(0, len(ids), ID)]
    lost = {row[:ID] for row in kept} - set(logged)
    counted = sum(each["reports"] for each in after)
    if lost or len(logged) != len(set(logged)):
        wrong.append(f"{len(lost)} lost, {len(logged) - len(set(logged))} twice in the log")
    if not counted == len(logged) == replayed["reports"] == replayed["replayed"]:
        wrong.append(f"counted {counted}, in the log {len(logged)}, replayed {replayed['reports']}")
    told = ("interval", "estimate", "rounds", "reports", "late")
    for one, other in zip(after, replayed["groups"], strict=True):
        if [one[word] for word in told] != [other[word] for word in told]:
            wrong.append("a replay stands elsewhere")
    if "Traceback" in process.said.read_text():
        wrong.append(process.said.read_text()[-1000:])
    return {
        "uploads": sum(sender.uploads for sender in senders),
        "requests that broke off": sum(sender.broken for sender in senders),
        "sent again": sum(sender.again for sender in senders),
        "acknowledged": len(kept),
        "in the log": len(logged),
        "late": sum(sender.late for sender in senders),
        "known again": known,
        "rounds": [each["rounds"] for each in after],
        "wrong": wrong,
    }


def fill(process: Process, reports: int, each: int = 10_000, watch: Any = None) -> None:
    """Upload so many reports to the first group; ``watch`` is called with the count now and then."""
    study, draws, line, sent = process.studies()["load"], dice(3).generator(), Line(process.port), 0
    where = f"/v1/studies/{study.hex()}/query?group=a"
    query = line.ask("GET", where).json
    while sent < reports:
        asked = line.ask("GET", where).json
        query = asked if "needs" in asked else query
        if asked.get("over"):
            raise RuntimeError("the study was over too soon")
        room = each if asked is not query else min(each, sum(query["needs"]))
        told = line.ask("POST", "/v1/reports", answers(query, study, room, draws)).json
        sent += told["accepted"]
        if watch is not None:
            watch(sent)
    line.close()


def restart_times(people: int, grace: float) -> tuple[list[float], int, int]:
    """Return how long three restarts took with a million reports, the reports then, and the rounds that were closed."""
    with tempfile.TemporaryDirectory() as folder:
        process = Process(Path(folder), [STUDY.format(people=people, grace=grace)])
        try:
            process.start()
            fill(process, MILLION)
            times = []
            for _ in range(3):
                process.end()
                times.append(process.start())
            found = process.get(f"/v1/studies/{process.studies()['load'].hex()}/estimate?group=a")
        finally:
            process.end()
    return times, found["reports"], found["rounds"]


def run() -> None:
    """Print what is left after twenty kills, and how long restarts take."""
    with tempfile.TemporaryDirectory() as folder:
        found = crash(Path(folder), KILLS, 23)
    print(f"\n{KILLS} kills under load, {SENDERS} senders")
    for key, value in found.items():
        print(f"  {key}: {[round(each, 2) for each in value] if key == 'restarts' else value}")
    for what, people, grace in (("one open round", 2 * MILLION, 3600.0), ("closed rounds", 11 * MILLION // 10, 0.0)):
        times, reports, rounds = restart_times(people, grace)
        print(f"  restart with {reports:,} reports, {what} ({rounds} closed): {', '.join(f'{t:.2f} s' for t in times)}")

"""Sends a running collector what it must not take, among what it must; another account decides which is which.

Uploads that are malformed, oversized, doubled, late, forged or of another study; impossible letters, points, groups
and rounds; wrong methods, paths and headers; broken HTTP over plain sockets, slow bodies and many open connections;
nonsense for an admin's addresses, with a key and without.
"""

import contextlib
import re
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.collector_hostile import MARK, broken, odd_headers, odd_study, odd_target
from benchmarks.collector_oracle import NEW, REFUSED, REPORT, Oracle, fields
from benchmarks.collector_process import Answer, Line, Process
from sottovoce.client.device import make_report
from sottovoce.collector.replaying import check_replay
from sottovoce.collector.running import add_key, issue_tokens
from sottovoce.collector.store import CollectorStore
from sottovoce.collector.study import read_collected
from sottovoce.protocol.device import pack, read_card
from sottovoce.sim import dice

REQUESTS = 100_000
TOKENS, IDLE = 400, 150  # issued in each group; connections that are opened and say nothing
QUANTILE = '[quantile]\ntau = 0.5\nepsilon = 1.0\nbounds = [0, 120]\nmethod = "{}"\n[rounds]\ngrace = 0.0\n'
ROWS = '[regression]\nresponse = "wait"\ntau = 0.5\nepsilon = 4.0\ndensity = 0.08\nsize = 20.0\n'
STUDIES = (
    'name = "small"\ngroups = ["a", "b"]\npeople = 3000\n' + QUANTILE.format("sequence"),
    'name = "large"\ngroups = ["a", "b", "c"]\npeople = 1_000_000\n' + QUANTILE.format("staged"),
    'name = "known"\ngroups = ["a", "b"]\npeople = 2000\n'
    + QUANTILE.format("certified")
    + "[devices]\ntokens = true\n",
    'name = "rows"\npeople = 1000\n' + ROWS + "[regression.features]\nage = [18, 90]\n[rounds]\ngrace = 0.0\n",
    'name = "idle"\npeople = 2000\n' + QUANTILE.format("sequence"),
)


class Fuzz:
    """A fuzzed collector: what is sent, what it may take of that, and what was wrong."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.process = Process(folder, STUDIES)
        self.key = add_key(self.process.log, "fuzz", "admin")
        self.process.start()
        self.line, self.dice = Line(self.process.port), dice(seed).generator()
        self.studies = self.process.studies()
        tokens = [
            {bytes.fromhex(each) for each in issue_tokens(self.process.files[2], self.process.log, group, TOKENS)}
            for group in "ab"
        ]
        self.issued = sorted(tokens[0] | tokens[1])
        self.oracles = {
            "small": Oracle([self.query("small", group) for group in "ab"]),
            "large": Oracle([self.query("large", group) for group in "abc"]),
            "known": Oracle([self.query("known", group) for group in "ab"], tokens),
        }
        self.card = read_card(self.line.ask("GET", f"{self.path('rows')}/card").body.decode())
        self.sent: list[bytes] = []
        self.counts: dict[str, int] = {}
        self.slowest: dict[str, float] = {}
        self.wrong: list[str] = []
        self.rows = self.asked = self.accepted = 0

    def path(self, study: str) -> str:
        return f"/v1/studies/{self.studies[study].hex()}"

    def query(self, study: str, group: str) -> Any:
        return lambda: self.line.ask("GET", f"{self.path(study)}/query?group={group}").json

    def pick(self, *words: Any) -> Any:
        return words[int(self.dice.integers(len(words)))]

    def one_report(self, oracle: Oracle) -> bytes:
        """Return a report that may be acceptable, or nearly so."""
        kind = int(self.dice.integers(10))
        if kind == 0:
            return self.dice.bytes(REPORT)
        if kind in (1, 2) and self.sent:
            old = self.sent[int(self.dice.integers(len(self.sent)))]
            return old if kind == 1 else old[:-1] + bytes([self.pick(0, 1, 1, 255)])
        number = int(self.dice.integers(len(oracle.groups)))
        group = oracle.groups[number]
        open_ = group.open or group.late
        if open_ is None:
            return self.dice.bytes(REPORT)
        round, point, letter = open_.number, int(self.dice.integers(len(open_.wanted))), int(self.dice.integers(2))
        id = self.dice.bytes(16)
        if self.issued and self.dice.random() < 0.3:
            id = self.pick(*self.issued[:: 1 + len(self.issued) // 50])
        if kind == 3:
            letter = int(self.dice.integers(2, 256))
        elif kind == 4:
            point = int(self.dice.integers(len(open_.wanted), 1 << 16))
        elif kind == 5:
            round = self.pick(0, max(round - 1, 0), max(round - 2, 0), round + 1, (1 << 32) - 1)
        elif kind == 6:
            number = int(self.dice.integers(len(oracle.groups), 1 << 16))
        return pack(id, round, number, point, letter)

    def upload(self) -> None:
        """Send some reports, whole or spoiled, and compare what became of each."""
        name = self.pick("small", "large", "large", "known")
        oracle = self.oracles[name]
        many = self.pick(1, 1, 1, 2, 5, 40, 40)
        reports = [self.one_report(oracle) for _ in range(many)]
        if self.dice.random() < 0.3:
            reports.append(reports[0])
        body, spoil = self.studies[name] + b"".join(reports), int(self.dice.integers(12))
        if spoil == 0:
            body = body[: -int(self.dice.integers(1, REPORT))]
        elif spoil == 1:
            body = self.dice.bytes(16) + body[16:]
        elif spoil == 2:
            body += self.dice.bytes(int(self.dice.integers(1, REPORT)))
        elif spoil == 3:
            body = self.pick(b"", body[:16], body[:7], bytes(400_000), body[:16] + bytes(REPORT * 10_001))
        answer = self.line.ask("POST", "/v1/reports" + self.pick("", "?group=a", f"?group={MARK}&&=%ff"), body)
        if spoil < 4:
            self.expect(answer, 400, "a spoiled upload")
            return
        said = [oracle.take(report) for report in reports]
        self.sent += [report for report, what in zip(reports, said, strict=True) if what == NEW][:3]
        self.accepted += said.count(NEW)
        oracle.move()
        self.expect(answer, 200, "an upload")
        told, refused = answer.json, [k for k, what in enumerate(said) if what == REFUSED]
        if [k for k, _ in told["refused"]] != refused or told["accepted"] != len(reports) - len(refused):
            self.wrong.append(f"{name}: {told}, and not {refused} of {[fields(report)[1:] for report in reports]}")

    def upload_rows(self) -> None:
        """Answer a regression as a device does, or with a letter that its channel cannot have."""
        query = self.line.ask("GET", f"{self.path('rows')}/query").json
        if "channels" in query and self.dice.random() < 0.5:
            good = make_report(self.card, self.studies["rows"], query, {"wait": 20.0, "age": 40.0})
            bad = good[:-3] + b"\xff\xff\xff", good[:38] + (7).to_bytes(2, "big") + good[40:]
            late = good[:32] + bytes([255]) + good[33:]
            for body, accepted in ((good, 1), (good, 1), *((each, 0) for each in (*bad, late))):
                told = self.line.ask("POST", "/v1/reports", body).json
                over = told["refused"] and told["refused"][0][1] == "the study is over"  # by the report before
                if told["accepted"] != accepted and not (over and body is good and accepted):
                    self.wrong.append(f"rows: {told}, and not {accepted}")
            self.rows += 1
        else:
            body = self.studies["rows"] + pack(self.dice.bytes(16), self.pick(0, 9999), 0, 65535, 255)
            if self.line.ask("POST", "/v1/reports", body).json["accepted"]:
                self.wrong.append("rows: an impossible report was taken")

    def get(self) -> None:
        """Ask for what is there and what is not, by methods that are right and wrong."""
        target = odd_target(self.dice, self.pick(*map(self.path, self.studies)))
        method = self.pick("GET", "GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
        body = self.pick(None, b"", b"{}", self.dice.bytes(70)) if method not in ("GET", "HEAD") else None
        answer = self.line.ask(method, target, body, odd_headers(self.dice))
        if answer.status >= 400 and method != "HEAD":
            self.expect(answer, answer.status, f"{method} {target}")

    def change(self) -> None:
        """Send an admin's addresses nonsense, with a key and without."""
        target = self.pick(
            "/v1/studies",
            "/v1/plan",
            "/v1/plan",
            *(f"{self.path('idle')}/{word}" for word in ("state", "scrub", "state")),
        )
        body = (
            odd_study(self.dice)
            if self.dice.random() < 0.7
            else self.pick(
                b"",
                b"{",
                b"[" * 5000,
                b"\xff\xfe",
                b'{"state": "paused"}',
                b'{"state": "open"}',
                b'{"state": "open", "x": 1}',
                b'{"state": ["open"]}',
                b'{"state": null}',
                bytes(70_000),
                b'"' + b"x" * 70_000 + b'"',
                b'{"state": "\\ud800"}',
            )
        )
        key = self.pick(
            f"Bearer {self.key}", f"Bearer {self.key}", f"Bearer {self.key}x", "Bearer", "", f"Basic {MARK}"
        )
        answer = self.line.ask("POST", target, body, {"authorization": key})
        if key != f"Bearer {self.key}":
            self.expect(answer, 401, target)
        elif answer.status >= 400:
            self.expect(answer, 400, target, own=True)

    def shout(self) -> None:
        """Send broken HTTP over a connection of its own; the last requests of some are cut off."""
        data = broken(self.dice, self.studies["large"])
        with socket.create_connection(("127.0.0.1", self.process.port), 20) as line:
            said = b""
            with contextlib.suppress(OSError):  # it may be closed at once
                line.sendall(data)
                line.shutdown(socket.SHUT_WR)
                while len(said) < 1 << 20 and (part := line.recv(1 << 16)):
                    said += part
        if b"HTTP/1.1 5" in said or b"Traceback" in said or MARK.encode() in said:
            self.wrong.append(f"broken HTTP was answered with {said[:200]!r}")

    def expect(self, answer: Answer, status: int, what: str, *, own: bool = False) -> None:
        """Note an answer that is not the one, not one sentence, or repeats more than an admin's ``own`` terms."""
        if answer.status != status:
            self.wrong.append(f"{what}: status {answer.status} and not {status}: {answer.body[:200]!r}")
        if answer.status >= 400:
            try:
                sentence = msgspec.json.decode(answer.body, type=dict[str, str])["error"]
            except (msgspec.DecodeError, msgspec.ValidationError, KeyError):
                self.wrong.append(f"{what}: an error that is no sentence: {answer.body[:200]!r}")
                return
            if re.search(r"\n|\. [A-Z]|^$", sentence) or (MARK in sentence and not own) or self.key in sentence:
                self.wrong.append(f"{what}: a strange sentence: {sentence[:200]}")

    def request(self) -> None:
        """Send the next request."""
        at, begun = int(self.dice.integers(100)), time.perf_counter()
        works = ((60, self.upload), (63, self.upload_rows), (82, self.get), (92, self.change), (100, self.shout))
        work = next(each for upto, each in works if at < upto)
        self.asked += 1
        try:
            work()
        except OSError as error:
            self.wrong.append(f"{work.__name__}: {type(error).__name__}")
            if not self.process.alive:
                raise
        name, took = work.__name__, time.perf_counter() - begun
        self.counts[name] = self.counts.get(name, 0) + 1
        self.slowest[name] = max(self.slowest.get(name, 0.0), took)

    def slow(self) -> list[socket.socket]:
        """Open connections that say nothing, and some that never end what they say."""
        opened = [socket.create_connection(("127.0.0.1", self.process.port)) for _ in range(IDLE)]
        for k, line in enumerate(opened[: IDLE // 2]):
            head = b"POST /v1/reports HTTP/1.1\r\nhost: x\r\ncontent-length: 41\r\n"
            line.sendall(head + (b"\r\nx" if k % 2 else b"x-half: "))
        return opened

    def finish(self) -> dict[str, Any]:
        """Compare the log with the account, fold it anew, and say what was found."""
        for name, oracle in self.oracles.items():
            for group, count in zip("abc", oracle.taken, strict=False):
                found = self.process.get(f"{self.path(name)}/estimate?group={group}")["reports"]
                if found != count:
                    self.wrong.append(f"{name} {group}: {found} reports, and not {count}")
        said = self.process.said.read_text()
        if not self.process.alive or "Traceback" in said or "Error" in said:
            self.wrong.append(f"it said: {said[-1500:]}")
        memory = self.process.rss
        self.process.end(2)
        store = CollectorStore(self.process.log, existing=True)
        for file in self.process.files[:4]:
            study, _ = read_collected(file)
            done = check_replay(study, store)
            ids = b"".join(store.ids(study.name))
            if study.name in self.oracles:
                taken = [id for group in self.oracles[study.name].groups for id, _ in group.taken]
                if sorted(ids[k : k + 16] for k in range(0, len(ids), 16)) != sorted(taken):
                    self.wrong.append(f"{study.name}: the log holds other ids")
                if done["reports"] != len(taken):
                    self.wrong.append(f"{study.name}: a replay counts {done['reports']} and not {len(taken)}")
            elif done["reports"] != self.rows:
                self.wrong.append(f"rows: {done['reports']} and not {self.rows}")
        store.close()
        return {"requests": self.asked, "accepted": self.accepted, "rss": memory, "lines said": said.count("\n")}


def fuzz(folder: Path, requests: int, seed: int) -> dict[str, Any]:
    """Send so many requests; return counts, memory in MB, the slowest answer of each kind, and what was wrong."""
    run = Fuzz(folder, seed)
    try:
        opened, memory = run.slow(), []
        for k in range(requests):
            run.request()
            if k % (requests // 4) == requests // 8:
                memory.append(run.process.rss)
        for each in opened:
            each.close()
        found = run.finish()
        slowest = {name: round(took, 3) for name, took in sorted(run.slowest.items())}
        return {**found, "counts": run.counts, "memory": memory, "slowest": slowest, "wrong": run.wrong}
    finally:
        run.line.close()
        run.process.end()


def run(requests: int = REQUESTS) -> None:
    """Print what a run has found."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        found = fuzz(Path(folder), requests, 17)
    print(f"\n{requests:,} fuzzed requests in {time.perf_counter() - begun:.0f} s")
    for key, value in found.items():
        print(f"  {key}: {value if key != 'wrong' else len(value)}")
    for each in found["wrong"][:20]:
        print("   ", each)

"""A coordinator and two sites as processes of their own, any of which can be killed at a point of a round.

The processes are forked, so that nothing is imported again. A point is a function that is wrapped: at its call of that
round, before or after it, the process kills itself with signal 9. Whoever was killed is started again, without it.
"""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.federation.network import WAITS, policy, terms

from sottovoce.client.reading.spool import rows_digest
from sottovoce.client.record import Records
from sottovoce.client.site_ledger import SiteLedger, StudyLedger
from sottovoce.federation import words
from sottovoce.federation.coordinator.http import HttpPost
from sottovoce.federation.coordinator.log import StudyLog
from sottovoce.federation.coordinator.rounds import Rounds
from sottovoce.federation.site.poll import SiteLine, connect, poll
from sottovoce.federation.site.resident import Holding, Resident
from sottovoce.sim import dice

SITES = ("north", "south")
STUDY = terms("quantile", {"tau": 0.5, "epsilon": 4.0, "bounds": [0.0, 60.0]}, SITES)
COIN = b"c" * 16

# name: which side, the class and the method that is wrapped, and whether death comes before or after it
POINTS: dict[str, tuple[str, Any, str, str]] = {
    "site before it looks": ("site", Resident, "_door", "before"),
    "site before it spends": ("site", StudyLedger, "transaction", "before"),
    "site before it keeps": ("site", StudyLedger, "keep", "before"),
    "site before it commits": ("site", StudyLedger, "keep", "after"),
    "site before it sends": ("site", Resident, "handle", "after"),
    "coordinator before it keeps the question": ("coordinator", StudyLog, "ask", "before"),
    "coordinator before it asks": ("coordinator", StudyLog, "ask", "after"),
    "coordinator after it has asked": ("coordinator", HttpPost, "send", "after"),
    "coordinator before it keeps a reply": ("coordinator", StudyLog, "tell", "before"),
    "coordinator after it has kept a reply": ("coordinator", StudyLog, "tell", "after"),
    "coordinator before it closes the round": ("coordinator", Rounds, "_round", "after"),
}


class Steps:
    """Seeded words that do not depend on what happened before: those of a round are the round's own.

    A restarted process cannot know how many words its predecessor threw, so every transaction begins its own stream.
    """

    def __init__(self, seed: int) -> None:
        self.seed, self.round, self._own = seed, 0, dice(seed)

    def at(self, round: int) -> None:
        self.round, self._own = round, dice(self.seed * 10_007 + round)

    def words(self, n: int) -> Any:
        return self._own.words(n)

    def split(self, n: int) -> list["Steps"]:
        return [Steps(self.seed + 1 + k) for k in range(n)]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def deadly(owner: Any, name: str, when: str, round: int, now: Callable[..., int | None]) -> None:
    """Wrap a method so that its process dies at a round."""
    real = getattr(owner, name)

    def wrapped(self: Any, *given: Any) -> Any:
        due = now(self, *given) == round
        if due and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(self, *given)
        if due:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, wrapped)


def site(folder: Path, name: str, port: int, point: str, round: int) -> None:
    """Be a site until the study is over."""
    source = Steps(SITES.index(name) + 1)
    held = Records(WAITS[name])
    asked = {"round": 0}
    if point and POINTS[point][0] == "site":
        _, owner, method, when = POINTS[point]
        deadly(owner, method, when, round, lambda *_: asked["round"])
    resident = Resident(
        policy(name), Holding(held, rows_digest(held), None, "wait"), SiteLedger(folder / f"{name}.ledger"), dice=source
    )

    class Noting:
        def handle(self, data: bytes) -> bytes:
            order = words.order_of(data)
            asked["round"] = round_of(order)
            source.at(asked["round"])
            return resident.handle(data)

    with connect(SiteLine(f"http://127.0.0.1:{port}", name)) as client:
        poll(client, Noting(), threading.Event(), once=True)


def round_of(order: Any) -> int:
    """Return the round of a question; 0 for other orders."""
    if not isinstance(order, words.Question):
        return 0
    import msgspec

    return int(msgspec.msgpack.decode(order.envelope)["round"])


def coordinator(folder: Path, port: int, point: str, round: int) -> None:
    """Conduct the study, and leave the result in a file."""
    at = {"round": 0}
    real = StudyLog.asked

    def noted(self: StudyLog, round: int) -> dict[str, bytes]:
        at["round"] = round
        return real(self, round)

    StudyLog.asked = noted  # type: ignore[method-assign]
    if point and POINTS[point][0] == "coordinator":
        _, owner, method, when = POINTS[point]
        deadly(owner, method, when, round, lambda *_: at["round"])
    log = StudyLog(folder / "log", STUDY.name)
    with HttpPost(SITES, "127.0.0.1", port, None) as post:
        result = Rounds(STUDY, log, post, random=lambda: COIN).conduct()
    (folder / "result").write_text(repr((result.estimate, result.interval, result.rounds)))


def forked(target: Callable[..., None], *given: Any) -> int:
    """Run a function in a process of its own."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        target(*given)
        code = 0
    except BaseException as error:
        os.write(2, f"{target.__name__}: {error!r}\n".encode())
    finally:
        os._exit(code)


def run(folder: Path, point: str = "", round: int = 0, seconds: float = 60.0) -> tuple[str, int]:
    """Run the study with a death at a point; return what it came to, and how many have died."""
    port = free_port()
    jobs: dict[int, tuple[Any, ...]] = {}
    first = {"south": point}
    for name in SITES:
        jobs[forked(site, folder, name, port, first.get(name, ""), round)] = (site, folder, name, port)
    jobs[forked(coordinator, folder, port, point, round)] = (coordinator, folder, port)
    deaths, end = 0, time.monotonic() + seconds
    try:
        while jobs:
            child, status = os.waitpid(-1, os.WNOHANG)
            if child == 0:
                if time.monotonic() > end:
                    raise TimeoutError(f"still running: {[job[0].__name__ for job in jobs.values()]}")
                time.sleep(0.005)
                continue
            job = jobs.pop(child)
            if os.WIFSIGNALED(status):
                deaths += 1
                jobs[forked(*job, "", 0)] = job
            elif os.WEXITSTATUS(status):
                raise RuntimeError(f"{job[0].__name__} failed")
    finally:
        for child in jobs:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return (folder / "result").read_text(), deaths

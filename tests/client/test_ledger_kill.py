"""kill -9 at every point of a transaction: nothing spent that was not kept, and what was kept is said again."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.client.ledgers import STUDY, asked, door, enrol, opened

from sottovoce.client.ledger_file import HeadFile, LedgerHead, open_for_writing, read_head
from sottovoce.client.quantile.site import Site
from sottovoce.client.site_ledger import SiteLedger
from sottovoce.core.errors import BadInput

Killer = Callable[[], None]


class Watched:
    """A connection that dies before or after a statement."""

    def __init__(self, file: Any, statement: str, after: bool, die: Killer) -> None:
        self._file, self._statement, self._after, self._die = file, statement, after, die

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def execute(self, statement: str, *values: Any) -> Any:
        if statement.startswith(self._statement) and not self._after:
            self._die()
        done = self._file.execute(statement, *values)
        if statement.startswith(self._statement):
            self._die()
        return done


def at(statement: str, *, after: bool) -> Callable[[SiteLedger, Killer], None]:
    def set_up(ledger: SiteLedger, die: Killer) -> None:
        ledger._book._file = Watched(ledger._book._file, statement, after, die)  # type: ignore[assignment]

    return set_up


def after_the_draw(ledger: SiteLedger, die: Killer) -> None:
    drawn = Site._pieces

    def drawing(*args: Any) -> Any:
        yield from drawn(*args)
        die()

    Site._pieces = drawing  # type: ignore[method-assign, assignment]


def beside(after: bool) -> Callable[[SiteLedger, Killer], None]:
    def set_up(ledger: SiteLedger, die: Killer) -> None:
        write = HeadFile.write

        def writing(file: HeadFile, head: LedgerHead, *, lasting: bool) -> None:
            if after:
                write(file, head, lasting=lasting)
            die()

        HeadFile.write = writing  # type: ignore[method-assign, assignment]

    return set_up


POINTS = {
    "before BEGIN": (at("BEGIN", after=False), False),
    "after BEGIN": (at("BEGIN", after=True), False),
    "after the draw": (after_the_draw, False),
    "before the reply is written": (at("INSERT INTO reply", after=False), False),
    "after the reply is written": (at("INSERT INTO reply", after=True), False),
    "before COMMIT": (at("COMMIT", after=False), False),
    "after COMMIT": (at("COMMIT", after=True), True),
    "before the head": (beside(after=False), True),
    "after the head": (beside(after=True), True),
    "after sending": (lambda ledger, die: None, True),
}


def killed(work: Callable[[Killer], None]) -> bytes:
    """Run something in a child that kills itself, and return what it had sent."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - seen by the parent alone
        try:
            os.dup2(writing, 1)
            work(lambda: os.kill(os.getpid(), signal.SIGKILL))
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        said = told.read()
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    return said


@pytest.mark.parametrize("round", [1, 3])
@pytest.mark.parametrize(("set_up", "kept"), POINTS.values(), ids=POINTS)
def test_killed_while_answering(
    tmp_path: Path, set_up: Callable[[SiteLedger, Killer], None], kept: bool, round: int
) -> None:
    with opened(tmp_path) as ledger:
        answering = door(enrol(ledger))
        before = [answering.answer(asked(each)) for each in range(1, round)]
        counter = ledger.counter

    def work(die: Killer) -> None:
        ledger = opened(tmp_path)
        answering = door(ledger.study(STUDY))
        set_up(ledger, die)
        os.write(1, answering.answer(asked(round)))
        die()

    sent = killed(work)
    with opened(tmp_path) as ledger:
        study = ledger.study(STUDY)
        assert (ledger.counter, study.taken) == (counter + kept, 10 * (round - 1 + kept))
        assert read_head(tmp_path / "site.ledger") == LedgerHead(ledger.counter, ledger.head)
        answering = door(study)
        assert [answering.answer(asked(each)) for each in range(1, round)] == before
        said = answering.answer(asked(round))
        assert (answering.answer(asked(round)), study.taken) == (said, 10 * round)
        assert sent in (b"", said)
        with pytest.raises(BadInput, match=f"round {round} was already answered"):
            answering.answer(asked(round, point=51.0))
        assert ledger.verify() == []
    if kept:  # drawn once: what comes back is what was drawn before the kill
        assert ledger_says(tmp_path) == counter + 1


def ledger_says(folder: Path) -> int:
    with opened(folder) as ledger:
        return ledger.counter


ENROLLING = {
    "before BEGIN": (at("BEGIN", after=False), False),
    "before the ids": (at("WITH RECURSIVE", after=False), False),
    "after the ids": (at("WITH RECURSIVE", after=True), False),
    "before COMMIT": (at("COMMIT", after=False), False),
    "after COMMIT": (at("COMMIT", after=True), True),
    "after the head": (beside(after=True), True),
}


@pytest.mark.parametrize(("set_up", "kept"), ENROLLING.values(), ids=ENROLLING)
def test_killed_while_enrolling(tmp_path: Path, set_up: Callable[[SiteLedger, Killer], None], kept: bool) -> None:
    people = [b"patient %d" % number for number in range(200)]
    with opened(tmp_path) as ledger:
        enrol(ledger, b"before", 0.5, people=people[:100], cap=1.0)

    def work(die: Killer) -> None:
        ledger = opened(tmp_path)
        set_up(ledger, die)
        enrol(ledger, b"killed", 0.5, people=people, cap=1.0)

    assert killed(work) == b""
    with opened(tmp_path) as ledger:
        shown = ledger.show()
        assert (shown["ids"], shown["dearest"], len(shown["studies"])) == ((200, 1.0, 2) if kept else (100, 0.5, 1))
        first = enrol(ledger, b"killed", 0.5, people=people, cap=1.0)
        assert enrol(ledger, b"killed", 0.5, people=people, cap=1.0).key.tolist() == first.key.tolist()
        assert (ledger.show()["dearest"], ledger.verify()) == (1.0, [])


@pytest.mark.parametrize(("set_up", "kept"), ENROLLING.values(), ids=ENROLLING)
def test_killed_while_giving_back(tmp_path: Path, set_up: Callable[[SiteLedger, Killer], None], kept: bool) -> None:
    people = [b"patient %d" % number for number in range(200)]
    with opened(tmp_path) as ledger:
        enrol(ledger, b"before", 0.5, people=people[:100], cap=1.0)
        enrol(ledger, b"killed", 0.5, people=people, cap=1.0)

    def work(die: Killer) -> None:
        ledger = opened(tmp_path)
        set_up(ledger, die)
        ledger.end(b"killed", rows=b"digest of the rows", people=people)

    assert killed(work) == b""
    with opened(tmp_path) as ledger:
        shown = ledger.show()
        assert (shown["ids"], shown["dearest"], ledger.verify()) == ((100, 0.5, []) if kept else (200, 1.0, []))
        assert ledger.end(b"killed", rows=b"digest of the rows", people=people)
        assert (ledger.show()["ids"], ledger.show()["dearest"], ledger.verify()) == (100, 0.5, [])


@pytest.mark.parametrize("statement", ["BEGIN", "INSERT INTO meta", "COMMIT", "SELECT counter"])
def test_killed_while_a_ledger_is_made(tmp_path: Path, statement: str, monkeypatch: pytest.MonkeyPatch) -> None:

    def work(die: Killer) -> None:
        def opening(path: Path) -> Any:
            file, head, new = open_for_writing(path)
            return Watched(file, statement, False, die), head, new

        monkeypatch.setattr("sottovoce.client.ledger_book.open_for_writing", opening)
        opened(tmp_path)
        die()

    killed(work)
    with opened(tmp_path) as ledger:
        door(enrol(ledger)).answer(asked(1))
        assert (ledger.counter, ledger.verify()) == (2, [])

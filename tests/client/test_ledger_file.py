"""The file of a durable ledger: what is not one, is damaged, full, old or held by others is refused in one sentence."""

import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.client.ledgers import asked, door, enrol, opened

from sottovoce.client.ledger_file import HeadFile, LedgerHead, head_path, read_head
from sottovoce.client.site_ledger import SiteLedger
from sottovoce.core.errors import BadInput

FOLDER = "a folder"


def files(folder: Path) -> list[Path]:
    """Return the files of a ledger: its own, what SQLite has beside it, and the head."""
    return sorted(folder.glob("site.ledger*"))


def copied(folder: Path) -> Path:
    """Copy a ledger, head and all."""
    copy = folder / "copy"
    copy.mkdir()
    for file in files(folder):
        shutil.copy(file, copy)
    return copy


def used(folder: Path, rounds: int = 2) -> None:
    with opened(folder) as ledger:
        answering = door(enrol(ledger))
        for round in range(1, rounds + 1):
            answering.answer(asked(round))


def other_application(path: Path) -> None:
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE mine (it INTEGER)")
    file.close()


def later_version(path: Path) -> None:
    used(path.parent)
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA user_version = 99")
    file.close()


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "text": (lambda path: path.write_text("age,weight\n" * 300), "is no ledger, or is damaged"),
    "another application": (other_application, "is no ledger; name another file"),
    "a later version": (later_version, "is of a later version"),
    FOLDER: (lambda path: path.mkdir(), "cannot be opened"),
}


@pytest.mark.parametrize(("make", "sentence"), WRONG.values(), ids=WRONG)
def test_what_is_no_ledger_is_refused_and_left_alone(
    tmp_path: Path, make: Callable[[Path], object], sentence: str, request: pytest.FixtureRequest
) -> None:
    path = tmp_path / "site.ledger"
    make(path)
    before = {file: file.read_bytes() for file in files(tmp_path) if file.is_file()}
    with pytest.raises(BadInput, match=sentence) as caught:
        SiteLedger(path)
    assert "\n" not in str(caught.value)
    assert {file: file.read_bytes() for file in files(tmp_path) if file.is_file()} == before


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"site.ledger cannot be opened \(no such file"):
        opened(tmp_path / "missing")


def test_an_old_copy_is_noticed(tmp_path: Path) -> None:
    used(tmp_path, rounds=1)
    old = copied(tmp_path)
    used(tmp_path, rounds=2)
    shutil.copy(old / "site.ledger", tmp_path)
    for _ in range(2):
        with pytest.raises(BadInput, match=r"is older than what was written beside it .*put the newest copy of both"):
            opened(tmp_path)


def test_a_ledger_that_is_gone_is_noticed(tmp_path: Path) -> None:
    used(tmp_path)
    (tmp_path / "site.ledger").unlink()
    for _ in range(2):
        with pytest.raises(BadInput, match="is older than what was written beside it"):
            opened(tmp_path)


def test_a_head_that_is_gone_is_noticed(tmp_path: Path) -> None:
    used(tmp_path)
    (tmp_path / "site.ledger.head").unlink()
    for _ in range(2):
        with pytest.raises(BadInput, match="is older than what was written beside it"):
            opened(tmp_path)


def test_an_older_head_is_brought_up_to_date(tmp_path: Path) -> None:
    """A failure of power may set the head back: the ledger descends from it, so nothing was put back."""
    used(tmp_path, rounds=1)
    old = copied(tmp_path)
    used(tmp_path, rounds=4)
    shutil.copy(old / "site.ledger.head", tmp_path)
    with opened(tmp_path) as ledger:
        assert (
            read_head(tmp_path / "site.ledger") == LedgerHead(ledger.counter, ledger.head) == LedgerHead(5, ledger.head)
        )


def test_the_head_of_another_ledger_is_noticed(tmp_path: Path) -> None:
    for name, rounds in (("one", 2), ("two", 2), ("short", 1)):
        (tmp_path / name).mkdir()
        used(tmp_path / name, rounds)
    for name in ("two", "short"):
        shutil.copy(tmp_path / name / "site.ledger.head", tmp_path / "one")
        with pytest.raises(BadInput, match="the head written beside the ledger is of another one"):
            opened(tmp_path / "one")


def test_a_torn_line_leaves_the_head_before_it(tmp_path: Path) -> None:
    used(tmp_path)
    path = head_path(tmp_path / "site.ledger")
    latest = read_head(tmp_path / "site.ledger")
    assert latest is not None
    data = bytearray(path.read_bytes())
    data[latest.counter % 2 * 4096 + 30] ^= 1
    path.write_bytes(data)
    assert read_head(tmp_path / "site.ledger") == LedgerHead(2, read_head(tmp_path / "site.ledger").digest)  # type: ignore[union-attr]
    with opened(tmp_path) as ledger:
        assert ledger.counter == 3
    assert read_head(tmp_path / "site.ledger") == latest
    path.write_bytes(b"nonsense" * 1000)
    for look in (opened, lambda folder: read_head(folder / "site.ledger")):
        with pytest.raises(BadInput, match=r"site.ledger.head is not the head of a ledger"):
            look(tmp_path)


def test_a_changed_byte_is_noticed_wherever_it_is(tmp_path: Path) -> None:
    """Every page is changed in turn: each time the ledger is refused, or all it says is as it was."""
    used(tmp_path)
    path, whole = tmp_path / "site.ledger", (tmp_path / "site.ledger").read_bytes()
    with opened(tmp_path) as ledger:
        said, size = ledger.export(), 4096
    refused = []
    for place in [*range(0, 100, 7), *range(110, len(whole), 613)]:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            with opened(tmp_path) as ledger:
                assert ledger.export() == said
        except BadInput as error:
            refused.append(str(error))
    assert len(refused) > len(whole) // size
    assert "\n" not in "".join(refused)


def test_a_second_process_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        answering = door(enrol(ledger))
        with pytest.raises(BadInput, match="is held by another process"):
            opened(tmp_path)
        code = "import sys; from sottovoce.client.site_ledger import SiteLedger; SiteLedger(sys.argv[1])"
        words = [sys.executable, "-c", code, str(tmp_path / "site.ledger")]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert "BadInput: the ledger site.ledger is held by another process; end that one" in done.stderr
        answering.answer(asked(1))
    with opened(tmp_path) as ledger:
        assert (ledger.counter, ledger.verify()) == (2, [])


def in_a_child(work: Callable[[], bytes]) -> bytes:
    """Run something in a forked child and return what it says."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - seen by the parent alone
        try:
            os.write(writing, work())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        said = told.read()
    os.waitpid(child, 0)
    return said


def refusal(ask: Callable[[], object]) -> bytes:
    try:
        ask()
    except BadInput as error:
        return f"{error}\n".encode()
    return b"answered\n"


def test_a_fork_answers_nothing_and_spoils_nothing(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    kept = enrol(ledger)
    answering = door(kept)
    first = answering.answer(asked(1))

    def work() -> bytes:
        said = refusal(lambda: answering.answer(asked(2))) + refusal(lambda: kept.taken) + refusal(ledger.show)
        ledger.shut()  # as at the end of an interpreter: the connection is closed in the child
        return said + refusal(lambda: opened(tmp_path))

    said = in_a_child(work).decode().splitlines()
    assert ["opened by another process" in line for line in said[:3]] == [True] * 3
    assert "is held by another process" in said[3]
    second = answering.answer(asked(2))
    ledger.shut()
    with opened(tmp_path) as ledger:
        again = door(ledger.study(kept.study))
        assert (again.answer(asked(1)), again.answer(asked(2)), ledger.verify()) == (first, second, [])


def test_a_full_file_answers_nothing_until_there_is_room(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        kept, file = enrol(ledger), ledger._book._file
        answering = door(kept)
        (pages,) = file.execute("PRAGMA page_count").fetchone()
        file.execute(f"PRAGMA max_page_count = {pages}")
        said: list[bytes] = []
        refused = ""
        while not refused:
            before, round = ledger.head, len(said) + 1
            try:
                said.append(answering.answer(asked(round, count=0)))
            except BadInput as error:
                refused = str(error)
        assert "the disk is full; nothing was answered: make room and ask again" in refused
        assert (ledger.head, ledger.verify()) == (before, [])
        with pytest.raises(BadInput, match="the disk is full"):
            enrol(ledger, b"many", people=[b"%d" % number for number in range(1000)])
        assert answering.answer(asked(round - 1, count=0)) == said[-1]
        file.execute("PRAGMA max_page_count = 100000")
        answering.answer(asked(round, count=0))
        assert (ledger.show()["ids"], ledger.verify()) == (0, [])


def test_a_disk_that_takes_no_more_bytes_answers_nothing_until_it_does(tmp_path: Path) -> None:
    def work() -> bytes:
        with opened(tmp_path) as ledger:
            kept = enrol(ledger)
            answering, head = door(kept), ledger.head
            size = (tmp_path / "site.ledger-wal").stat().st_size
            most = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, most[1]))
            said = refusal(lambda: answering.answer(asked(1)))
            said += refusal(lambda: enrol(ledger, b"other", people=[b"%d" % each for each in range(50_000)]))
            same = ledger.head == head and kept.taken == 0 and ledger.verify() == []
            resource.setrlimit(resource.RLIMIT_FSIZE, most)
            answering.answer(asked(1))
            return said + repr((same, kept.taken, ledger.verify())).encode()

    *refused, at_last = in_a_child(work).decode().splitlines()
    assert [line.count("nothing was answered") for line in refused] == [1, 1]
    assert at_last == "(True, 10, [])"


def test_what_may_not_be_written_answers_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        answering = door(enrol(ledger))
        ledger._book._file.execute("PRAGMA query_only = ON")
        with pytest.raises(BadInput, match="may not be written; nothing was answered"):
            answering.answer(asked(1))
        ledger._book._file.execute("PRAGMA query_only = OFF")
        answering.answer(asked(1))


def test_another_program_that_holds_the_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sottovoce.client.ledger_file.WAIT", 0.01)
    with opened(tmp_path) as ledger:
        answering = door(enrol(ledger))
        other = sqlite3.connect(tmp_path / "site.ledger", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(BadInput, match="is held by another program; nothing was answered"):
            answering.answer(asked(1))
        other.close()
        answering.answer(asked(1))


def test_what_is_kept_but_could_not_be_told_beside_goes_out_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as ledger:
        kept = enrol(ledger)
        answering = door(kept)
        with monkeypatch.context() as broken:
            broken.setattr(os, "pwrite", full_disk)
            for _ in range(2):
                with pytest.raises(BadInput, match=r"site.ledger.head beside the ledger cannot be written .*ask again"):
                    answering.answer(asked(1))
            with pytest.raises(BadInput, match="cannot be written"):
                answering.answer(asked(2))
        assert kept.taken == 10
        said = answering.answer(asked(1))
        assert (answering.answer(asked(1)), kept.taken, ledger.verify()) == (said, 10, [])
    assert read_head(tmp_path / "site.ledger") == LedgerHead(2, kept_head(tmp_path))


def full_disk(*_: object) -> int:
    raise OSError(28, "No space left on device")


def kept_head(folder: Path) -> bytes:
    with opened(folder) as ledger:
        return ledger.head


def test_a_head_file_is_held_by_one(tmp_path: Path) -> None:
    first = HeadFile(tmp_path / "x")
    with pytest.raises(BadInput, match="held by another process"):
        HeadFile(tmp_path / "x")
    first.close()
    HeadFile(tmp_path / "x").close()

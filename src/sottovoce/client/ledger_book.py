"""The transactions of a durable ledger: each is kept with full sync and moves its head on by one, or not at all.

A ledger that is damaged, or that was put back from a copy older than the head beside it, is not opened.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sottovoce.client.ledger import Turns
from sottovoce.client.ledger_audit import faults, first_head, next_head
from sottovoce.client.ledger_file import APPLICATION, TABLES, VERSION, HeadFile, LedgerHead, open_for_writing, sentences
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import SystemEntropy


class LedgerBook:
    """An open ledger file and the head beside it; one process, whose threads take turns."""

    __slots__ = ("_beside", "_file", "_turns", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._turns = Turns()
        file, beside, new = open_for_writing(path)
        self._file: sqlite3.Connection = file
        self._beside: HeadFile = beside
        try:
            self._begin(new)
        except BaseException:
            self.shut()
            raise

    @property
    def beside(self) -> LedgerHead | None:
        """Return the head that was last written beside the file."""
        return self._beside.latest

    def head(self) -> LedgerHead:
        """Return the head of the ledger."""
        with self.reading() as file:
            return LedgerHead(*file.execute("SELECT counter, head FROM meta").fetchone())

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give the file to one thread of the process that opened it."""
        with self._turns, sentences(self.path):
            yield self._file

    @contextmanager
    def transaction(self, *, lasting: bool = True) -> Iterator[sqlite3.Connection]:
        """Run one transaction: kept for good and told beside the file before it ends, or not at all.

        The file is synced always, what is told beside it where it is to be ``lasting``: of a reply it need not be, for
        a head that a failure of power sets back is only a bit older, and the ledger still descends from it.
        """
        with self.reading() as file:
            file.execute("BEGIN IMMEDIATE")
            try:
                before = self.head()
                if self._beside.latest != before:  # kept, but not told beside the file when that could not be written
                    self._beside.write(before, lasting=True)
                yield file
                after = self.head()
                file.execute("ROLLBACK" if after == before else "COMMIT")
            except BaseException:
                if file.in_transaction:
                    file.execute("ROLLBACK")
                raise
            if after != before:
                self._beside.write(after, lasting=lasting)

    def advance(self, study: bytes, what: str, chain: bytes) -> int:
        """Move the head on by the running transaction, which leaves a study at a link; return its number."""
        now = self.head()
        counter = now.counter + 1
        if not self._file.in_transaction:
            raise RuntimeError("a ledger is written inside a transaction alone")
        head = next_head(now.digest, counter, study, what, chain)
        self._file.execute("UPDATE meta SET counter = ?, head = ?", (counter, head))
        return counter

    def shut(self) -> None:
        """Close the file and let others have it."""
        self._file.close()
        self._beside.close()

    def _begin(self, new: bool) -> None:
        """Make the tables of a new ledger; of one that is known, see that it is whole and not an old copy."""
        beside = self._beside.latest
        if new and beside is not None and beside.counter > 0:
            raise self._put_back()
        with self.reading() as file:
            if new:
                secret = SystemEntropy().words(4).tobytes()
                file.executescript(
                    f"BEGIN IMMEDIATE; {TABLES} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};"
                )
                file.execute("INSERT INTO meta VALUES (1, ?, 0, ?)", (secret, first_head(secret)))
                file.execute("COMMIT")
                beside = None
            wrong = faults(file, beside, whole=False)
        now = self.head()
        if now.counter > 0 if beside is None else beside.counter > now.counter:
            raise self._put_back()
        if wrong:
            raise BadInput(f"the ledger {self.path.name} is damaged: {wrong[0]}; put its newest copy back.")
        if self._beside.latest != now:
            self._beside.write(now, lasting=True)

    def _put_back(self) -> BadInput:
        return BadInput(
            f"the ledger {self.path.name} is older than what was written beside it ({self.path.name}.head); put the "
            "newest copy of both back, or begin a new ledger whose caps count what was spent."
        )


def time_now() -> str:
    """Return the time, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")

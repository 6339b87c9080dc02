"""The file of a durable ledger: its tables, how it is opened, and the head file that notices when it was put back.

Whatever goes wrong with the file is one sentence, and nothing is answered. One process writes a ledger; others may
read it meanwhile.
"""

import fcntl
import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from sottovoce.core.errors import BadInput
from sottovoce.core.shown import shown

APPLICATION = 0x536F7456  # of an SQLite file that is a ledger: "SotV"
VERSION = 1
WAIT = 5.0  # seconds for another program that holds the file
_LINE, _APART = 103, 4096  # bytes of a line of the head file, and from one line to the other: no write tears both

TABLES = """
CREATE TABLE meta (
    one INTEGER PRIMARY KEY CHECK (one = 1), secret BLOB NOT NULL, counter INTEGER NOT NULL, head BLOB NOT NULL
) STRICT;
CREATE TABLE study (
    id BLOB PRIMARY KEY, card BLOB NOT NULL, key BLOB NOT NULL, size INTEGER NOT NULL, rows_digest BLOB NOT NULL,
    epsilon INTEGER NOT NULL, source TEXT NOT NULL, named INTEGER NOT NULL, taken INTEGER NOT NULL, head BLOB NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'closed', 'refused', 'released')),
    opened INTEGER NOT NULL, opened_at TEXT NOT NULL, ended INTEGER, ended_at TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE reply (
    counter INTEGER PRIMARY KEY, study BLOB NOT NULL REFERENCES study, key INTEGER NOT NULL, first INTEGER NOT NULL,
    count INTEGER NOT NULL, asked TEXT NOT NULL, query BLOB NOT NULL, kind TEXT NOT NULL, body BLOB NOT NULL,
    at TEXT NOT NULL, chain BLOB NOT NULL, UNIQUE (study, key)
) STRICT;
CREATE TABLE record (id BLOB PRIMARY KEY, spent INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE source (name TEXT PRIMARY KEY, spent INTEGER NOT NULL, named INTEGER NOT NULL) STRICT, WITHOUT ROWID;
"""


class LedgerHead(NamedTuple):
    """How many transactions a ledger has kept, and the digest that they end in."""

    counter: int
    digest: bytes


class HeadFile:
    """A ledger's latest head in a file of its own, and the lock that lets one process write the ledger.

    Two lines are written in turn and in place, each with a check of its own: a line that is torn leaves the one before
    it, and the file never grows, so that a full disk does not stop it.
    """

    __slots__ = ("_file", "_path", "latest")

    def __init__(self, ledger: Path) -> None:
        path = head_path(ledger)
        self._path = path
        try:
            self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0)
        except OSError as error:
            raise BadInput(
                f"the file {path.name} beside the ledger cannot be opened ({os.strerror(error.errno or 0).lower()}); "
                "give this account the right to read and write it and its folder."
            ) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise BadInput(
                f"the ledger {ledger.name} is held by another process; end that one, or give this site another ledger."
            ) from None
        try:
            self.latest = _latest(self._file.read(), path.name)
        except BadInput:
            self.close()
            raise

    def write(self, head: LedgerHead, *, lasting: bool) -> None:
        """Write the head; where it is to be ``lasting``, a failure of power cannot undo it, which takes a sync."""
        file = self._file.fileno()
        try:
            if self.latest is None:  # both lines are there from the beginning, and so is the name in the folder
                os.pwrite(file, b"\n" * (_APART + _LINE), 0)
                os.fsync(file)
                _sync_folder(self._path.parent)
            os.pwrite(file, _line(head), head.counter % 2 * _APART)
            if lasting:
                os.fsync(file)
        except OSError as error:
            raise BadInput(
                f"the file {self._path.name} beside the ledger cannot be written "
                f"({os.strerror(error.errno or 0).lower()}); nothing was sent: look at the disk and ask again."
            ) from None
        self.latest = head

    def close(self) -> None:
        """Give the lock back."""
        self._file.close()


def head_path(ledger: Path) -> Path:
    """Return where the head of a ledger is written beside it."""
    return ledger.with_name(f"{ledger.name}.head")


def read_head(ledger: Path) -> LedgerHead | None:
    """Return the head that was last written beside a ledger, if there is one."""
    path = head_path(ledger)
    try:
        return _latest(path.read_bytes(), path.name)
    except FileNotFoundError:
        return None
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise BadInput(
            f"the file {shown(path.name)} cannot be read ({reason}); read it as the site's account."
        ) from None


def _sync_folder(folder: Path) -> None:
    """Make the name of a new file last."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _line(head: LedgerHead) -> bytes:
    """Return a head as a line with its check."""
    text = b"%020d %s" % (head.counter, head.digest.hex().encode())
    return b"%s %s\n" % (text, hashlib.sha256(text).hexdigest()[:16].encode())


def _latest(data: bytes, name: str) -> LedgerHead | None:
    """Return the later of two lines; None where nothing was ever written."""
    found = []
    for line in (data[:_LINE], data[_APART : _APART + _LINE]):
        try:
            counter, digest, _ = line.decode("ascii").split()
            head = LedgerHead(int(counter), bytes.fromhex(digest))
        except ValueError:
            continue
        found += [head] if _line(head) == line else []
    if data.strip() and not found:
        raise BadInput(f"the file {name} is not the head of a ledger; put back the one that belongs to it.")
    return max(found, default=None)


def open_for_writing(path: Path) -> tuple[sqlite3.Connection, HeadFile, bool]:
    """Open a ledger, or make the tables of a new one; return whether it is new, too."""
    with sentences(path):
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:  # not opened here: closing it again would drop the locks of a connection to it
            pass
        except OSError as error:
            raise BadInput(
                f"the ledger {path.name} cannot be opened ({os.strerror(error.errno or 0).lower()}); "
                "give this account the right to read and write it and its folder."
            ) from None
        file = sqlite3.connect(path, timeout=WAIT, isolation_level=None, check_same_thread=False)
        head = None
        try:
            known = is_ledger(file, path)
            head = HeadFile(path)
            file.execute("PRAGMA journal_mode = WAL").close()
            for setting in (
                "synchronous = FULL",
                "fullfsync = ON",
                "trusted_schema = OFF",
                "journal_size_limit = 16777216",
            ):
                file.execute(f"PRAGMA {setting}").close()
            file.execute("BEGIN IMMEDIATE")  # a file that may not be written says so here, before anybody is asked
            file.execute("ROLLBACK")
        except BaseException:
            file.close()
            if head is not None:
                head.close()
            raise
        return file, head, not known


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Open a ledger to look at it, whether a site holds it or not."""
    try:
        there = path.is_file()
    except OSError:  # of a name that no file can have
        there = False
    if not there:
        raise BadInput(f"there is no ledger {shown(path.name)}; name the file that the site's policy names.")
    with sentences(path):
        file = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=WAIT, isolation_level=None)
        try:
            file.execute("BEGIN")
            if not is_ledger(file, path):
                raise BadInput(f"the ledger {path.name} is empty; name the file that the site's policy names.")
        except BaseException:
            file.close()
            raise
        return file


def is_ledger(file: sqlite3.Connection, path: Path) -> bool:
    """Tell whether a file is a ledger, or empty; refuse what is neither, or of a later version."""
    (application,) = file.execute("PRAGMA application_id").fetchone()
    (version,) = file.execute("PRAGMA user_version").fetchone()
    (tables,) = file.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()
    if application != APPLICATION and tables:
        raise BadInput(f"the file {path.name} is no ledger; name another file.")
    if version > VERSION:
        raise BadInput(f"the ledger {path.name} is of a later version; use the program that wrote it, or a later one.")
    return bool(tables)


_WRONG = {
    sqlite3.SQLITE_FULL: "cannot be written, for the disk is full; nothing was answered: make room and ask again.",
    sqlite3.SQLITE_IOERR: "cannot be read or written; nothing was answered: look at the disk and ask again.",
    sqlite3.SQLITE_READONLY: "may not be written; nothing was answered: give this account the right to write it.",
    sqlite3.SQLITE_BUSY: "is held by another program; nothing was answered: end that one and ask again.",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; give this account the right to read and write it and its folder.",
    sqlite3.SQLITE_NOTADB: "is no ledger, or is damaged; name another file, or put its newest copy back.",
    sqlite3.SQLITE_CORRUPT: "is damaged; nothing was answered: stop the site and put the newest copy back.",
}


@contextmanager
def sentences(path: Path) -> Iterator[None]:
    """Say in one sentence what is wrong with the file."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        text = _WRONG.get(code, "cannot be used here; nothing was answered: open it again.")
        raise BadInput(f"the ledger {shown(path.name)} {text}") from None

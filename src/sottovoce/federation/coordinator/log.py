"""The coordinator's log: what was asked of whom and what they said, each kept before anything goes on.

The state of a study is the fold of this log, so a coordinator that is killed goes on where it was: what was answered is
not asked again, and what would now be asked must be what was asked then. SQLite in a file, or PostgreSQL by its URL.
"""

import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from sottovoce.core.errors import BadInput

VERSION = 1
_TABLES = (
    "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS study (name TEXT PRIMARY KEY, terms BLOB NOT NULL, coin BLOB NOT NULL,"
    " nonce BLOB NOT NULL, roster BLOB, card BLOB, state TEXT NOT NULL, result TEXT, begun REAL NOT NULL, ended REAL)",
    "CREATE TABLE IF NOT EXISTS ask (study TEXT NOT NULL, round BIGINT NOT NULL, site TEXT NOT NULL,"
    " body BLOB NOT NULL, PRIMARY KEY (study, round, site))",
    "CREATE TABLE IF NOT EXISTS told (study TEXT NOT NULL, round BIGINT NOT NULL, site TEXT NOT NULL,"
    " body BLOB NOT NULL, at REAL NOT NULL, PRIMARY KEY (study, round, site))",
    "CREATE TABLE IF NOT EXISTS absent (study TEXT NOT NULL, round BIGINT NOT NULL, site TEXT NOT NULL,"
    " spent BIGINT NOT NULL, at REAL NOT NULL, PRIMARY KEY (study, round, site))",
    "CREATE TABLE IF NOT EXISTS gone (study TEXT NOT NULL, round BIGINT NOT NULL, site TEXT NOT NULL,"
    " at REAL NOT NULL, PRIMARY KEY (study, site))",
    "CREATE TABLE IF NOT EXISTS head (study TEXT NOT NULL, site TEXT NOT NULL, counter BIGINT NOT NULL,"
    " head BLOB NOT NULL, PRIMARY KEY (study, site))",
    "CREATE TABLE IF NOT EXISTS refused (study TEXT NOT NULL, at REAL NOT NULL, site TEXT NOT NULL,"
    " round BIGINT NOT NULL, why TEXT NOT NULL)",
)
AWAY = "the database of the log cannot be used any more; start the coordinator again, and it goes on from there."
PATIENCE, BETWEEN = 3.0, 0.05  # seconds that a server may need to notice that a killed coordinator is gone
NOTED = 10_000  # refusals that are kept of a study: a site that sends rubbish for ever fills no disk


class LoggedStudy(NamedTuple):
    """A study as it was begun: its terms, the public key of its lotteries, its nonce, and who took part."""

    terms: bytes
    coin: bytes
    nonce: bytes
    roster: bytes | None
    card: bytes | None
    state: str
    result: str | None


class Refusal(NamedTuple):
    """What was refused of whom, without a value."""

    at: float
    site: str
    round: int
    why: str


class StudyLog:
    """The log of one study, in a file or a database that may hold others."""

    def __init__(self, where: str | Path, name: str) -> None:
        self.name = name
        self._lock = threading.RLock()
        self._noted = 0
        text = str(where)
        self._server = re.match(r"postgres(ql)?://", text) is not None
        self.where = "PostgreSQL" if self._server else text  # a URL may hold a password
        try:
            self._base: Any = _postgres(text, name) if self._server else _sqlite(text)
            with self._transaction():
                if self._server:  # coordinators of other studies may begin at the same time
                    self._run("SELECT pg_advisory_xact_lock(hashtext('sottovoce coordinator tables'))")
                for table in _TABLES:
                    self._run(
                        table.replace(" BLOB", " BYTEA").replace(" REAL", " DOUBLE PRECISION")
                        if self._server
                        else table
                    )
                found = self._run("SELECT value FROM meta WHERE name = ?", "version").fetchone()
                if found is None:
                    self._run("INSERT INTO meta (name, value) VALUES (?, ?)", "version", str(VERSION))
            if found is not None and found[0] != str(VERSION):
                raise BadInput(f"the log is of version {found[0]}, and this program writes {VERSION}; use its own.")
        except (sqlite3.Error, OSError) as error:
            raise BadInput(
                f"the log {'' if self._server else text + ' '}cannot be used ({_why(error)}); give another."
            ) from None

    def close(self) -> None:
        """Let go of the file."""
        with self._lock, suppress(sqlite3.Error, OSError):
            self._base.close()

    def begin(self, terms: bytes, coin: bytes, nonce: bytes) -> LoggedStudy:
        """Begin a study, or return how it was begun; other terms under the same name are refused."""
        with self._transaction():
            known = self.study()
            if known is None:
                self._run(
                    "INSERT INTO study (name, terms, coin, nonce, state, begun) VALUES (?, ?, ?, ?, 'open', ?)",
                    self.name, terms, coin, nonce, time.time(),
                )  # fmt: skip
                known = LoggedStudy(terms, coin, nonce, None, None, "open", None)
        if known.terms != terms:
            raise BadInput("this log holds a study of the same name with other terms; rename one, or give another log.")
        return known

    def study(self) -> LoggedStudy | None:
        """Return the study, if it was begun."""
        row = self._run(
            "SELECT terms, coin, nonce, roster, card, state, result FROM study WHERE name = ?", self.name
        ).fetchone()
        if row is None:
            return None
        found: list[Any] = [bytes(each) if isinstance(each, memoryview) else each for each in row]
        return LoggedStudy(*found)

    def settle(self, roster: bytes, card: bytes) -> None:
        """Keep who takes part, and the card that was sent to them."""
        with self._transaction():
            self._run("UPDATE study SET roster = ?, card = ? WHERE name = ?", roster, card, self.name)

    def invite(self) -> None:
        """Keep that sites are about to be invited: from here on they may have reserved what the study costs."""
        with self._transaction():
            self._run("UPDATE study SET state = 'invited' WHERE name = ? AND state = 'open'", self.name)

    def finish(self, state: str, result: str | None) -> None:
        """Keep how the study ended."""
        with self._transaction():
            self._run(
                "UPDATE study SET state = ?, result = ?, ended = ? WHERE name = ?",
                state, result, time.time(), self.name,
            )  # fmt: skip

    def asked(self, round: int) -> dict[str, bytes]:
        """Return what each site was asked in a round."""
        return self._bodies("ask", round)

    def ask(self, round: int, questions: Mapping[str, bytes]) -> None:
        """Keep what is about to be asked: all of it, or nothing."""
        with self._transaction():
            for site, body in questions.items():
                self._run("INSERT INTO ask VALUES (?, ?, ?, ?)", self.name, round, site, body)

    def told(self, round: int) -> dict[str, bytes]:
        """Return what each site has said in a round."""
        return self._bodies("told", round)

    def tell(self, round: int, site: str, body: bytes, counter: int, head: bytes) -> None:
        """Keep a reply, and the head of the ledger that it came with."""
        with self._transaction():
            self._run("INSERT INTO told VALUES (?, ?, ?, ?, ?)", self.name, round, site, body, time.time())
            self._keep_head(site, counter, head)

    def absent(self, round: int) -> dict[str, bool]:
        """Return who was given up in a round, and whether they may have spent the records that they were asked for."""
        rows = self._run("SELECT site, spent FROM absent WHERE study = ? AND round = ?", self.name, round)
        return {site: bool(spent) for site, spent in rows.fetchall()}

    def miss(self, round: int, site: str, spent: bool) -> None:
        """Keep that a site is given up in a round: later it is not counted there any more."""
        with self._transaction():
            self._run("INSERT INTO absent VALUES (?, ?, ?, ?, ?)", self.name, round, site, int(spent), time.time())

    def departures(self) -> dict[int, list[str]]:
        """Return who has left the study for good, by the round before which it was."""
        rows = self._run("SELECT round, site FROM gone WHERE study = ? ORDER BY round, site", self.name).fetchall()
        return {round: [site for at, site in rows if at == round] for round, _ in rows}

    def depart(self, round: int, sites: Sequence[str]) -> None:
        """Keep that sites have left the study before a round: all of them, or nobody."""
        with self._transaction():
            for site in sites:
                self._run("INSERT INTO gone VALUES (?, ?, ?, ?)", self.name, round, site, time.time())

    def head(self, site: str) -> tuple[int, bytes] | None:
        """Return the newest head of a site's ledger that was told."""
        row = self._run("SELECT counter, head FROM head WHERE study = ? AND site = ?", self.name, site).fetchone()
        return None if row is None else (int(row[0]), bytes(row[1]))

    def keep_head(self, site: str, counter: int, head: bytes) -> None:
        """Keep the newest head of a site's ledger."""
        with self._transaction():
            self._keep_head(site, counter, head)

    def refuse(self, site: str, round: int, why: str) -> None:
        """Keep that something was refused, and why."""
        if self._noted < NOTED:
            self._noted += 1
            with self._transaction():
                self._run("INSERT INTO refused VALUES (?, ?, ?, ?, ?)", self.name, time.time(), site, round, why)

    def refusals(self, most: int = NOTED) -> list[Refusal]:
        """Return what was refused, or the newest of it."""
        rows = self._run(
            "SELECT at, site, round, why FROM refused WHERE study = ? ORDER BY at DESC LIMIT ?", self.name, most
        )
        return [Refusal(*row) for row in rows.fetchall()][::-1]

    def counts(self, table: str) -> dict[str, int]:
        """Return how often each site stands in one of the tables told, absent and refused."""
        rows = self._run(f"SELECT site, COUNT(*) FROM {table} WHERE study = ? GROUP BY site", self.name)
        return {site: int(count) for site, count in rows.fetchall()}

    def heads(self) -> dict[str, tuple[int, bytes]]:
        """Return the newest head of every site's ledger that was told."""
        rows = self._run("SELECT site, counter, head FROM head WHERE study = ? ORDER BY site", self.name)
        return {site: (int(counter), bytes(head)) for site, counter, head in rows.fetchall()}

    def _keep_head(self, site: str, counter: int, head: bytes) -> None:
        self._run("DELETE FROM head WHERE study = ? AND site = ?", self.name, site)
        self._run("INSERT INTO head VALUES (?, ?, ?, ?)", self.name, site, counter, head)

    def _bodies(self, table: str, round: int) -> dict[str, bytes]:
        rows = self._run(f"SELECT site, body FROM {table} WHERE study = ? AND round = ?", self.name, round)
        return {site: bytes(body) for site, body in rows.fetchall()}

    def _run(self, text: str, *values: Any) -> Any:
        with self._lock:
            if not self._server:
                return self._base.execute(text, values)
            import psycopg

            try:
                return self._base.execute(text.replace("?", "%s"), values)
            except psycopg.Error:  # with the connection the lock of the study is gone: it must be taken again first
                raise BadInput(AWAY) from None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Do all or nothing, and be sure that it is on disk."""
        with self._lock:
            self._run("BEGIN")
            try:
                yield
            except BaseException:
                with suppress(Exception):
                    self._run("ROLLBACK")
                raise
            self._run("COMMIT")


def _sqlite(path: str) -> sqlite3.Connection:
    """Open a file for one coordinator alone; what is committed is on disk."""
    base = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=2.0)
    base.execute("PRAGMA locking_mode = EXCLUSIVE")
    base.execute("PRAGMA journal_mode = WAL")
    base.execute("PRAGMA synchronous = FULL")
    return base


def _postgres(url: str, name: str) -> Any:
    """Open a database, and lock the study for one coordinator alone."""
    try:
        import psycopg
    except ImportError:
        raise BadInput("a log in PostgreSQL needs psycopg; install sottovoce[postgres], or give a file.") from None
    try:
        base = psycopg.connect(url, autocommit=True, connect_timeout=10)
        base.execute(
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        )
        until = time.monotonic() + PATIENCE
        while base.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", (name,)).fetchone() != (True,):
            if time.monotonic() > until:
                base.close()
                raise BadInput("another coordinator runs this study; stop it first.")
            time.sleep(BETWEEN)
    except psycopg.Error:
        raise BadInput("the database of the log cannot be reached; check its URL and that it runs.") from None
    return base


def _why(error: Exception) -> str:
    """Return why a file cannot be used, without its contents."""
    if isinstance(error, OSError):
        return error.strerror or "not readable"
    return "another program uses it" if "locked" in str(error) else str(error).split("\n")[0]

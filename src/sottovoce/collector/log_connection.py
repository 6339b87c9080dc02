"""The connection to a collector's log: what must hold of it, whose it is, when it is lost, and how it comes back.

A connection that has failed is never used again, and a new one takes the lock of its part before anything is read: so
whatever the lost one still did is done by then, and no other collector has written since.
"""

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from sottovoce.collector.peers import Part
from sottovoce.collector.tables import ABOUT, prepare
from sottovoce.core.errors import BadInput

MANY = {"yield_per": 200}  # rows in memory at a time
SERVERS = ("postgresql:", "postgres:", "postgresql+psycopg:")
MEMORY = ":memory:"  # a log that ends with its process
AWAY = "the log cannot be used now; send the same again later."
TAKEN = "another collector writes to this log; stop it first, or give another log."
PATIENCE, BETWEEN = 3.0, 0.05  # seconds that a server may need to notice that a killed collector is gone
# a server that is cut off is noticed after some seconds, not after hours; what the URL says goes before
_DRIVER = {
    "connect_timeout": 5,
    "keepalives_idle": 20,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "application_name": "sottovoce",
}
# the same from the server's side; and no limit that is meant for people's sessions ends ours
_SESSION = {
    "tcp_keepalives_idle": "20",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "idle_session_timeout": "0",
    "statement_timeout": "0",
}
_LOCK = sa.text("SELECT pg_try_advisory_lock(hashtext('sottovoce ' || CAST('about' AS regclass)::oid), :part)")


class LogAway(BadInput):
    """The log cannot be read or written now; what was to be kept is to be sent again."""


def is_server(where: str) -> bool:
    """Tell whether a log is a database by its URL, and not a file."""
    return where.startswith(SERVERS)


def engine_of(where: str, *, existing: bool = False) -> sa.Engine:
    """Return what connects to a log; a file that must exist is not made."""
    if not is_server(where):
        if "://" in where:
            raise BadInput("a log is a file or postgresql://...; give one of these.")
        url = f"sqlite:///file:{where}?mode=rw&uri=true" if existing else f"sqlite:///{where}"
        if not existing and where != MEMORY:
            os.close(os.open(where, os.O_CREAT | os.O_RDWR, 0o600))  # it holds letters, and the key of tokens
        engine = sa.create_engine(url, hide_parameters=True)
        sa.event.listen(engine, "connect", _lasting)
        sa.event.listen(engine, "begin", _begin)
        return engine
    given = sa.make_url(f"postgresql+psycopg:{where.partition(':')[2]}")
    more = {name: value for name, value in _DRIVER.items() if name not in given.query}
    engine = sa.create_engine(given, connect_args=more, isolation_level="READ COMMITTED", hide_parameters=True)
    sa.event.listen(engine, "connect", _settled)
    return engine


class LogConnection:
    """One connection to a log, for one process."""

    def __init__(self, where: str, *, existing: bool = False) -> None:
        self._server = is_server(where)
        self.where = "PostgreSQL" if self._server else where  # a URL may hold a password
        self.lost, self._held = False, False
        self._part: Part | None = None
        self._lock: int | None = None
        with self._usable():
            self._engine = engine_of(where, existing=existing)
        try:
            with self._usable():
                prepare(self._engine)
                self._base = self._engine.connect()
        except BadInput:
            self._engine.dispose()
            raise

    @contextmanager
    def _usable(self) -> Iterator[None]:
        """Say in one sentence, without the URL, that a log cannot be used."""
        try:
            yield
        except BadInput:
            raise
        except (SQLAlchemyError, ImportError, ValueError, OSError) as error:
            raise BadInput(f"the log {self.where} cannot be used ({type(error).__name__}); give another.") from None

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Let go of a connection that fails: what it would keep from now on could lack what came before."""
        if self.lost:
            raise LogAway(AWAY)
        try:
            yield
        except SQLAlchemyError:
            self.lost = True
            raise LogAway(AWAY) from None

    def execute(self, statement: sa.Executable, row: Any = None) -> sa.CursorResult[Any]:
        """Say one statement; what it changes lasts from the next `commit` on."""
        with self._guarded():
            return self._base.execute(statement, row)

    def rows(self, query: sa.Executable) -> Sequence[Any]:
        """Return the rows of a query."""
        with self._guarded():
            found = self._base.execute(query).all()
            self._end()
            return found

    def stream(self, query: sa.Executable) -> Iterator[Any]:
        """Return the rows of a query that may be too many for memory."""
        with self._guarded():
            with closing(self._base.execute(query, execution_options=MANY)) as found:
                yield from found
            self._end()

    def commit(self) -> None:
        """Make all that was said last."""
        with self._guarded():
            self._base.commit()

    def _end(self) -> None:
        """End the transaction that a query began, so that nothing is held open."""
        if not self._held:
            self._base.commit()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all queries within see the log as it stands at the first of them, whoever writes to it meanwhile."""
        with self._guarded():
            if self._server:
                self._base.execute(sa.text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))
        self._held = True
        try:
            yield
        finally:
            self._held = False
            with self._guarded():
                self._base.rollback()

    def claim(self, part: Part) -> None:
        """Be the only process that writes for this part; refuse where another one does, or parts are others."""
        with self._guarded():
            self._claim(self._base, part)
        self._part = part

    def _claim(self, base: sa.Connection, part: Part) -> None:
        base.execute(ABOUT.update().where(ABOUT.c.parts == 0).values(parts=part.of))  # nobody has divided it yet
        base.commit()
        parts = base.execute(sa.select(ABOUT.c.parts)).scalar_one()
        base.commit()
        if parts != part.of:
            raise BadInput(
                f"the log was begun by {parts} processes, which own its groups; start as many of them again."
            )
        if not (_lock_in_base(base, part) if self._server else self._lock_file()):
            raise LogAway(TAKEN)

    def _lock_file(self) -> bool:
        """Lock a file beside the log, which the system frees with the process, however it ends."""
        if self._lock is not None:
            return True
        self._lock = os.open(f"{self.where}.lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            self._lock = None
            return False
        return True

    def reopen(self) -> None:
        """Connect anew, take the lock again, and see that the log can be written; until then it stays lost."""
        self.lost = True
        with suppress(SQLAlchemyError):
            self._base.invalidate()
        with suppress(SQLAlchemyError):
            self._base.close()
        self._engine.dispose()
        try:
            base = self._engine.connect()
            if self._part is not None:
                self._claim(base, self._part)
                base.execute(ABOUT.update().values(parts=self._part.of))
                base.commit()
        except SQLAlchemyError:
            raise LogAway(AWAY) from None
        self._base, self.lost = base, False

    def close(self) -> None:
        """Let go of the log."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        self.lost = True
        with suppress(SQLAlchemyError):
            self._base.close()
        self._engine.dispose()


def _lock_in_base(base: sa.Connection, part: Part) -> bool:
    """Take a lock that the server frees with the connection, however it ends."""
    until = time.monotonic() + PATIENCE
    while True:
        got = bool(base.execute(_LOCK, {"part": part.number}).scalar_one())
        base.commit()
        if got or time.monotonic() > until:
            return got
        time.sleep(BETWEEN)


def _lasting(connection: Any, _: Any) -> None:
    """Let SQLite acknowledge what is on the disk alone, and leave the beginning of transactions to us."""
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=5000"):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: sa.Connection) -> None:
    """Begin a transaction at once: by itself Python's driver would leave changes of tables outside of it."""
    connection.exec_driver_sql("BEGIN")


def _settled(connection: Any, _: Any) -> None:
    """Let PostgreSQL acknowledge what is on its disk alone, and set what its version knows of the rest."""
    setting = "SELECT set_config(name, %s, false) FROM pg_settings WHERE name = %s"
    with connection.cursor() as cursor:
        cursor.execute(f"{setting} AND setting = 'off'", ("on", "synchronous_commit"))
        for name, value in _SESSION.items():
            cursor.execute(setting, (value, name))
    connection.commit()

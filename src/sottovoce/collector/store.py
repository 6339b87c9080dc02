"""The collector's log: reports as they came, appended and never changed, and what each round came to.

One row holds all reports of a study that share a commit, one after the other, so a report costs 25 bytes and no index:
an id is sought among those of the rounds that still take answers alone: the open one and the one before, because a
report of an older one is refused whatever its id.
SQLite in a file (write-ahead log, full sync), or PostgreSQL by its URL; the tables are the same.
"""

import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from sottovoce.collector.peers import Part
from sottovoce.collector.tables import ABOUT, KEYS, REPORTS, ROUND, STUDY, prepare
from sottovoce.core.errors import BadInput
from sottovoce.protocol.device import ID, REPORT, SIZE, Reports

MANY = {"yield_per": 1000}  # rows in memory at a time
ALONE = Part()
LOCK = 0x50770  # of PostgreSQL's advisory locks, one a part
SERVERS = ("postgresql:", "postgresql+psycopg:")


class KeptStudy(NamedTuple):
    """A study as it was begun: its card's text, its file as JSON, the public key of its lotteries, and its state.

    ``secret`` is the key of its tokens, where devices have them.
    """

    card: str
    given: str | None
    coin: bytes
    state: str
    secret: bytes | None = None

    def __repr__(self) -> str:
        return f"KeptStudy(state={self.state!r})"


class KeptRound(NamedTuple):
    """What a round of a group came to, as text; the last rows of reports before it began and closed, and when."""

    group: int
    round: int
    sums: str
    begun: int
    seq: int
    at: float


class KeptKey(NamedTuple):
    """An API key as the log knows it: its digest, what it is called, and what it may do."""

    digest: bytes
    name: str
    role: str


class CollectorStore:
    """The log of a collector, in a file or a database; ``part`` is the process that writes to it.

    Several processes share a database; of files each has its own, and the studies and keys stand in the first.
    """

    def __init__(self, where: str, part: Part = ALONE, *, existing: bool = False) -> None:
        self._part, server = part.number, where.startswith(SERVERS)
        self._lock: int | None = None
        if part.number and not server:
            where = f"{where}.{part.number + 1}"
        self.where = "PostgreSQL" if server else where  # a URL may hold a password
        url = where.replace("postgresql:", "postgresql+psycopg:", 1) if server else f"sqlite:///{where}"
        if existing and not server:
            url = f"sqlite:///file:{where}?mode=rw&uri=true"
        try:
            if not (server or existing):
                os.close(os.open(where, os.O_CREAT | os.O_RDWR, 0o600))  # it holds letters, and the key of tokens
            self._engine = sa.create_engine(url)
            if not server:
                sa.event.listen(self._engine, "connect", _lasting)
                sa.event.listen(self._engine, "begin", _begin)
            prepare(self._engine, part.of)
            self._base = self._engine.connect()
        except (SQLAlchemyError, ImportError, OSError) as error:
            raise BadInput(f"the log {self.where} cannot be used ({type(error).__name__}); give another.") from None
        self._append, self._last = REPORTS.insert(), dict[str, int]()

    @property
    def parts(self) -> int:
        """Return among how many processes the groups of the log are divided."""
        parts = self._base.execute(sa.select(ABOUT.c.parts)).scalar_one()
        self._base.commit()
        return int(parts)

    def claim(self, part: Part) -> None:
        """Be the only process that writes for this part; refuse where another one does, or parts are others."""
        if (parts := self.parts) != part.of:
            raise BadInput(
                f"the log was begun by {parts} processes, which own its groups; start as many of them again."
            )
        if self._engine.dialect.name == "postgresql":
            free = self._base.execute(sa.text("SELECT pg_try_advisory_lock(:a, :b)"), {"a": LOCK, "b": part.number})
            got = bool(free.scalar_one())
            self._base.commit()
        else:
            got = self._lock_file()
        if not got:
            raise BadInput("another collector writes to this log; stop it first, or give another log.")

    def _lock_file(self) -> bool:
        """Lock a file beside the log, which the system frees with the process, however it ends."""
        self._lock = os.open(f"{self.where}.lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Let go of the file."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        self._base.close()
        self._engine.dispose()

    def begin(self, name: str, fresh: KeptStudy) -> KeptStudy:
        """Begin a study, or return how it was begun."""
        known = self.known(name)
        if known is None:
            self._base.execute(STUDY.insert().values(name=name, begun=time.time(), **fresh._asdict()))
            self._base.commit()
        return known or fresh

    def known(self, name: str) -> KeptStudy | None:
        """Return a study, if it was begun."""
        return dict(self.studies(name)).get(name)

    def studies(self, name: str | None = None) -> list[tuple[str, KeptStudy]]:
        """Return the studies of the log, in the order in which they were begun, or the one of a name."""
        columns = [STUDY.c[each] for each in KeptStudy._fields]
        query = sa.select(STUDY.c.name, *columns).order_by(STUDY.c.begun, STUDY.c.name)
        rows = self._base.execute(query if name is None else query.where(STUDY.c.name == name)).all()
        self._base.commit()
        return [
            (row.name, KeptStudy(row.card, row.given, bytes(row.coin), row.state, row.secret and bytes(row.secret)))
            for row in rows
        ]

    def set_given(self, name: str, given: str) -> None:
        """Keep the file of a study that an earlier version has begun without it."""
        self._base.execute(STUDY.update().where(STUDY.c.name == name).values(given=given))
        self._base.commit()

    def set_state(self, name: str, state: str) -> None:
        """Keep whether a study is open, paused or closed."""
        self._base.execute(STUDY.update().where(STUDY.c.name == name).values(state=state))
        self._base.commit()

    def append(self, study: str, body: bytes) -> None:
        """Write reports; they last from the next `commit` on."""
        row = {"study": study, "part": self._part, "scrubbed": False, "body": body}
        self._last[study] = int(self._base.execute(self._append, row).inserted_primary_key[0])  # type: ignore[index]

    def close_round(self, study: str, group: int, round: int, sums: str) -> None:
        """Write what a round came to; it lasts from the next `commit` on."""
        if study not in self._last:
            mine = REPORTS.c.study == study, REPORTS.c.part == self._part
            self._last[study] = self._base.execute(sa.select(sa.func.max(REPORTS.c.seq)).where(*mine)).scalar() or 0
        row = {"study": study, "grp": group, "round": round, "sums": sums, "seq": self._last[study], "at": time.time()}
        self._base.execute(ROUND.insert().values(**row))

    def commit(self) -> None:
        """Make all that was written last."""
        self._base.commit()

    def rounds(self, study: str, since: float = 0.0) -> list[KeptRound]:
        """Return the rounds of a study that were closed since a time, group by group in their order."""
        closed = ROUND.c.study == study, ROUND.c.at >= since
        query = sa.select(ROUND).where(*closed).order_by(ROUND.c.grp, ROUND.c.round)
        rows = self._base.execute(query).all()
        self._base.commit()
        last: dict[int, int] = {}
        found = []
        for row in rows:
            found.append(KeptRound(row.grp, row.round, row.sums, last.get(row.grp, 0), row.seq, row.at))
            last[row.grp] = row.seq
        return found

    def reports(self, study: str, after: int = 0) -> Iterator[tuple[int, Reports]]:
        """Return this part's rows of reports after one that are not scrubbed, with their numbers, in their order."""
        return self._rows(REPORTS.c.study == study, REPORTS.c.part == self._part, REPORTS.c.seq > after)

    def rows(self, study: str) -> Iterator[tuple[int, Reports]]:
        """Return the rows of reports of all parts that are not scrubbed, with their numbers, in their order."""
        return self._rows(REPORTS.c.study == study)

    def _rows(self, *which: sa.ColumnElement[bool]) -> Iterator[tuple[int, Reports]]:
        query = sa.select(REPORTS.c.seq, REPORTS.c.body).where(*which, REPORTS.c.scrubbed.is_(False))
        for row in self._base.execute(query.order_by(REPORTS.c.seq), execution_options=MANY):
            yield row.seq, np.frombuffer(bytes(row.body), dtype=REPORT)
        self._base.commit()

    def ids(self, study: str) -> Iterator[bytes]:
        """Return all ids that this part has kept, scrubbed or not, joined row by row."""
        mine = REPORTS.c.study == study, REPORTS.c.part == self._part
        query = sa.select(REPORTS.c.scrubbed, REPORTS.c.body).where(*mine)
        for row in self._base.execute(query, execution_options=MANY):
            yield bytes(row.body) if row.scrubbed else _ids(bytes(row.body))
        self._base.commit()

    def scrubbed_to(self, study: str) -> int:
        """Return the last row whose letters were removed; 0 where none was."""
        query = sa.select(sa.func.max(REPORTS.c.seq)).where(REPORTS.c.study == study, REPORTS.c.scrubbed.is_(True))
        last = self._base.execute(query).scalar() or 0
        self._base.commit()
        return int(last)

    def scrub(self, study: str, upto: int) -> int:
        """Remove letters, points and rounds from rows up to one, so that ids alone stay; return how many reports."""
        mine = REPORTS.c.study == study, REPORTS.c.part == self._part
        query = sa.select(REPORTS.c.seq).where(*mine, REPORTS.c.seq <= upto, REPORTS.c.scrubbed.is_(False))
        scrubbed = 0
        for (seq,) in self._base.execute(query.order_by(REPORTS.c.seq)).all():
            body = self._base.execute(sa.select(REPORTS.c.body).where(REPORTS.c.seq == seq)).scalar_one()
            ids = _ids(bytes(body))
            self._base.execute(REPORTS.update().where(REPORTS.c.seq == seq).values(body=ids, scrubbed=True))
            scrubbed += len(ids) // ID
        self._base.commit()
        return scrubbed

    def all_keys(self) -> list[KeptKey]:
        """Return the API keys of the log."""
        rows = self._base.execute(sa.select(KEYS).order_by(KEYS.c.made)).all()
        self._base.commit()
        return [KeptKey(bytes(row.digest), row.name, row.role) for row in rows]

    def add_key(self, key: KeptKey) -> None:
        """Keep an API key's digest; one of the same name is refused."""
        if any(known.name == key.name for known in self.all_keys()):
            raise BadInput("the log has a key of this name; revoke it first, or choose another name.")
        self._base.execute(KEYS.insert().values(made=time.time(), **key._asdict()))
        self._base.commit()

    def remove_key(self, name: str) -> bool:
        """Forget the API key of a name; tell whether there was one."""
        gone = self._base.execute(KEYS.delete().where(KEYS.c.name == name)).rowcount > 0
        self._base.commit()
        return gone


def _ids(body: bytes) -> bytes:
    """Return the ids of packed reports, joined."""
    return np.ascontiguousarray(np.frombuffer(body, dtype=f"V{SIZE}").view(REPORT)["id"]).tobytes()


def unscrubbed(rounds: Sequence[KeptRound], groups: Iterable[int]) -> int:
    """Return the last row of reports of rounds that take no answers any more; ``groups`` are those not at their end.

    The last round that closed still takes what comes late, so it is the row with which that one began.
    """
    last = dict.fromkeys(groups, 0)
    for each in rounds:
        if each.group in last:
            last[each.group] = max(last[each.group], each.begun)
    return min(last.values(), default=max((each.seq for each in rounds), default=0))


def _lasting(connection: Any, _: Any) -> None:
    """Let SQLite acknowledge what is on the disk alone, and leave the beginning of transactions to us."""
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=5000"):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: sa.Connection) -> None:
    """Begin a transaction at once: by itself Python's driver would leave changes of tables outside of it."""
    connection.exec_driver_sql("BEGIN")

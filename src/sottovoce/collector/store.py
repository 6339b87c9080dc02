"""The collector's log: reports as they came, appended and never changed, and what each round came to.

One row holds all reports of one commit, one after the other, so a report costs 25 bytes and no index: an id is sought
among those of the open round alone, in memory, because a report of a closed round is refused whatever its id. SQLite
in a file (write-ahead log, full sync), or PostgreSQL by its URL; the tables are the same.
"""

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from sottovoce.collector.fold import ClosedRound
from sottovoce.core.errors import BadInput
from sottovoce.protocol.device import ID, REPORT, SIZE, Reports

VERSION = 1
_META = sa.MetaData()
_ABOUT = sa.Table("about", _META, sa.Column("version", sa.Integer, primary_key=True))
_STUDY = sa.Table(
    "study",
    _META,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("card", sa.Text, nullable=False),
    sa.Column("terms", sa.Text, nullable=False),
    sa.Column("coin", sa.LargeBinary, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("begun", sa.Float, nullable=False),
)
_REPORTS = sa.Table(
    "reports",
    _META,
    sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("study", sa.Text, nullable=False),
    sa.Column("scrubbed", sa.Boolean, nullable=False, default=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
_ROUND = sa.Table(
    "round",
    _META,
    sa.Column("study", sa.Text, primary_key=True),
    sa.Column("grp", sa.Integer, primary_key=True),
    sa.Column("round", sa.Integer, primary_key=True),
    sa.Column("sums", sa.Text, nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False),  # of the last row of reports when it closed
    sa.Column("at", sa.Float, nullable=False),
)


class KeptStudy(NamedTuple):
    """A study as it was begun: its card's text, its terms, the public key of its lotteries, and its state."""

    card: str
    terms: str
    coin: bytes
    state: str


class CollectorStore:
    """The log of one study, in a file or database that may hold others."""

    def __init__(self, where: str, study: str) -> None:
        self.study, server = study, where.startswith(("postgresql:", "postgresql+psycopg:"))
        self.where = "PostgreSQL" if server else where  # a URL may hold a password
        url = where.replace("postgresql:", "postgresql+psycopg:", 1) if server else f"sqlite:///{where}"
        try:
            self._engine = sa.create_engine(url)
            if not server:
                sa.event.listen(self._engine, "connect", _lasting)
            with self._engine.begin() as base:
                _META.create_all(base)
                found = base.execute(sa.select(_ABOUT.c.version)).scalar()
                if found is None:
                    base.execute(_ABOUT.insert().values(version=VERSION))
            self._base = self._engine.connect()
        except (SQLAlchemyError, ImportError) as error:
            raise BadInput(f"the log {self.where} cannot be used ({type(error).__name__}); give another.") from None
        if found not in (None, VERSION):
            raise BadInput(f"the log is of version {found}, and this program writes {VERSION}; use its own.")
        self._append = _REPORTS.insert()

    def close(self) -> None:
        """Let go of the file."""
        self._base.close()
        self._engine.dispose()

    def begin(self, kept: KeptStudy) -> KeptStudy:
        """Begin the study, or return how it was begun; other terms under the same name are refused."""
        known = self.known()
        if known is None:
            self._base.execute(_STUDY.insert().values(name=self.study, begun=time.time(), **kept._asdict()))
            self._base.commit()
            return kept
        if known.terms != kept.terms:
            raise BadInput("this log holds a study of the same name with other terms; rename one, or give another log.")
        return known

    def known(self) -> KeptStudy | None:
        """Return the study, if it was begun."""
        columns = [_STUDY.c[name] for name in KeptStudy._fields]
        row = self._base.execute(sa.select(*columns).where(_STUDY.c.name == self.study)).one_or_none()
        self._base.commit()
        return None if row is None else KeptStudy(row.card, row.terms, bytes(row.coin), row.state)

    def set_state(self, state: str) -> None:
        """Keep whether the study is open, paused or closed."""
        self._base.execute(_STUDY.update().where(_STUDY.c.name == self.study).values(state=state))
        self._base.commit()

    def append(self, body: bytes) -> None:
        """Keep reports; when this returns, they last."""
        self._base.execute(self._append, {"study": self.study, "scrubbed": False, "body": body})
        self._base.commit()

    def close_round(self, group: int, closed: ClosedRound) -> None:
        """Keep what a round came to."""
        sums = json.dumps([closed.points.tolist(), closed.counts.tolist(), closed.ones.tolist()])
        last = self._base.execute(sa.select(sa.func.max(_REPORTS.c.seq))).scalar() or 0
        row = {"study": self.study, "grp": group, "round": closed.round, "sums": sums, "seq": last, "at": time.time()}
        self._base.execute(_ROUND.insert().values(**row))
        self._base.commit()

    def rounds(self) -> list[tuple[int, ClosedRound, int, float]]:
        """Return the closed rounds in their order: group, sums, the last row of reports before it closed, and when."""
        query = sa.select(_ROUND).where(_ROUND.c.study == self.study).order_by(_ROUND.c.grp, _ROUND.c.round)
        rows = self._base.execute(query).all()
        self._base.commit()
        found = []
        for row in rows:
            points, counts, ones = json.loads(row.sums)
            sums = ClosedRound(row.round, np.array(points), np.array(counts, np.int64), np.array(ones, np.int64))
            found.append((int(row.grp), sums, int(row.seq), float(row.at)))
        return found

    def reports(self, after: int = 0) -> Iterator[Reports]:
        """Return the reports that are not scrubbed, in their order, of the rows after one."""
        query = sa.select(_REPORTS.c.body).where(
            _REPORTS.c.study == self.study, _REPORTS.c.seq > after, _REPORTS.c.scrubbed.is_(False)
        )
        rows = self._base.execution_options(yield_per=1000).execute(query.order_by(_REPORTS.c.seq))
        for row in rows:
            yield np.frombuffer(bytes(row.body), dtype=REPORT)
        self._base.commit()

    def scrub(self, keep_after: int) -> int:
        """Remove letters, points and rounds from rows up to one, so that ids alone stay; return how many reports."""
        query = sa.select(_REPORTS.c.seq, _REPORTS.c.body).where(
            _REPORTS.c.study == self.study, _REPORTS.c.seq <= keep_after, _REPORTS.c.scrubbed.is_(False)
        )
        scrubbed = 0
        for seq, body in self._base.execute(query).all():
            ids = b"".join(bytes(body)[k : k + ID] for k in range(0, len(body), SIZE))
            update = _REPORTS.update().where(_REPORTS.c.seq == seq).values(body=ids, scrubbed=True)
            self._base.execute(update)
            scrubbed += len(ids) // ID
        self._base.commit()
        return scrubbed


def unscrubbed(rounds: Sequence[tuple[int, ClosedRound, int, float]], groups: int) -> int:
    """Return the last row of reports that belongs to closed rounds alone, in every group."""
    last = [0] * groups
    for group, _, seq, _ in rounds:
        last[group] = max(last[group], seq)
    return min(last)


def _lasting(connection: Any, _: Any) -> None:
    """Let SQLite acknowledge what is on the disk alone."""
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=5000"):
        connection.execute(f"PRAGMA {pragma}")

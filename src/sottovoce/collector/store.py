"""The collector's log: reports as they came, appended and never changed, and what each round came to.

One row holds all reports of a study that share a commit, one after the other, so a report costs 25 bytes and no index:
an id is sought among those of the rounds that still take answers alone: the open one and the one before, because a
report of an older one is refused whatever its id.
SQLite in a file (write-ahead log, full sync), or PostgreSQL by its URL; the tables are the same.
"""

import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from sottovoce.collector.log_connection import LogConnection, is_server
from sottovoce.collector.peers import Part
from sottovoce.collector.tables import ABOUT, KEYS, REPORTS, ROUND, STUDY
from sottovoce.core.errors import BadInput
from sottovoce.protocol.device import ID, REPORT, SIZE, Reports

ALONE = Part()
STEP = 500  # rows that are scrubbed together


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
        self._part = part.number
        self.shared = is_server(where)
        own = where if self.shared or not part.number else f"{where}.{part.number + 1}"
        self._base = LogConnection(own, existing=existing)
        self.where = self._base.where
        self._last = dict[str, int]()

    @property
    def parts(self) -> int:
        """Return among how many processes the groups of the log are divided; 0 where nobody has yet."""
        ((parts,),) = self._base.rows(sa.select(ABOUT.c.parts))
        return int(parts)

    @property
    def lost(self) -> bool:
        """Tell whether the log cannot be used until it is opened again."""
        return self._base.lost

    def claim(self, part: Part) -> None:
        """Be the only process that writes for this part; refuse where another one does, or parts are others."""
        self._base.claim(part)

    def leave(self) -> None:
        """Use the connection no more: what was written last may be there, or not."""
        self._base.lost = True

    def reopen(self) -> None:
        """Open the log again after it was lost, as the only one that writes for this part."""
        self._base.reopen()
        self._last.clear()

    def snapshot(self) -> AbstractContextManager[None]:
        """Read the log as it stands at one time, whoever writes to it meanwhile."""
        return self._base.snapshot()

    def close(self) -> None:
        """Let go of the log."""
        self._base.close()

    def begin(self, name: str, fresh: KeptStudy) -> KeptStudy:
        """Begin a study, or return how it was begun, perhaps by another host at the same time."""
        insert = postgresql.insert if self.shared else sqlite.insert
        row = {"name": name, "begun": time.time(), **fresh._asdict()}
        self._base.execute(insert(STUDY).values(**row).on_conflict_do_nothing())
        self._base.commit()
        return self.known(name) or fresh

    def known(self, name: str) -> KeptStudy | None:
        """Return a study, if it was begun."""
        return dict(self.studies(name)).get(name)

    def studies(self, name: str | None = None) -> list[tuple[str, KeptStudy]]:
        """Return the studies of the log, in the order in which they were begun, or the one of a name."""
        columns = [STUDY.c[each] for each in KeptStudy._fields]
        query = sa.select(STUDY.c.name, *columns).order_by(STUDY.c.begun, STUDY.c.name)
        rows = self._base.rows(query if name is None else query.where(STUDY.c.name == name))
        return [
            (row.name, KeptStudy(row.card, row.given, bytes(row.coin), row.state, row.secret and bytes(row.secret)))
            for row in rows
        ]

    def set_given(self, name: str, given: str) -> None:
        """Keep the file of a study that an earlier version has begun without it."""
        self._base.execute(STUDY.update().where(STUDY.c.name == name).values(given=given))
        self._base.commit()

    def set_state(self, name: str, state: str) -> bool:
        """Keep whether a study is open, paused or closed; tell whether it is: what is closed stays so."""
        may = STUDY.c.name == name, sa.or_(STUDY.c.state != "closed", sa.literal(state) == "closed")
        done = self._base.execute(STUDY.update().where(*may).values(state=state)).rowcount > 0
        self._base.commit()
        return done

    def append(self, study: str, body: bytes) -> None:
        """Write reports; they last from the next `commit` on."""
        row = {"study": study, "part": self._part, "scrubbed": False, "body": body}
        self._last[study] = int(self._base.execute(REPORTS.insert(), row).inserted_primary_key[0])  # type: ignore[index]

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
        rows = self._base.rows(query)
        last: dict[int, int] = {}
        found = []
        for row in rows:
            found.append(KeptRound(row.grp, row.round, row.sums, last.get(row.grp, 0), row.seq, row.at))
            last[row.grp] = row.seq
        return found

    def reports(self, study: str, after: int = 0) -> Generator[tuple[int, Reports], None, None]:
        """Return this part's rows of reports after one that are not scrubbed, with their numbers, in their order."""
        return self._rows(REPORTS.c.study == study, REPORTS.c.part == self._part, REPORTS.c.seq > after)

    def rows(self, study: str) -> Generator[tuple[int, Reports], None, None]:
        """Return the rows of reports of all parts that are not scrubbed, with their numbers, in their order."""
        return self._rows(REPORTS.c.study == study)

    def _rows(self, *which: sa.ColumnElement[bool]) -> Generator[tuple[int, Reports], None, None]:
        query = sa.select(REPORTS.c.seq, REPORTS.c.body).where(*which, REPORTS.c.scrubbed.is_(False))
        for row in self._base.stream(query.order_by(REPORTS.c.seq)):
            yield row.seq, np.frombuffer(bytes(row.body), dtype=REPORT)

    def ids(self, study: str) -> Iterator[bytes]:
        """Return all ids that this part has kept, scrubbed or not, joined row by row."""
        mine = REPORTS.c.study == study, REPORTS.c.part == self._part
        query = sa.select(REPORTS.c.scrubbed, REPORTS.c.body).where(*mine)
        for row in self._base.stream(query):
            yield bytes(row.body) if row.scrubbed else _ids(bytes(row.body))

    def scrubbed_to(self, study: str) -> dict[int, int]:
        """Return the last row of each part whose letters were removed."""
        query = sa.select(REPORTS.c.part, sa.func.max(REPORTS.c.seq)).group_by(REPORTS.c.part)
        gone = self._base.rows(query.where(REPORTS.c.study == study, REPORTS.c.scrubbed.is_(True)))
        return {int(row[0]): int(row[1]) for row in gone}

    def scrub(self, study: str, upto: int, part: int | None = None) -> Iterator[int]:
        """Remove letters, points and rounds from rows of a part up to one, so that ids stay; tell how many by steps."""
        mine = REPORTS.c.study == study, REPORTS.c.part == (self._part if part is None else part)
        query = sa.select(REPORTS.c.seq, REPORTS.c.body).where(*mine, REPORTS.c.seq <= upto)
        query = query.where(REPORTS.c.scrubbed.is_(False)).order_by(REPORTS.c.seq).limit(STEP)
        change = REPORTS.update().where(REPORTS.c.seq == sa.bindparam("row"))
        change = change.values(body=sa.bindparam("ids"), scrubbed=True)
        while rows := [{"row": each.seq, "ids": _ids(bytes(each.body))} for each in self._base.rows(query)]:
            self._base.execute(change, rows)
            self._base.commit()
            yield sum(len(each["ids"]) // ID for each in rows)

    def all_keys(self) -> list[KeptKey]:
        """Return the API keys of the log."""
        rows = self._base.rows(sa.select(KEYS).order_by(KEYS.c.made))
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

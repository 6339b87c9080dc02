"""The durable ledger of a site: one SQLite file, many studies; what was spent and said outlasts the program.

Spending, drawing, keeping and chaining are one transaction with full sync, and no reply leaves before it. When a study
opens, its epsilon is reserved for every enrolled id, or for the named source where there are none, and refused for all
if it would pass the cap of any; a study that ends before it was answered anything gives it back, and is closed for
good. A file put back from an old copy is noticed by the head written beside it
(`client.ledger_file`); if both are put back, by the coordinator alone, who remembers the head.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Self

import numpy as np

from sottovoce.client.ledger import Entry
from sottovoce.client.ledger_audit import (
    ceiling,
    digest_of,
    faults,
    first_link,
    in_epsilon,
    lines,
    next_link,
    table,
    units,
)
from sottovoce.client.ledger_book import LedgerBook, time_now
from sottovoce.client.ledger_costs import Charged, charged_to, give_back, has_room, reserve
from sottovoce.client.order import Key
from sottovoce.core.errors import BadInput
from sottovoce.protocol import messages, summaries
from sottovoce.protocol.messages import Message, from_bytes, to_bytes
from sottovoce.protocol.wire import kind_of

KINDS = {
    kind_of(kind): kind
    for kind in (*vars(messages).values(), *vars(summaries).values())
    if isinstance(kind, type) and issubclass(kind, Message) and kind is not Message
}
_LONGEST = 63  # bits of an integer in the file


class SiteLedger:
    """Opens the ledger of a site, or begins one; one process at a time, whose threads take turns.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, SiteLedger(f"{folder}/site.ledger") as ledger:
    ...     ledger.counter, ledger.show()["studies"]
    (0, [])
    """

    __slots__ = ("_book",)

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._book = LedgerBook(Path(path))

    def __repr__(self) -> str:
        return f"SiteLedger({self._book.path.name!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shut()

    @property
    def counter(self) -> int:
        """Return how many transactions were kept."""
        return self._book.head().counter

    @property
    def head(self) -> bytes:
        """Return the digest that all transactions end in."""
        return self._book.head().digest

    def enrol(
        self,
        study: bytes,
        card: bytes,
        epsilon: float,
        *,
        source: str,
        size: int,
        rows: bytes,
        people: Sequence[bytes] | None,
        cap_record: float,
        cap_source: float,
        draw_key: Callable[[], Key],
    ) -> "StudyLedger":
        """Reserve what a study costs and open its part of the ledger, or find it as it was opened before.

        Parameters
        ----------
        study, card
            The identity of the study and its public card.
        epsilon
            What it costs a record; ``math.inf`` for a study without privacy.
        source, size, rows
            The name of the file or table, how many records of it take part, and a digest of them.
        people
            One id a record; each is charged as often as it stands here. Without ids the source is charged.
        cap_record, cap_source
            What an id, and a source without ids, may cost over all studies.
        draw_key
            Draws the key of the random order, once for the study.
        """
        with self._book.transaction() as file:
            known, cost, to, rows = self._looked(file, study, card, epsilon, source, size, rows, people)
            if known:
                return StudyLedger(self._book, study)
            reserve(file, cost, to, ceiling(cap_record), ceiling(cap_source))
            key = np.ascontiguousarray(draw_key(), dtype="<u4").tobytes()
            digests, named = (hashlib.sha256(card).digest(), hashlib.sha256(key).digest()), int(people is not None)
            chain = first_link(study, *digests, size, rows, cost, source, named)
            counter = self._book.advance(study, "open", chain)
            file.execute(
                "INSERT INTO study VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?, 'open', ?, ?, NULL, NULL)",
                (study, card, key, size, rows, cost, source, named, chain, counter, time_now()),
            )
        return StudyLedger(self._book, study)

    def look(
        self,
        study: bytes,
        card: bytes,
        epsilon: float,
        *,
        source: str,
        size: int,
        rows: bytes,
        people: Sequence[bytes] | None,
        cap_record: float,
        cap_source: float,
    ) -> None:
        """Refuse what `enrol` would refuse; nothing is reserved."""
        with self._book.transaction() as file:  # whose head does not move, so that it is undone
            if not self.knows(study) and has_room(file, units(epsilon), source, people, size, ceiling(cap_record)):
                return
            known, cost, to, _ = self._looked(file, study, card, epsilon, source, size, rows, people)
            if not known:
                reserve(file, cost, to, ceiling(cap_record), ceiling(cap_source))

    def study(self, study: bytes) -> "StudyLedger":
        """Return the part of a study that was opened before."""
        return StudyLedger(self._book, study)

    def close(self, study: bytes, *, refused: bool = False) -> None:
        """End a study, or refuse it: it is answered nothing new; an ended one still gets what it was told."""
        with self._book.transaction() as file:
            if self._ending(file, study)[0] == "open":
                self._end(file, study, "refused" if refused else "closed")

    def end(self, study: bytes, *, rows: bytes, people: Sequence[bytes] | None) -> bool:
        """End a study; if nothing was ever said in it, give back what it has reserved, and tell so.

        ``rows`` and ``people`` are those it was opened with: what ids were charged is given back to the same ids alone.
        """
        with self._book.transaction() as file:
            state, taken, replies, cost, source, named, enrolled = self._ending(file, study)
            if state != "open":
                return bool(state == "released")
            if taken or replies:
                self._end(file, study, "closed")
                return False
            to = charged_to(file, source, people if named else None)
            if named and to.digest(rows) != enrolled:
                raise BadInput(
                    "this study was opened over other records than this site holds now; start the site with the files "
                    "of the study to end it."
                )
            file.execute("SAVEPOINT given")
            self._end(file, study, "released")
            if give_back(file, cost, to):
                return True
            file.execute("ROLLBACK TO given")
            self._end(file, study, "closed")
            return False

    def knows(self, study: bytes) -> bool:
        """Tell whether a study was ever opened."""
        with self._book.reading() as file:
            return file.execute("SELECT 1 FROM study WHERE id = ?", (study,)).fetchone() is not None

    def verify(self) -> list[str]:
        """Return what is wrong and where, over all chains and sums; nothing if nothing is."""
        with self._book.reading() as file:
            return faults(file, self._book.beside)

    def show(self) -> dict[str, Any]:
        """Return what may be shown: studies, costs by source, how many ids and their dearest cost, heads."""
        with self._book.reading() as file:
            return table(file)

    def export(self) -> list[dict[str, Any]]:
        """Return studies and chain, with digests of queries and replies instead of their bodies."""
        with self._book.reading() as file:
            return list(lines(file))

    def shut(self) -> None:
        """Close the file."""
        self._book.shut()

    @staticmethod
    def _looked(
        file: Connection,
        study: bytes,
        card: bytes,
        epsilon: float,
        source: str,
        size: int,
        rows: bytes,
        people: Sequence[bytes] | None,
    ) -> tuple[bool, int, Charged, bytes]:
        """Return whether a study is open already, its cost, whom it is charged to and the digest of their rows."""
        if people is not None and len(people) != size:
            raise BadInput("every record needs one id; give as many ids as records, or charge the source as a whole.")
        cost, to = units(epsilon), charged_to(file, source, people)
        rows = to.digest(rows)
        known = file.execute(
            "SELECT card, size, rows_digest, epsilon, source, named, state FROM study WHERE id = ?", (study,)
        ).fetchone()
        if known is None:
            return False, cost, to, rows
        if known[:6] != (card, size, rows, cost, source, people is not None):
            raise BadInput(
                "this study was opened with another card or other records; open it with the same, or as a new study."
            )
        if known[6] == "refused":
            raise BadInput("this site has refused the study; run it without this site.")
        if known[6] == "released":
            raise BadInput("the study is over at this site, which was asked nothing in it; begin a new study.")
        return True, cost, to, rows

    @staticmethod
    def _ending(file: Connection, study: bytes) -> tuple[Any, ...]:
        """Return what counts when a study ends: its state, what was said in it, what it costs whom."""
        found = file.execute(
            "SELECT state, taken, (SELECT COUNT(*) FROM reply WHERE reply.study = study.id), epsilon, source, named, "
            "rows_digest FROM study WHERE id = ?",
            (study,),
        ).fetchone()
        if found is None:
            raise BadInput("this ledger knows no such study; open it first.")
        return tuple(found)

    def _end(self, file: Connection, study: bytes, state: str) -> None:
        """End a study in the running transaction."""
        (head,) = file.execute("SELECT head FROM study WHERE id = ?", (study,)).fetchone()
        counter = self._book.advance(study, state, head)
        file.execute(
            "UPDATE study SET state = ?, ended = ?, ended_at = ? WHERE id = ?", (state, counter, time_now(), study)
        )


class StudyLedger:
    """The part of one study in a site's ledger: where its site keeps what it says, whether by rounds or by people."""

    __slots__ = ("_book", "card", "epsilon", "key", "size", "study")

    def __init__(self, book: LedgerBook, study: bytes) -> None:
        self._book, self.study = book, study
        key, self.card, self.size, cost = self._told("key, card, size, epsilon")
        self.key: Key = np.frombuffer(key, dtype="<u4").astype(np.uint32)
        self.epsilon = in_epsilon(cost)

    def __repr__(self) -> str:
        return f"StudyLedger({self.study.hex()[:8]}, {self.taken:,} of {self.size:,} records answered)"

    @property
    def taken(self) -> int:
        """Return how many records, or people, have answered."""
        return int(self._told("taken")[0])

    @property
    def head(self) -> bytes:
        """Return the end of the study's chain."""
        return bytes(self._told("head")[0])

    @property
    def state(self) -> str:
        """Return whether the study is open, closed, refused or released."""
        return str(self._told("state")[0])

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run one transaction of the ledger, with full sync at its end."""
        with self._book.transaction(lasting=False):
            yield

    def find(self, key: int) -> Entry | None:
        """Return the entry of a round."""
        return self._entry("key = ?", key)

    def last(self) -> Entry | None:
        """Return the entry of the latest round: rounds go up."""
        return self._entry("TRUE ORDER BY key DESC")

    def about(self, first: int, count: int) -> Entry | None:
        """Return the first entry that speaks of any of ``count`` people from ``first`` on."""
        before = self._entry("key <= ? ORDER BY key DESC", first)
        if before is not None and first < before.first + before.records:
            return before
        return self._entry("key > ? AND key < ? ORDER BY key", first, first + count)

    def keep(self, entry: Entry) -> None:
        """Keep an entry, chained to the one before it; for good once the transaction ends."""
        state, taken, size, head = self._told("state, taken, size, head")
        if state != "open":
            raise BadInput(f"the study is {state} at this site; begin a new study.")
        if entry.records < 0 or taken + entry.records > size or entry.key.bit_length() > _LONGEST:
            raise BadInput("the query asks more than the records that were enrolled; ask fewer.")
        asked, kind = kind_of(type(entry.query)), kind_of(type(entry.reply))
        query, body = to_bytes(entry.query), to_bytes(entry.reply)
        chain = next_link(
            head, self.study, entry.key, entry.first, entry.records, digest_of(asked, query), digest_of(kind, body)
        )
        counter = self._book.advance(self.study, "reply", chain)
        row = (counter, self.study, entry.key, entry.first, entry.records, asked, query, kind, body, time_now(), chain)
        taken += entry.records
        with self._book.reading() as file:
            file.execute("INSERT INTO reply VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
            file.execute("UPDATE study SET taken = ?, head = ? WHERE id = ?", (taken, chain, self.study))

    def _told(self, columns: str) -> tuple[Any, ...]:
        """Return what the ledger says of the study."""
        with self._book.reading() as file:
            found = file.execute(f"SELECT {columns} FROM study WHERE id = ?", (self.study,)).fetchone()
        if found is None:
            raise BadInput("this ledger knows no such study; open it first.")
        return tuple(found)

    def _entry(self, which: str, *values: int) -> Entry | None:
        """Return the first entry that a condition fits, as the very messages that were kept."""
        if any(value.bit_length() > _LONGEST for value in values):
            return None
        with self._book.reading() as file:
            found = file.execute(
                f"SELECT key, asked, query, first, count, kind, body FROM reply WHERE study = ? AND {which} LIMIT 1",
                (self.study, *values),
            ).fetchone()
        if found is None:
            return None
        key, asked, query, first, count, kind, body = found
        return Entry(key, from_bytes(query, KINDS[asked]), first, count, from_bytes(body, KINDS[kind]))

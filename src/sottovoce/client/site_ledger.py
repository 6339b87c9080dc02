"""The durable ledger of a site: one SQLite file, many studies; what was spent and said outlasts the program.

Spending, drawing, keeping and chaining are one transaction with full sync, and no reply leaves before it. When a study
opens, its epsilon is reserved for every enrolled id, or for the named source where there are none, and refused for all
if it would pass the cap of any. A file put back from an old copy is noticed by the head written beside it
(`client.ledger_file`); if both are put back, by the coordinator alone, who remembers the head.
"""

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np

from sottovoce.client.ledger import Entry
from sottovoce.client.ledger_audit import (
    INFINITE,
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
_PIECE = 1 << 20  # ids of one statement
# No cost at all is what the file refuses, at the first id beyond the most; a statement a piece, not one an id.
_CHARGE = f"""
WITH RECURSIVE place (i) AS (SELECT 1 UNION ALL SELECT i + 16 FROM place WHERE i + 16 < :end)
INSERT INTO record SELECT substr(:ids, i, 16), CASE WHEN :cost <= :most THEN :cost END FROM place WHERE TRUE
ON CONFLICT (id) DO UPDATE
SET spent = CASE WHEN MIN(spent + :cost, {INFINITE}) <= :most THEN MIN(spent + :cost, {INFINITE}) END
"""


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
        cost, size, named = units(epsilon), int(size), people is not None
        if people is not None and len(people) != size:
            raise BadInput("every record needs one id; give as many ids as records, or charge the source as a whole.")
        with self._book.transaction() as file:
            known = file.execute(
                "SELECT card, size, rows_digest, epsilon, source, named, state FROM study WHERE id = ?", (study,)
            ).fetchone()
            if known is not None:
                if known[:6] != (card, size, rows, cost, source, named):
                    raise BadInput(
                        "this study was opened with another card or other records; open it with the same, or as a "
                        "new study."
                    )
                if known[6] == "refused":
                    raise BadInput("this site has refused the study; run it without this site.")
                return StudyLedger(self._book, study)
            _reserve(file, cost, source, people, ceiling(cap_record), ceiling(cap_source))
            key = np.ascontiguousarray(draw_key(), dtype="<u4").tobytes()
            digests = hashlib.sha256(card).digest(), hashlib.sha256(key).digest()
            chain = first_link(study, *digests, size, rows, cost, source, int(named))
            counter = self._book.advance(study, "open", chain)
            file.execute(
                "INSERT INTO study VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?, 'open', ?, ?, NULL, NULL)",
                (study, card, key, size, rows, cost, source, int(named), chain, counter, time_now()),
            )
        return StudyLedger(self._book, study)

    def study(self, study: bytes) -> "StudyLedger":
        """Return the part of a study that was opened before."""
        return StudyLedger(self._book, study)

    def close(self, study: bytes, *, refused: bool = False) -> None:
        """End a study, or refuse it: it is answered nothing new; an ended one still gets what it was told."""
        state = "refused" if refused else "closed"
        with self._book.transaction() as file:
            found = file.execute("SELECT state, head FROM study WHERE id = ?", (study,)).fetchone()
            if found is None:
                raise BadInput("this ledger knows no such study; open it first.")
            if found[0] == "open":
                counter = self._book.advance(study, state, found[1])
                file.execute(
                    "UPDATE study SET state = ?, ended = ?, ended_at = ? WHERE id = ?",
                    (state, counter, time_now(), study),
                )

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
        """Return whether the study is open, closed or refused."""
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


def _reserve(
    file: sqlite3.Connection, cost: int, source: str, people: Sequence[bytes] | None, record: int, whole: int
) -> None:
    """Charge every id, or the source, or refuse all of it."""
    found = file.execute("SELECT spent, named FROM source WHERE name = ?", (source,)).fetchone()
    spent, by_id = found or (0, 0)
    if people is None:
        spent += cost
        if min(spent + by_id, INFINITE) > whole:
            raise BadInput(
                "with this study the records of this source would have cost more than this site allows over all "
                "studies; ask for a smaller epsilon, or ask other records."
            )
    else:
        # what a source was charged as a whole, each of its ids was charged too
        record = record if record == INFINITE else record - spent
        _charge(file, cost, people, record)
        by_id += cost
    file.execute(
        "INSERT INTO source VALUES (?1, ?2, ?3) ON CONFLICT (name) DO UPDATE SET spent = ?2, named = ?3",
        (source, min(spent, INFINITE), min(by_id, INFINITE)),
    )


def _charge(file: sqlite3.Connection, cost: int, people: Sequence[bytes], most: int) -> None:
    """Charge every id, or refuse all of them; ids stand in the file as keyed digests."""
    (secret,) = file.execute("SELECT secret FROM meta").fetchone()
    ids = np.frombuffer(b"".join(_hidden(people, secret)), dtype=">u8").reshape(-1, 2)
    ids = ids[np.argsort(ids[:, 0])]  # in the order of the file, which is then written from end to end
    try:
        for start in range(0, len(ids), _PIECE):
            piece = ids[start : start + _PIECE].tobytes()
            file.execute(_CHARGE, {"ids": piece, "end": len(piece), "cost": cost, "most": most})
    except sqlite3.IntegrityError:
        raise BadInput(
            "with this study an id would have cost more than this site allows over all studies; ask for a smaller "
            "epsilon, or ask other records."
        ) from None


def _hidden(people: Sequence[bytes], secret: bytes) -> Iterator[bytes]:
    """Yield the digest of each id under the ledger's secret."""
    keyed = hashlib.blake2b(key=secret, digest_size=16)
    for each in people:
        one = keyed.copy()
        one.update(each)
        yield one.digest()

"""What a study costs in a durable ledger: reserved for every enrolled id or for the source, and given back unused.

Each runs inside a transaction of the ledger and fails as a whole. Ids stand in the file as keyed digests.
"""

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sottovoce.client.ledger_audit import FULL, INFINITE, linked
from sottovoce.core.arrays import Words
from sottovoce.core.errors import BadInput

_PIECE = 1 << 20  # ids of one statement
_PLACES = "WITH RECURSIVE place (i) AS (SELECT 1 UNION ALL SELECT i + 16 FROM place WHERE i + 16 < :end) "
# No cost at all is what the file refuses, at the first id beyond the most; a statement a piece, not one an id.
_CHARGE = f"""{_PLACES}
INSERT INTO record SELECT substr(:ids, i, 16), CASE WHEN :cost <= :most THEN :cost END FROM place WHERE TRUE
ON CONFLICT (id) DO UPDATE
SET spent = CASE WHEN MIN(spent + :cost, {INFINITE}) <= :most THEN MIN(spent + :cost, {FULL}) END
"""
_GIVE_BACK = f"""{_PLACES}
UPDATE record SET spent = CASE WHEN spent >= :cost THEN spent - :cost END
WHERE id IN (SELECT substr(:ids, i, 16) FROM place)
"""


class Charged(NamedTuple):
    """Whom a study is charged to: a source, and its ids as they stand in the file, in their order; None without ids."""

    source: str
    ids: Words | None

    def digest(self, rows: bytes) -> bytes:
        """Return the digest of some rows and of whose they are."""
        return rows if self.ids is None else linked(rows, hashlib.sha256(self.ids.tobytes()).digest())


def charged_to(file: sqlite3.Connection, source: str, people: Sequence[bytes] | None) -> Charged:
    """Return whom a study is charged to."""
    if people is None:
        return Charged(source, None)
    (secret,) = file.execute("SELECT secret FROM meta").fetchone()
    ids = np.frombuffer(b"".join(_hidden(people, secret)), dtype=">u8").reshape(-1, 2)
    return Charged(source, ids[np.lexsort((ids[:, 1], ids[:, 0]))])  # in the order of the file, written from end to end


def has_room(
    file: sqlite3.Connection, cost: int, source: str, people: Sequence[bytes] | None, size: int, record: int
) -> bool:
    """Tell whether even the dearest id of the ledger could pay, so that no id has to be looked up."""
    if people is None or len(set(people)) != size:
        return False
    (whole,) = file.execute("SELECT COALESCE(MAX(spent), 0) FROM source WHERE name = ?", (source,)).fetchone()
    (dearest,) = file.execute("SELECT COALESCE(MAX(spent), 0) FROM record").fetchone()
    return bool(whole + dearest + cost <= record)


def reserve(file: sqlite3.Connection, cost: int, to: Charged, record: int, whole: int) -> None:
    """Charge every id, or the source, or refuse all of it."""
    found = file.execute("SELECT spent, named FROM source WHERE name = ?", (to.source,)).fetchone()
    spent, by_id = found or (0, 0)
    if to.ids is None:
        spent += cost
        if min(spent + by_id, INFINITE) > whole:
            raise BadInput(
                "with this study the records of this source would have cost more than this site allows over all "
                "studies; ask for a smaller epsilon, or ask other records."
            )
    else:
        # what a source was charged as a whole, each of its ids was charged too
        try:
            _run(file, _CHARGE, to.ids, cost, record if record == INFINITE else record - spent)
        except sqlite3.IntegrityError:
            raise BadInput(
                "with this study an id would have cost more than this site allows over all studies; ask for a smaller "
                "epsilon, or ask other records."
            ) from None
        by_id += cost
    file.execute(
        "INSERT INTO source VALUES (?1, ?2, ?3) ON CONFLICT (name) DO UPDATE SET spent = ?2, named = ?3",
        (to.source, min(spent, FULL), min(by_id, FULL)),
    )


def give_back(file: sqlite3.Connection, cost: int, to: Charged) -> bool:
    """Take back what was reserved for a study, which the file calls released already; False where sums are too large.

    A source costs what its studies cost that were not released; one without any is as if it had never been charged.
    """
    if to.ids is not None:
        (dearest,) = file.execute("SELECT COALESCE(MAX(spent), 0) FROM record").fetchone()
        if dearest >= FULL:  # what was added beyond it is forgotten
            return False
        turn = to.ids
        while len(turn):  # an id that is there twice was charged twice
            again = np.append(np.all(turn[1:] == turn[:-1], axis=1), np.False_)
            _run(file, _GIVE_BACK, turn[~again], cost)
            turn = turn[again]
        file.execute("DELETE FROM record WHERE spent = 0")
    studies = file.execute(
        "SELECT named, epsilon FROM study WHERE source = ? AND state != 'released'", (to.source,)
    ).fetchall()
    if studies:
        sums = (min(sum(each for named, each in studies if named == kind), FULL) for kind in (0, 1))
        file.execute("UPDATE source SET spent = ?, named = ? WHERE name = ?", (*sums, to.source))
    else:
        file.execute("DELETE FROM source WHERE name = ?", (to.source,))
    return True


def _run(file: sqlite3.Connection, statement: str, ids: Words, cost: int, most: int = 0) -> None:
    """Run a statement over all ids."""
    for start in range(0, len(ids), _PIECE):
        piece = ids[start : start + _PIECE].tobytes()
        file.execute(statement, {"ids": piece, "end": len(piece), "cost": cost, "most": most})


def _hidden(people: Sequence[bytes], secret: bytes) -> Iterator[bytes]:
    """Yield the digest of each id under the ledger's secret."""
    keyed = hashlib.blake2b(key=secret, digest_size=16)
    for each in people:
        one = keyed.copy()
        one.update(each)
        yield one.digest()

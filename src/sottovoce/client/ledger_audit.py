"""What a durable ledger says of itself: digests that chain its entries, what is wrong with it, and tables to look at.

Every reply is chained to the one before it in its study, and every transaction to the one before it in the ledger.
Chains are over digests of queries and replies, so that an export, which has no body of either, can be checked by
whoever gets it. Nothing here shows an id, a point or a reply.
"""

import hashlib
import math
import sqlite3
from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from heapq import merge
from operator import itemgetter
from typing import Any

import msgspec

from sottovoce.client.ledger_file import VERSION, LedgerHead
from sottovoce.core.errors import BadInput
from sottovoce.protocol.card import from_bytes

UNIT = 10**12  # of an epsilon of 1, in the ledger: sums of integers do not drift
INFINITE = 1 << 57  # what costs more than a hundred thousand is not private
FULL = 1 << 62  # where sums end: they hold thirty studies without privacy, each of which can be taken back
GRACE = 1_000  # units by which a cap may be passed: each study rounds up by one, so that ten tenths fill a cap of 1


def units(epsilon: float) -> int:
    """Return an epsilon in whole units, rounded up; a third stays what it is written as.

    >>> units(0.1), units(1e-13), units(math.inf) == INFINITE
    (100000000000, 1, True)
    """
    if not epsilon >= 0:
        raise BadInput("what a study costs a record is zero or more; give an epsilon such as 1.")
    if not epsilon * UNIT < INFINITE:
        return INFINITE
    return int((Decimal(repr(float(epsilon))) * UNIT).to_integral_value(ROUND_CEILING))


def ceiling(cap: float) -> int:
    """Return the most units that a cap allows."""
    if not cap >= 0:
        raise BadInput("what a record may cost in all is zero or more; give a cap such as 4.")
    if math.isinf(cap):
        return INFINITE
    return min(int((Decimal(repr(float(cap))) * UNIT).to_integral_value(ROUND_FLOOR)) + GRACE, INFINITE - 1)


def in_epsilon(spent: int) -> float:
    """Return units as an epsilon."""
    return math.inf if spent >= INFINITE else spent / UNIT


def linked(*parts: bytes | int | str) -> bytes:
    """Return the digest of some parts: SHA-256 over their MessagePack array."""
    return hashlib.sha256(msgspec.msgpack.encode(parts)).digest()


def first_head(secret: bytes) -> bytes:
    """Return the head of a ledger in which nothing is kept."""
    return linked("ledger", hashlib.sha256(secret).digest())


def next_head(head: bytes, counter: int, study: bytes, what: str, chain: bytes) -> bytes:
    """Return the head of a ledger after a transaction, which left a study at a link of its chain."""
    return linked(head, counter, study, what, chain)


def first_link(
    study: bytes, card: bytes, key: bytes, size: int, rows: bytes, epsilon: int, source: str, named: int
) -> bytes:
    """Return where the chain of a study begins; card and key as digests."""
    return linked("study", study, card, key, size, rows, epsilon, source, named)


def next_link(chain: bytes, study: bytes, key: int, first: int, count: int, query: bytes, reply: bytes) -> bytes:
    """Return the link of a reply; query and reply as digests (`digest_of`)."""
    return linked(chain, study, key, first, count, query, reply)


def digest_of(kind: str, body: bytes) -> bytes:
    """Return the digest of a message."""
    return linked(kind, body)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def events(file: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    """Yield what was kept, in order, with every digest that its chains are made of."""
    opened = file.execute("SELECT opened, 'open', id, opened_at FROM study ORDER BY opened")
    ended = file.execute("SELECT ended, state, id, ended_at FROM study WHERE ended IS NOT NULL ORDER BY ended")
    said = file.execute(
        "SELECT counter, 'reply', study, at, key, first, count, chain, asked, query, kind, body FROM reply "
        "ORDER BY counter"
    )
    for counter, what, study, at, *reply in merge(opened, ended, said, key=itemgetter(0)):
        event: dict[str, Any] = {"counter": counter, "what": what, "study": study, "at": at}
        if reply:
            key, first, count, chain, asked, query, kind, body = reply
            event |= {"key": key, "first": first, "count": count, "chain": chain}
            event |= {"asked": asked, "query": digest_of(asked, query), "kind": kind, "reply": digest_of(kind, body)}
        yield event


def faults(file: sqlite3.Connection, beside: LedgerHead | None, *, whole: bool = True) -> list[str]:
    """Return what is wrong with a ledger, and where; nothing where all chains and sums are as they must be.

    ``beside`` is the head that was written beside it; ``whole`` looks at every index of the file, too.
    """
    wrong = [
        f"the file is damaged ({text.splitlines()[0]})"
        for (text,) in file.execute(f"PRAGMA {'integrity' if whole else 'quick'}_check(1)")
        if text != "ok"
    ]
    if wrong:
        return wrong
    secret, counter, digest = file.execute("SELECT secret, counter, head FROM meta").fetchone()
    chains, taken, sums = _beginnings(file)
    head, at = first_head(secret), 0
    heads, said, ended = {0: head}, set[bytes](), set[bytes]()
    for event in events(file):
        at, study = at + 1, event["study"]
        where = f"study {study.hex()[:8]}"
        if event["counter"] != at or study not in chains:
            return [f"{where}: transaction {at} is missing, or stands in another place"]
        if event["what"] == "reply":
            chains[study] = next_link(
                chains[study], study, *(event[name] for name in ("key", "first", "count", "query", "reply"))
            )
            taken[study] += event["count"]
            if chains[study] != event["chain"]:
                return [f"{where}: the chain breaks at transaction {at}, of {event['at']}"]
            if study in ended:
                wrong.append(f"{where}: it has answered in transaction {at}, after its end")
            said.add(study)
        elif event["what"] != "open":
            ended.add(study)
        if event["what"] == "released" and study in said:
            wrong.append(f"{where}: it was released in transaction {at}, though it has answered")
        head = next_head(head, at, study, event["what"], chains[study])
        if beside is not None and at == beside.counter:
            heads[at] = head
    for study, said, end in file.execute("SELECT id, taken, head FROM study"):
        wrong += [f"study {study.hex()[:8]}: other records have answered than its replies say"] * (said != taken[study])
        wrong += [f"study {study.hex()[:8]}: its head is not the end of its chain"] * (end != chains[study])
    if (at, head) != (counter, digest):
        wrong.append("the head of the ledger is not the end of its chain")
    if beside is None:
        wrong += ["the head written beside the ledger is missing"] * (at > 0)
    elif beside.counter > at:
        wrong.append("the ledger is older than the head written beside it")
    elif heads[beside.counter] != beside.digest:
        wrong.append("the head written beside the ledger is of another one")
    return wrong + _wrong_sums(file, sums)


def _beginnings(file: sqlite3.Connection) -> tuple[dict[bytes, bytes], dict[bytes, int], dict[str, list[int]]]:
    """Return where the chain of each study begins, that nobody has answered, and what it costs each source."""
    chains: dict[bytes, bytes] = {}
    sums: dict[str, list[int]] = {}
    for study, card, key, state, *told in file.execute(
        "SELECT id, card, key, state, size, rows_digest, epsilon, source, named FROM study"
    ):
        chains[study] = first_link(study, _digest(card), _digest(key), *told)
        if state == "released":
            continue
        size, _, epsilon, source, named = told
        costs = sums.setdefault(source, [0, 0, 0])
        costs[named] = min(costs[named] + epsilon, FULL)
        costs[2] += size * epsilon * named
    return chains, dict.fromkeys(chains, 0), sums


def _wrong_sums(file: sqlite3.Connection, sums: dict[str, list[int]]) -> list[str]:
    """Return which sums are not those of the studies: of a source, or of all ids together."""
    said = {name: [spent, named] for name, spent, named in file.execute("SELECT name, spent, named FROM source")}
    wrong = [
        f"source {name!r}: its cost is not the sum of its studies" for name in sums if said.get(name) != sums[name][:2]
    ]
    wrong += [f"source {name!r}: it has a cost without a study" for name in said if name not in sums]
    high, low, most = file.execute(
        "SELECT COALESCE(SUM(spent >> 30), 0), COALESCE(SUM(spent & 1073741823), 0), COALESCE(MAX(spent), 0) "
        "FROM record"
    ).fetchone()
    if most < FULL and (high << 30) + low != sum(each[2] for each in sums.values()):
        wrong.append("ids: their costs are not the sum of their studies")
    return wrong


def table(file: sqlite3.Connection) -> dict[str, Any]:
    """Return what may be shown of a ledger: studies, costs by source, how many ids and the dearest of them, heads."""
    counter, head = file.execute("SELECT counter, head FROM meta").fetchone()
    ids, dearest = file.execute("SELECT COUNT(*), COALESCE(MAX(spent), 0) FROM record").fetchone()
    return {
        "version": VERSION,
        "counter": counter,
        "head": head.hex(),
        "ids": ids,
        "dearest": in_epsilon(dearest),
        "sources": [
            {"source": name, "epsilon": in_epsilon(spent), "epsilon_by_id": in_epsilon(named)}
            for name, spent, named in file.execute("SELECT name, spent, named FROM source ORDER BY name")
        ],
        "studies": list(studies(file)),
    }


def studies(file: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    """Yield each study, as it may be shown."""
    names = ("epsilon", "source", "records", "asked", "rounds", "state", "opened", "ended", "by_id", "head")
    for study, card, *told in file.execute(
        "SELECT id, card, epsilon, source, size, taken, (SELECT COUNT(*) FROM reply WHERE reply.study = study.id), "
        "state, opened_at, ended_at, named, head FROM study ORDER BY opened"
    ):
        row = dict(zip(names, told, strict=True))
        row |= {"epsilon": in_epsilon(row["epsilon"]), "by_id": bool(row["by_id"]), "head": row["head"].hex()}
        try:
            public = from_bytes(card)
            yield {"study": study.hex(), "name": public.name, "method": public.method, **row}
        except BadInput:  # a card of another version
            yield {"study": study.hex(), "name": "", "method": "", **row}


def lines(file: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    """Yield what is exported: the ledger, each study with where its chain begins, and the chain itself."""
    secret, counter, head = file.execute("SELECT secret, counter, head FROM meta").fetchone()
    begins = first_head(secret).hex()
    yield {"line": "ledger", "version": VERSION, "counter": counter, "begins": begins, "head": head.hex()}
    for shown in studies(file):
        row = file.execute(
            "SELECT card, key, rows_digest, epsilon FROM study WHERE id = ?", (bytes.fromhex(shown["study"]),)
        ).fetchone()
        card, key, rows, epsilon = _digest(row[0]).hex(), _digest(row[1]).hex(), row[2].hex(), row[3]
        yield {"line": "study", **shown, "card": card, "key": key, "rows": rows, "units": epsilon}
    for event in events(file):
        plain = {name: value.hex() if isinstance(value, bytes) else value for name, value in event.items()}
        yield {"line": "event", **plain}

"""Ledgers, studies and doors for the tests of the durable ledger."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sottovoce.client.door import Door
from sottovoce.client.order import Key, order_key
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.client.site_ledger import SiteLedger, StudyLedger
from sottovoce.core.random_source import RandomSource, SystemEntropy
from sottovoce.protocol.card import Card, identity, to_bytes
from sottovoce.protocol.messages import Query, Study
from sottovoce.protocol.wire import seal

SIZE = 100
CARD = Card("quantile", {"tau": 0.5}, name="delays", nonce=b"one")
STUDY, TERMS = identity(CARD), to_bytes(CARD)


def key() -> Key:
    return order_key(SystemEntropy())


def enrol(
    ledger: SiteLedger,
    study: bytes = STUDY,
    epsilon: float = 1.0,
    *,
    card: bytes = TERMS,
    source: str = "flights",
    size: int = SIZE,
    rows: bytes = b"digest of the rows",
    people: Sequence[bytes] | None = None,
    cap: float = 4.0,
) -> StudyLedger:
    return ledger.enrol(
        study, card, epsilon, source=source, size=size if people is None else len(people), rows=rows, people=people,
        cap_record=cap, cap_source=cap, draw_key=key,
    )  # fmt: skip


def door(kept: StudyLedger, dice: RandomSource | None = None) -> Door:
    records = Records(np.arange(float(kept.size)))
    return Door(Site(records, Study(0.5, 1.0), dice, storage=kept, key=kept.key), kept.study)


def asked(round: int, point: float = 50.0, count: int = 10) -> bytes:
    return seal(STUDY, round, Query(round, (point,), (count,)))


def opened(folder: Path) -> SiteLedger:
    return SiteLedger(folder / "site.ledger")

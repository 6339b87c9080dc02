"""The resident site: every order that arrives, over whatever carrier, is answered here or refused here.

It holds the records, the random source and the ledger, and it alone decides what is said. Nothing leaves before the
ledger has kept it. The same order gets the same reply, after a restart too: studies are reopened from the ledger.
"""

import logging
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from sottovoce.client.door import Door
from sottovoce.client.order import ROUNDS, order_key
from sottovoce.client.record import Records
from sottovoce.client.site_ledger import SiteLedger, StudyLedger
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource, SystemEntropy, is_private
from sottovoce.federation import words
from sottovoce.federation.site.features import FeatureColumns
from sottovoce.federation.site.opening import OwnPart, SiteMeans, check_columns, part_of
from sottovoce.federation.site.policy import SitePolicy
from sottovoce.protocol import card as cards
from sottovoce.protocol.card import Card, identity

LOG = logging.getLogger("sottovoce.site")
NONE = bytes(16)  # stands for the study where an order names none


class Holding(NamedTuple):
    """What a site holds: its records, their digest, who they are of if that is known, and what the column is called."""

    records: Records
    rows: bytes
    people: Sequence[bytes] | None = None
    column: str = ""
    features: FeatureColumns | None = None  # what regressions may use beside it

    def __repr__(self) -> str:
        return f"Holding({self.records!r})"


class Seen(NamedTuple):
    """What an operator may see of an order: what it was, of which study and round, and how it went."""

    order: str
    study: str
    round: int
    outcome: str


@dataclass
class Resident:
    """A site that stays: ``handle`` takes an order and returns a reply, both bytes."""

    policy: SitePolicy
    holding: Holding = field(repr=False)
    ledger: SiteLedger = field(repr=False)
    dice: RandomSource = field(default_factory=SystemEntropy, repr=False)
    watch: Callable[[Seen], None] | None = field(default=None, repr=False)
    doors: dict[bytes, Door] = field(default_factory=dict, repr=False)
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def handle(self, data: bytes) -> bytes:
        """Answer an order, or refuse it with one sentence; an order that fails has cost nothing."""
        study, round, kind = NONE, 0, "unknown"
        with self.lock:
            try:
                order = words.order_of(data)
                study, kind = getattr(order, "study", NONE), type(order).__name__.lower()
                study = study if isinstance(study, bytes) else NONE
                reply, round = self._answer(order)
                outcome = "done"
            except BadInput as error:
                reply, outcome = words.Refused(study, words.sentence(str(error))), f"refused: {error}"
            except Exception as error:
                LOG.error("%s of study %s failed: %s", kind, study.hex()[:8], type(error).__name__)
                reply = words.Refused(study, "the site could not answer; its operator can see that it failed.")
                outcome = f"failed: {type(error).__name__}"
        if self.watch is not None:
            self.watch(Seen(kind, study.hex()[:8] if study != NONE else "", round, outcome))
        return words.encode(reply)

    def _answer(self, order: words.Order) -> tuple[words.Reply, int]:
        """Do what an order says; return the reply, and the round it was about."""
        if isinstance(order, words.Who):
            return self._hello(), 0
        if isinstance(order, words.Look):
            return self._look(order.card), 0
        if isinstance(order, words.Invite):
            return self._open(order.card), 0
        if isinstance(order, words.Question):
            envelope = self._door(order.study).answer(order.envelope)
            last = self.ledger.study(order.study).last()
            told = words.Answered(order.study, envelope, self.ledger.counter, self.ledger.head)
            return told, 0 if last is None else getattr(last.query, "round", last.key)  # people have numbers as keys
        self._end(order)
        return words.Bye(order.study, self.ledger.counter, self.ledger.head), 0

    def _hello(self) -> words.Hello:
        held = self.holding
        return words.Hello(
            self.policy.name,
            held.records.size,
            held.records.unit,
            self.ledger.counter,
            self.ledger.head,
            held.column,
            held.people is not None,
            not is_private(self.dice),
        )

    def _open(self, data: bytes) -> words.Joined:
        """Take part in a study: check its card, reserve what it costs, and open the door."""
        study, part, cost = self._cost(data)
        storage = self.ledger.enrol(
            **cost, draw_key=lambda: order_key(self.dice) if part.ordered else np.zeros(ROUNDS, np.uint32)
        )
        self._stand(study, part, storage)
        last = storage.last()
        return words.Joined(study, 0 if last is None else last.key, self.ledger.counter, self.ledger.head)

    def _look(self, data: bytes) -> words.Willing:
        """Tell whether the site would take part: card, policy, records and what is left of the caps allow it."""
        study, _, cost = self._cost(data)
        self.ledger.look(**cost)
        return words.Willing(study)

    def _end(self, order: words.Over) -> None:
        """End a study; one that was answered nothing gives back what it has reserved, and is never answered."""
        if self.ledger.counter < order.counter:
            raise BadInput("the ledger of this site is older than the coordinator knows it; put its newest copy back.")
        if self.ledger.knows(order.study):  # else this site was left out of it, or never invited
            self.ledger.end(order.study, rows=self.holding.rows, people=self.holding.people)
        self.doors.pop(order.study, None)

    def _cost(self, data: bytes) -> tuple[bytes, OwnPart, dict[str, Any]]:
        """Check a card; return its study, this site's part of it, and what the ledger is to reserve."""
        card = cards.from_bytes(data)
        part, study, held = self._part(card), identity(card), self.holding
        most = math.inf if math.isinf(part.epsilon) else self.policy.total  # no cap holds what the policy opens
        return (
            study,
            part,
            {
                "study": study,
                "card": data,
                "epsilon": part.epsilon,
                "source": self.policy.source,
                "size": held.records.size,
                "rows": held.rows,
                "people": held.people,
                "cap_record": most,
                "cap_source": most,
            },
        )

    def _part(self, card: Card) -> OwnPart:
        """Hold a card against policy and records."""
        part, held = part_of(card, self.policy), self.holding.records
        if part.size != held.size:
            raise BadInput("the study card gives this site another number of records than it holds; plan it anew.")
        unit = card.terms.get("unit", "number")
        if unit != held.unit.kind:
            raise BadInput(f"the study is about another unit than the {held.unit.plural} of this site; correct it.")
        if card.terms.get("censored") != (held.unit.censored and str(held.unit.censored)):
            raise BadInput("the study takes other limits of measurement than the records of this site; plan it anew.")
        if part.columns is not None:
            check_columns(part.columns, self.holding.column, self.holding.features)
        return part

    def _stand(self, study: bytes, part: OwnPart, storage: StudyLedger) -> Door:
        """Open the door of a study."""
        site = part.opened(self.holding.records, SiteMeans(self.dice, storage.key, storage, self.holding.features))
        self.doors[study] = Door(site, study, self.policy.limits)
        return self.doors[study]

    def _door(self, study: bytes) -> Door:
        """Return the door of a study; after a restart it is opened again, as the ledger knows it."""
        if study in self.doors:
            return self.doors[study]
        self._open(self.ledger.study(study).card)
        return self.doors[study]

"""Sites inside Flower's simulation: resident for one message at a time, with their ledgers in files between them."""

from typing import Any, NamedTuple

import numpy as np

from sottovoce.client.reading.spool import rows_digest
from sottovoce.client.record import Records
from sottovoce.client.site_ledger import SiteLedger
from sottovoce.core.arrays import Floats, Words
from sottovoce.core.random_source import RandomSource, SystemEntropy
from sottovoce.federation import words
from sottovoce.federation.flower.folder import folder_of
from sottovoce.federation.site.policy import SitePolicy
from sottovoce.federation.site.resident import NONE, Holding, Resident

DRAWN = "sottovoce-drawn"


class SimulatedSite(NamedTuple):
    """A site to try things out with: its policy, its records, and dice if results are to be the same again."""

    policy: SitePolicy
    values: Floats
    dice: Any = None  # a seeded source that can skip words, such as sim.dice(seed)

    def __repr__(self) -> str:
        return f"SimulatedSite({self.policy.name!r}, {len(self.values):,} records)"


def answered(site: SimulatedSite | None, order: bytes, context: Any) -> bytes:
    """Answer an order as a site that has just been started again; without one, say that nobody is there."""
    if site is None:
        return words.encode(words.Refused(NONE, "this node has no site of the study."))
    state = context.state.config_records
    drawn = int(state[DRAWN]["words"]) if DRAWN in state else 0
    dice: RandomSource = SystemEntropy() if site.dice is None else _CountedDice(site.dice, drawn)
    records = Records(np.ascontiguousarray(site.values, dtype=np.float64))
    holding = Holding(records, rows_digest(records), None, site.policy.records.value)
    folder = folder_of(context)
    with SiteLedger(folder / f"{site.policy.name}.ledger") as ledger:
        reply = Resident(site.policy, holding, ledger, dice=dice).handle(order)
    if isinstance(dice, _CountedDice):
        from flwr.app import ConfigRecord

        context.state[DRAWN] = ConfigRecord({"words": dice.drawn})
    return reply


class _CountedDice:
    """Seeded words that go on where the last process stopped."""

    def __init__(self, source: Any, drawn: int) -> None:
        self._source, self.drawn = source, drawn
        source.skip(drawn)

    def words(self, n: int) -> Words:
        """Return the next ``n`` words."""
        self.drawn += n
        found: Words = self._source.words(n)
        return found

    def split(self, n: int) -> Any:
        """Return independent sources."""
        return self._source.split(n)

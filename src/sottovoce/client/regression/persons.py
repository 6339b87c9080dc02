"""People behind one door: each answers one query of a regression, once; a retry gets the same bytes."""

import math

import numpy as np

from sottovoce.client.regression.randomize_row import randomize_product, randomize_row
from sottovoce.client.regression.rows import Rows
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource, SystemEntropy
from sottovoce.protocol.messages import PersonQuery, PersonReport, from_bytes, to_bytes
from sottovoce.protocol.regression.blocks import Open, RegressionChannel, tables_of


class Persons:
    """Holds rows, answers for each of them once, and remembers what was sent."""

    __slots__ = ("_channel", "_dice", "_rows", "_sent", "_tables")

    def __init__(self, rows: Rows, channel: RegressionChannel, dice: RandomSource | None = None) -> None:
        self._rows, self._channel = rows, channel
        self._tables = tables_of(channel)
        self._dice: RandomSource = SystemEntropy() if dice is None else dice
        self._sent: dict[int, tuple[PersonQuery, bytes]] = {}

    def __repr__(self) -> str:
        return f"Persons({self._rows.size:,} rows, {len(self._sent):,} answered, values hidden)"

    @property
    def size(self) -> int:
        """Return how many people there are."""
        return self._rows.size

    def answer(self, query: PersonQuery) -> PersonReport:
        """Answer a query for the person it names; the same query again gets the same letter, any other is refused."""
        self._check(query)
        if query.person in self._sent:
            asked, reply = self._sent[query.person]
            if asked != query:
                raise BadInput(f"person {query.person} has already answered another query; ask someone else.")
            return from_bytes(reply, PersonReport)
        throws = self._dice.words(1 + max(self._channel.widest, 1))
        words = np.concatenate((np.zeros(1, dtype=np.uint64), throws))[None]
        reply = to_bytes(PersonReport(query.person, self._letter(query, words)))
        self._sent[query.person] = (query, reply)
        return from_bytes(reply, PersonReport)

    def _letter(self, query: PersonQuery, words: np.ndarray[tuple[int, int], np.dtype[np.uint64]]) -> int:
        _, plan, faces, steps, score, *_, radius = self._tables
        features, response = self._rows.features(), self._rows.response()
        if query.factors:
            first, second = query.factors
            return int(randomize_product(faces, len(plan), features, query.person, first, second, words, 0))
        chosen = np.array([*query.slopes, 0], dtype=np.int64)
        points = np.array([query.points])
        return int(
            randomize_row(
                plan, faces, steps, score, radius, query.block, chosen, features, response, query.person, points, 0,
                words, 0,
            )
        )  # fmt: skip

    def _check(self, query: PersonQuery) -> None:
        """Refuse what cannot be answered, before anything is spent."""
        p, levels = self._channel.p, len(self._channel.taus)
        if not 0 <= query.person < self.size or not 0 <= query.block < len(self._channel.blocks):
            raise BadInput(f"person {query.person} or block {query.block} does not exist; correct the query.")
        if isinstance(self._channel.blocks[query.block].channel, Open):
            raise BadInput("exact scores are not letters, and are not sent; give a channel with a finite epsilon.")
        if query.factors:
            known = not query.slopes and not query.points and len(query.factors) == 2
            known = known and 0 <= query.factors[0] <= query.factors[1] <= p and query.factors[1] > 0
        else:
            block = self._channel.blocks[query.block]
            known = len(query.slopes) == block.count and all(1 <= slope <= p for slope in query.slopes)
            known = known and len(set(query.slopes)) == len(query.slopes)
            known = known and len(query.points) == levels and all(len(point) == p + 1 for point in query.points)
            known = known and all(math.isfinite(x) for point in query.points for x in point)
        if not known:
            raise BadInput(f"the query to person {query.person} does not fit the channel; correct the query.")

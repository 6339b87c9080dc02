"""Many records behind one door: a site answers queries, each record once, in random order.

There is no seed parameter: dice come from the operating system unless a simulation hands in its own.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple, NoReturn, SupportsIndex

import numpy as np
import numpy.typing as npt

from sottovoce.client.ledger import Ledger
from sottovoce.client.order import Key, bits_for, order_key
from sottovoce.client.quantile.encode import answer
from sottovoce.client.record import Records
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource, SystemEntropy
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.messages import Query, Reports, Study, Tally, from_bytes, to_bytes
from sottovoce.protocol.randomised_response import binary, flips_of
from sottovoce.protocol.walk import moves

CHUNK = 1 << 13  # the dice, places and letters of a piece stay in the processor's cache


class Rest(NamedTuple):
    """What is left of a site that goes on inside this process: its records, channel, dice, and place in the order."""

    values: npt.NDArray[np.float64]
    channel: Channel
    dice: RandomSource
    resolution: float
    key: Key
    taken: int

    def __repr__(self) -> str:
        return f"Rest({len(self.values):,} records, {self.taken:,} answered, values hidden)"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("what is left of a site cannot be pickled or copied: records do not leave the site")


class Site:
    """A place that holds records and answers queries about them."""

    __slots__ = (
        "_bits",
        "_dice",
        "_flips",
        "_key",
        "_ledger",
        "_letters",
        "_moves",
        "_records",
        "_study",
        "_where",
        "channel",
    )

    def __init__(
        self, records: Records, study: Study, dice: RandomSource | None = None, channel: Channel | None = None
    ) -> None:
        self.channel = binary(study.epsilon) if channel is None else channel
        self._flips = flips_of(self.channel)
        self._study = study
        self._records = records
        self._dice = SystemEntropy() if dice is None else dice
        self._key = order_key(self._dice)
        self._bits = bits_for(records.size)
        self._ledger = Ledger(records.size)
        self._moves = moves(self.channel, study.tau)
        self._letters = np.empty(min(CHUNK, max(records.size, 1)), dtype=np.uint8)
        self._where = np.empty(len(self._letters), dtype=np.uint64)

    def __repr__(self) -> str:
        return f"Site({self._records.size:,} records, {self._ledger.spent:,} answered)"

    @property
    def size(self) -> int:
        """Return how many records the site holds."""
        return self._records.size

    @property
    def spent(self) -> int:
        """Return how many records have answered."""
        return self._ledger.spent

    @property
    def private(self) -> bool:
        """Tell whether nobody can reproduce the noise and the channel has a finite epsilon."""
        return self._dice.private and math.isfinite(self.channel.epsilon)

    def answer(self, query: Query) -> Reports:
        """Answer a query with one letter a record; a retry gets the same letters."""
        _check(query)
        kept = self._ledger.replay(query)
        if kept is None:
            letters = b"".join(piece.tobytes() for _, piece in self._pieces(query))
            kept = to_bytes(Reports(query.round, letters))
            self._ledger.remember(kept)
        return from_bytes(kept, Reports)

    def tally(self, query: Query) -> Tally:
        """Answer a frozen query with the sums of the letters alone, in constant memory; a retry gets the same sums."""
        _check(query)
        kept = self._ledger.replay(query)
        if kept is None:
            ones = [0] * len(query.points)
            for place, piece in self._pieces(query):
                ones[place] += int(np.count_nonzero(piece))
            kept = to_bytes(Tally(query.round, tuple(ones)))
            self._ledger.remember(kept)
        return from_bytes(kept, Tally)

    def hand_over(self, round: int) -> Rest:
        """Spend all records that have not answered on a kernel of this process, which goes on with the same dice."""
        taken = self._ledger.spent
        self._ledger.spend(Query(round, (0.0,), (self.size - taken,)))
        return Rest(self._records.values(), self.channel, self._dice, self._study.resolution, self._key, taken)

    def _pieces(self, query: Query) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
        """Spend the records of a query, then yield their letters piece by piece with the index of their point."""
        position = self._ledger.spend(query)
        flips = self._flips
        throws = 2 if self._study.resolution > 0 else 1
        for place, (start, count) in enumerate(zip(query.points, query.counts, strict=True)):
            point, done = start, 0
            while done < count:
                piece = self._letters[: min(count - done, len(self._letters))]
                words = self._dice.words(throws * len(piece))
                point = answer(
                    self._records.values(),
                    self._bits,
                    self._key,
                    position,
                    words,
                    flips,
                    self._study.resolution,
                    point,
                    query.step,
                    self._moves,
                    piece,
                    self._where,
                )
                position += len(piece)
                done += len(piece)
                yield place, piece


def _check(query: Query) -> None:
    """Refuse a query that cannot be answered, before anything is spent."""
    if len(query.points) != len(query.counts) or min(query.counts, default=0) < 0:
        raise BadInput(f"round {query.round} needs one count of at least zero for each point; correct the query.")
    if not all(map(math.isfinite, (*query.points, query.step))):
        raise BadInput(f"round {query.round} asks at a point that is not a finite number; correct the query.")

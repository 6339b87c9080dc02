"""Many records behind one door: a site answers queries, each record once, in random order.

There is no seed parameter: dice come from the operating system unless a simulation hands in its own.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple, NoReturn, SupportsIndex

import numpy as np
import numpy.typing as npt

from sottovoce.client.door import SiteLimits
from sottovoce.client.ledger import Ledger, Storage
from sottovoce.client.mapped import ROWS, is_mapped, let_go
from sottovoce.client.order import Key, bits_for, order_key
from sottovoce.client.quantile import ahead
from sottovoce.client.quantile.encode import answer, count_ones, pick, speak
from sottovoce.client.record import Records, look_tied
from sottovoce.core.arrays import Ints
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource, SystemEntropy, is_private
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.exact import within
from sottovoce.protocol.messages import Message, Query, Reports, Study, Tally, WalkQuery
from sottovoce.protocol.randomised_response import binary, flips_of
from sottovoce.protocol.walk import moves

CHUNK = 1 << 13  # the dice, places and letters of a piece stay in the processor's cache
_IN_TURN = np.arange(CHUNK, dtype=np.uint64)
LARGE, PART, FEW = 1 << 20, 0.4, 64  # a site beyond the cache; from which part of it, at how few points, it is scanned
MAPPED_PART, PASSES = 0.125, 4  # a mapped one: from which part of it, or how many passes through the file


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
    """A place that holds records and answers queries about them.

    None for ``dice`` is the operating system's entropy, for ``storage`` a ledger in memory; ``channel`` is that of the
    study's budget, if it is at hand, and ``key`` that of the random order, where an earlier process has drawn it.
    """

    __slots__ = (
        "_bits",
        "_dice",
        "_flips",
        "_key",
        "_ledger",
        "_letters",
        "_limits",
        "_moves",
        "_records",
        "_study",
        "_where",
        "channel",
    )

    kinds: tuple[type[Message], ...] = (Query, WalkQuery)

    def __init__(
        self,
        records: Records,
        study: Study,
        dice: RandomSource | None = None,
        channel: Channel | None = None,
        *,
        storage: Storage | None = None,
        key: Key | None = None,
        limits: SiteLimits | None = None,
    ) -> None:
        self._limits = SiteLimits() if limits is None else limits
        self._limits.check_budget(study.epsilon)
        self.channel = binary(study.epsilon) if channel is None else channel
        check_study(study, self.channel, self._limits)
        self._flips = flips_of(self.channel)
        self._study = study
        self._records = records
        self._dice = SystemEntropy() if dice is None else dice
        self._key = order_key(self._dice) if key is None else key
        self._bits = bits_for(records.size)
        self._ledger = Ledger(records.size, storage)
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
        return is_private(self._dice) and math.isfinite(self.channel.epsilon)

    def reply(self, round: int, query: Message) -> Message:
        """Answer a query of either kind; a retry gets the same."""
        if not isinstance(query, Query) or query.round != round:
            raise BadInput(f"round {round} asks nothing that this site understands; correct the query.")
        return self.answer(query) if isinstance(query, WalkQuery) else self.tally(query)

    def answer(self, query: Query) -> Reports:
        """Answer a query with one letter a record; a retry gets the same letters."""
        self._check(query)

        def draw(first: int) -> Reports:
            return Reports(query.round, b"".join(piece.tobytes() for _, piece in self._pieces(query, first)))

        return self._ledger.transaction(query.round, query, sum(query.counts), Reports, draw)

    def tally(self, query: Query) -> Tally:
        """Answer a frozen query with the sums of the letters alone, in constant memory; a retry gets the same sums."""
        self._check(query)

        def draw(first: int) -> Tally:
            if self._scans(query):
                return Tally(query.round, tuple(self._scan(query, first).tolist()))
            ones = [0] * len(query.points)
            for place, piece in self._pieces(query, first):
                ones[place] += int(np.count_nonzero(piece))
            return Tally(query.round, tuple(ones))

        return self._ledger.transaction(query.round, query, sum(query.counts), Tally, draw)

    def hand_over(self, round: int) -> Rest:
        """Spend all records that have not answered on a kernel of this process, which goes on with the same dice."""
        left = self._ledger.left
        rest = Query(round, (0.0,), (left,))
        self._ledger.transaction(round, rest, left, Tally, lambda _: Tally(round, ()))
        taken = self.size - left
        return Rest(self._records.values(), self.channel, self._dice, self._study.resolution, self._key, taken)

    def _pieces(self, query: Query, position: int) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
        """Yield the letters of a query's records piece by piece, with the index of their point."""
        values, resolution = self._records.values(), self._study.resolution
        last = position + sum(query.counts)
        fetched = ahead.Ahead(values, self._bits, self._key, last) if is_mapped(values) else None
        throws = 2 if resolution > 0 else 1
        periods = query.periods or (0.0,) * len(query.points)
        for place, (start, count, period) in enumerate(zip(query.points, query.counts, periods, strict=True)):
            point, done = start, 0
            while done < count:
                piece = self._letters[: min(count - done, len(self._letters))]
                words = self._dice.words(throws * len(piece))
                how = (words, self._flips, resolution, point, period, query.step, self._moves, piece)
                if fetched is None:
                    point = answer(values, self._bits, self._key, position, *how, self._where)
                else:
                    point = speak(fetched.take(position, len(piece)), _IN_TURN, *how)
                position += len(piece)
                done += len(piece)
                yield place, piece

    def _scans(self, query: Query) -> bool:
        """Tell whether a query is answered in the order of memory: it takes many records of a large site."""
        if self.size <= LARGE or query.step or any(query.periods):
            return False
        if is_mapped(self._records.values()):  # rather one pass through the file, at any number of points
            return sum(query.counts) > min(MAPPED_PART * self.size, PASSES * ahead.BATCH)
        return sum(query.counts) > PART * self.size and len(query.points) <= FEW

    def _scan(self, query: Query, first: int) -> Ints:
        """Return the sums of a frozen query's letters, taken in the order of memory: dear only where it takes few."""
        ones, points = np.zeros(len(query.points), dtype=np.int64), np.array(query.points)
        ends = (first + np.cumsum(query.counts)).astype(np.uint64)
        picked, at = np.empty(CHUNK + 1), np.empty(CHUNK + 1, dtype=np.uint64)
        values, throws = self._records.values(), 2 if self._study.resolution > 0 else 1
        for start in range(0, self.size, CHUNK):
            where = self._where[: min(CHUNK, self.size - start)]
            taken = pick(values, self._bits, self._key, start, first, int(ends[-1]), where, picked, at)
            words = self._dice.words(throws * taken)
            count_ones(picked, at, words, self._flips, self._study.resolution, points, ends, ones)
            if (start + CHUNK) % ROWS == 0:
                let_go(values[start + CHUNK - ROWS : start + CHUNK])
        return ones

    def _check(self, query: Query) -> None:
        """Refuse a query that cannot be answered, before anything is spent."""
        self._limits.check_round(query.round)
        self._limits.check_points(max(len(query.points), len(query.counts)))
        if len(query.points) != len(query.counts) or min(query.counts) < 0:
            raise BadInput(f"round {query.round} needs one count of at least zero for each point; correct the query.")
        if not all(map(math.isfinite, (*query.points, query.step))):
            raise BadInput(f"round {query.round} asks at a point that is not a finite number; correct the query.")
        if query.periods and (isinstance(query, WalkQuery) or query.step):
            raise BadInput(f"round {query.round} gives periods to points that move; ask phases in a frozen query.")
        if len(query.periods) not in (0, len(query.points)) or not all(0 <= each < math.inf for each in query.periods):
            raise BadInput(
                f"round {query.round} needs no period, or a finite one of at least zero a point; correct it."
            )


def check_study(study: Study, channel: Channel, limits: SiteLimits) -> None:
    """Refuse a study that no site can take part in, or that this one does not want to."""
    limits.check_budget(study.epsilon)
    if not 0 < study.tau < 1:
        raise BadInput("the study's tau must lie strictly between 0 and 1; correct the study.")
    if not 0 <= study.resolution < math.inf:
        raise BadInput("the study's resolution must be zero, or positive and finite; correct the study.")
    if not within(channel.ratio, study.epsilon):
        raise BadInput("the channel costs a record more than the study says; make it of the study's epsilon.")


def look_rounded(records: Records) -> bool:
    """Tell whether many of a site's records share their value: a hint to their holder alone."""
    return look_tied(records.values())

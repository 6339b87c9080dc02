"""The state of one group as the fold of its reports: which round is open, what came in, and when it closes.

A round has places at each of its points. Whoever asks is told how many answers each point still needs, and draws one
by lot. Once every point has its answers, nobody new is sent there and the round waits for answers under way; then it
closes, with all that came. After its deadline it closes with what there is. What comes later is refused as late.
"""

from typing import NamedTuple

import numpy as np

from sottovoce.collector.study import Pauses, QuantileOfArrivals
from sottovoce.core.arrays import Floats, Ints

TAKEN, AGAIN = "taken", "again"
LATE = "the round is over"
AHEAD = "there is no such round yet"
NOWHERE = "the round has no such point"
LETTER = "there is no such letter"
REPLAYED = "this id has answered otherwise"
ENDED = "the study is over"


class AskedNow(NamedTuple):
    """What people are asked now: the round, its points and periods, and how many answers each point still needs."""

    round: int
    points: tuple[float, ...]
    periods: tuple[float, ...]
    needs: tuple[int, ...]


class ClosedRound(NamedTuple):
    """What a round came to: its points, and at each the answers and how many of them were one."""

    round: int
    points: Floats
    counts: Ints
    ones: Ints


class OpenRound:
    """A round that takes answers: sums, and the ids that have answered in it."""

    def __init__(self, number: int, points: Floats, periods: Floats, wanted: Ints, begun: float) -> None:
        self.number, self.points, self.periods, self.begun = number, points, periods, begun
        self.wanted: list[int] = wanted.tolist()
        self.counts, self.ones = [0] * len(self.wanted), [0] * len(self.wanted)
        self.seen: dict[bytes, int] = {}
        self.filled: float | None = None
        self._lacking = sum(self.wanted)

    def take(self, id: bytes, point: int, letter: int, now: float) -> str:
        """Take one report, or say why not; the same report again is known."""
        if point >= len(self.wanted) or not self.wanted[point]:
            return NOWHERE
        if letter > 1:
            return LETTER
        said = 2 * point + letter
        known = self.seen.setdefault(id, -1 - said)
        if known != -1 - said:
            return AGAIN if known == said else REPLAYED
        self.seen[id] = said
        if self.counts[point] < self.wanted[point]:
            self._lacking -= 1
            if not self._lacking:
                self.filled = now
        self.counts[point] += 1
        self.ones[point] += letter
        return TAKEN

    @property
    def needs(self) -> tuple[int, ...]:
        """Return how many answers each point still needs."""
        return tuple(max(wanted - came, 0) for wanted, came in zip(self.wanted, self.counts, strict=True))

    def closes(self, now: float, pauses: Pauses) -> bool:
        """Tell whether it is time to close; no point that asks is ever left without an answer."""
        if self.filled is not None and now >= self.filled + pauses.grace:
            return True
        heard = all(came for came, wanted in zip(self.counts, self.wanted, strict=True) if wanted)
        return heard and now >= self.begun + pauses.deadline


class GroupFold:
    """One group's conversation, its open round, and the interval after each round that told one."""

    def __init__(self, method: QuantileOfArrivals, pauses: Pauses, now: float) -> None:
        self.method, self.pauses, self.log = method, pauses, method.init()
        self.reports = 0
        self.round: OpenRound | None = None
        self._begin(now)

    def _begin(self, now: float) -> None:
        """Open the next round, if there is one."""
        queries = self.method.query(self.log)
        if queries is None:
            self.round = None
            return
        asked = queries.messages
        points, counts = asked.points, asked.counts[0]  # type: ignore[attr-defined]
        periods = asked.periods  # type: ignore[attr-defined]
        told = np.zeros(len(points)) if periods is None else periods
        self.round = OpenRound(queries.round, points, told, counts, now)

    @property
    def asked(self) -> AskedNow | None:
        """Return what people are asked now; None while a round waits for answers under way, and at the end."""
        now = self.round
        if now is None or now.filled is not None:
            return None
        return AskedNow(now.number, tuple(now.points.tolist()), tuple(now.periods.tolist()), now.needs)

    def take(self, id: bytes, round: int, point: int, letter: int, now: float) -> str:
        """Take one report under its own round, or say why not."""
        if self.round is None:
            return ENDED
        if round != self.round.number:
            return LATE if round < self.round.number else AHEAD
        said = self.round.take(id, point, letter, now)
        self.reports += said == TAKEN
        return said

    def close(self, now: float) -> ClosedRound | None:
        """Close the open round, if it is time, and open the next."""
        open_ = self.round
        if open_ is None or not open_.closes(now, self.pauses):
            return None
        closed = ClosedRound(
            open_.number, open_.points, np.array(open_.counts, np.int64), np.array(open_.ones, np.int64)
        )
        self.follow(closed, now)
        return closed

    def follow(self, closed: ClosedRound, now: float) -> None:
        """Go on from what a round came to; refuse sums that it cannot have come to."""
        self.log = self.method.arrive(self.log, closed.ones[None], closed.counts[None])
        self._begin(now)

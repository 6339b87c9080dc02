"""The state of one group as the fold of its reports: which round is open, what came in, and when it closes.

A round has places at each of its points. Whoever asks is told how many answers each point still needs, and draws one
by lot. Once every point has its answers, nobody new is sent there and the round waits until those under way have dried
up; then it closes, with all that came. After its deadline it closes with what there is, once every point has an answer.
What comes later is taken under its own round until the next one closes, and counts there; what is older is refused.
"""

import json
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from sottovoce.collector.ids import IdIndex
from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.errors import BadInput
from sottovoce.protocol.device import Reports
from sottovoce.server.quantile.conversation import Conversation
from sottovoce.server.quantile.levels import StagedQuantiles
from sottovoce.server.quantile.method import StagedQuantile
from sottovoce.server.quantile.search import Found
from sottovoce.server.quantile.sequence import SequenceQuantile

TAKEN, AGAIN = "taken", "again"
LATE = "the round is over"
AHEAD = "there is no such round yet"
NOWHERE = "the round has no such point"
LETTER = "there is no such letter"
REPLAYED = "this id has answered otherwise"
ENDED = "the study is over"
LONGEST = 10.0  # graces that a round with all its answers waits at most


QuantileOfArrivals = SequenceQuantile | StagedQuantile | StagedQuantiles
Method = TypeVar("Method", bound=QuantileOfArrivals | Conversation[Found])


class Pauses(NamedTuple):
    """When a round closes: after its deadline with what came, or once it has all its answers and no more come.

    That is when none has come for ``grace`` seconds, and at the latest `LONGEST` times that after it had them all, so
    that nobody can hold a round open by sending now and then.
    """

    deadline: float = 3600.0
    grace: float = 1.0

    def are_over(self, filled: float | None, newest: float, now: float) -> bool:
        """Tell whether a round has waited long enough that had all its answers at one time and its last at another."""
        return filled is not None and now >= min(newest + self.grace, filled + LONGEST * self.grace)


class ClosedRound(NamedTuple):
    """What a round came to: its number, and the text from which a fold goes on."""

    round: int
    sums: str


class Fold(Protocol):
    """One group of a study as the fold of its reports; what a round came to is text, and the log keeps it."""

    @property
    def reports(self) -> int:
        """Return how many reports were taken."""

    @property
    def over(self) -> bool:
        """Tell whether nobody is asked any more."""

    @property
    def asked(self) -> dict[str, Any] | None:
        """Return what people are asked now; None while a round waits for answers under way, and at the end."""

    def take(self, id: bytes, round: int, point: int, letter: int, now: float) -> str:
        """Take one report under its own round, or say why not."""

    def restore(self, reports: Reports, now: float) -> None:
        """Take reports that were taken before, in the order of the log; leave out those of rounds that are over."""

    def knows(self, id: bytes, round: int) -> bool:
        """Tell whether an id has answered in a round that still takes answers."""

    def close(self, now: float) -> ClosedRound | None:
        """Close the open round, if it is time, and open the next."""

    def follow(self, closed: ClosedRound, now: float) -> None:
        """Go on from what the open round came to; refuse what it cannot have come to."""

    def estimate(self) -> dict[str, Any]:
        """Return what the group is known by now, as JSON can say it."""


class OpenRound:
    """A round that takes answers: sums, and the ids that have answered in it."""

    def __init__(self, number: int, points: Floats, periods: Floats, wanted: Ints, begun: float) -> None:
        self.number, self.points, self.periods, self.begun = number, points, periods, begun
        self.wanted: list[int] = wanted.tolist()
        self.counts, self.ones = [0] * len(self.wanted), [0] * len(self.wanted)
        self.seen = IdIndex(sum(self.wanted))
        self.filled: float | None = None  # when it had all its answers
        self.newest = begun  # when the last answer came
        self._lacking = sum(self.wanted)

    def take(self, id: bytes, point: int, letter: int, now: float) -> str:
        """Take one report, or say why not; the same report again is known."""
        if point >= len(self.wanted) or not self.wanted[point]:
            return NOWHERE
        if letter > 1:
            return LETTER
        said = 2 * point + letter
        known = self.seen.said(id, said)
        if known is not None:
            return AGAIN if known == said else REPLAYED
        if self.counts[point] < self.wanted[point]:
            self._lacking -= 1
            if not self._lacking:
                self.filled = now
        self.counts[point] += 1
        self.ones[point] += letter
        self.newest = now
        return TAKEN

    def restore(self, reports: Reports, now: float) -> None:
        """Take reports that were taken before, all at once."""
        point, letter = reports["point"].astype(np.int64), reports["letter"].astype(np.int64)
        points = len(self.wanted)
        if not len(reports) or point.max() >= points or letter.max() > 1:
            raise BadInput("the log holds reports that this study does not ask for; use the log and version of it.")
        self.counts = (self.counts + np.bincount(point, minlength=points)).tolist()
        self.ones = (self.ones + np.bincount(point, letter, points).astype(np.int64)).tolist()
        self.seen.fill(np.ascontiguousarray(reports["id"]).tobytes(), (2 * point + letter).astype(np.uint64))
        self._lacking, self.newest = sum(self.needs), now
        if not self._lacking and self.filled is None:
            self.filled = now

    @property
    def needs(self) -> tuple[int, ...]:
        """Return how many answers each point still needs."""
        return tuple(max(wanted - came, 0) for wanted, came in zip(self.wanted, self.counts, strict=True))

    def since(self) -> "OpenRound":
        """Return the round as it goes on once it is closed: nothing came yet, and ids that have answered are known."""
        after = OpenRound(self.number, self.points, self.periods, np.array(self.wanted, np.int64), self.begun)
        after.seen = self.seen
        return after

    def closes(self, now: float, pauses: Pauses) -> bool:
        """Tell whether it is time to close; no point that asks is ever left without an answer."""
        if pauses.are_over(self.filled, self.newest, now):
            return True
        heard = all(came for came, wanted in zip(self.counts, self.wanted, strict=True) if wanted)
        return heard and now >= self.begun + pauses.deadline


class PointFold(Generic[Method]):
    """One group's conversation about points: its open round, and what is late to the one before."""

    def __init__(self, method: Method, pauses: Pauses, now: float) -> None:
        self.method, self.pauses, self.log = method, pauses, method.init()
        self.round: OpenRound | None = None
        self.late: OpenRound | None = None
        self._closed = 0  # reports of closed rounds, and of what was late to them
        self._begin(now)

    def _begin(self, now: float) -> None:
        """Open the next round, if there is one."""
        queries = self.method.query(self.log)
        asked: Any = None if queries is None else queries.messages
        if queries is None or not asked.counts.any():
            self.round = None
            return
        told = np.zeros(len(asked.points)) if asked.periods is None else asked.periods
        self.round = OpenRound(queries.round, asked.points, told, asked.counts[0], now)

    @property
    def reports(self) -> int:
        """Return how many reports were taken."""
        return self._closed + sum(sum(each.counts) for each in (self.round, self.late) if each is not None)

    @property
    def over(self) -> bool:
        """Tell whether nobody is asked any more."""
        return self.round is None

    @property
    def asked(self) -> dict[str, Any] | None:
        """Return the round, its points and periods, and how many answers each point still needs."""
        now = self.round
        if now is None or now.filled is not None:
            return None
        return {
            "round": now.number,
            "points": now.points.tolist(),
            "periods": now.periods.tolist(),
            "needs": now.needs,
        }

    def take(self, id: bytes, round: int, point: int, letter: int, now: float) -> str:
        """Take one report under its own round, or say why not."""
        if self.round is None:
            return ENDED
        if round == self.round.number:
            return self.round.take(id, point, letter, now)
        if self.late is not None and round == self.late.number:
            return self.late.take(id, point, letter, now)
        return LATE if round < self.round.number else AHEAD

    def restore(self, reports: Reports, now: float) -> None:
        """Take reports that were taken before; leave out those of rounds that are over."""
        for each in (self.round, self.late):
            if each is not None and (mine := reports["round"] == each.number).any():
                each.restore(reports[mine], now)

    def knows(self, id: bytes, round: int) -> bool:
        """Tell whether an id has answered in a round that still takes answers."""
        rounds = (each for each in (self.round, self.late) if each is not None)
        return any(each.number == round and each.seen.known(id) is not None for each in rounds)

    def close(self, now: float) -> ClosedRound | None:
        """Close the open round, if it is time, and open the next."""
        open_ = self.round
        if open_ is None or not open_.closes(now, self.pauses):
            return None
        sums = [open_.points.tolist(), open_.counts, open_.ones]
        if self.late is not None and any(self.late.counts):
            sums += [self.late.counts, self.late.ones]
        closed = ClosedRound(open_.number, json.dumps(sums))
        self.follow(closed, now)
        return closed

    def follow(self, closed: ClosedRound, now: float) -> None:
        """Go on from what the open round came to; refuse sums that it cannot have come to."""
        open_ = self.round
        try:
            points, *rows = json.loads(closed.sums)
            came, ones, *late = (np.array(row, np.int64)[None] for row in rows)
        except (ValueError, TypeError, OverflowError):
            points, late = None, []
        whole = open_ is not None and (open_.number, open_.points.tolist()) == (closed.round, points)
        if open_ is None or not whole or len(late) not in (0, 2):
            raise BadInput("the log holds rounds that this study does not ask; use the log and version of it.")
        self.log = self.method.arrive(self.log, ones, came, (late[1], late[0]) if late else None)
        self._closed = self.log.reports
        self._begin(now)
        self.late = None if self.round is None else open_.since()


class QuantileFold(PointFold[QuantileOfArrivals]):
    """One group's conversation about a quantile, or several."""

    def estimate(self) -> dict[str, Any]:
        """Return rounds, reports, and estimate and interval, if it is valid at this time."""
        levels = [
            {"tau": tau, "interval": interval, "estimate": estimate} for tau, interval, estimate in self._levels()
        ]
        found = {"reports": self.reports, "late": self.log.late, "rounds": self.log.rounds, "over": self.over}
        nothing = {"tau": None, "interval": None, "estimate": None}
        return {**found, **(levels[0] if len(levels) == 1 else nothing), "levels": levels}

    def _levels(self) -> list[tuple[float, list[float | None] | None, float | None]]:
        """Return level, interval and estimate of each quantile; of several, intervals that hold jointly."""
        method = self.method
        plans = method.plans if isinstance(method, StagedQuantiles) else (method.plan,)
        ended = method.query(self.log) is None  # else all people may have answered before there is an outcome
        if ended and isinstance(method, StagedQuantiles):
            found = method.outcome(self.log)
            ends = [plain(*interval) for interval in found.intervals]
            return list(zip(found.taus, ends, found.estimates, strict=True))
        if ended and not isinstance(method, StagedQuantiles):
            result = method.outcome(self.log)
            return [(method.plan.tau, plain(*result.interval), result.estimate)]
        if isinstance(method, SequenceQuantile) and (so_far := method.so_far(self.log)) is not None:
            return [(method.plan.tau, plain(*so_far), method.estimate_so_far(self.log))]
        return [(plan.tau, None, None) for plan in plans]


def plain(low: float, high: float) -> list[float | None]:
    """Return ends that JSON can say; an open end is null."""
    return [float(end) if np.isfinite(end) else None for end in (low, high)]

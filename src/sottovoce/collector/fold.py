"""The state of one group as the fold of its reports: which round is open, what came in, and when it closes.

A round has places at each of its points. Whoever asks is told how many answers each point still needs, and draws one
by lot. Once every point has its answers, nobody new is sent there and the round waits for answers under way; then it
closes, with all that came. After its deadline it closes with what there is. What comes later is refused as late.
"""

import json
from typing import Any, NamedTuple, Protocol

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.errors import BadInput
from sottovoce.server.quantile.method import StagedQuantile
from sottovoce.server.quantile.sequence import SequenceQuantile

TAKEN, AGAIN = "taken", "again"
LATE = "the round is over"
AHEAD = "there is no such round yet"
NOWHERE = "the round has no such point"
LETTER = "there is no such letter"
REPLAYED = "this id has answered otherwise"
ENDED = "the study is over"


QuantileOfArrivals = SequenceQuantile | StagedQuantile


class Pauses(NamedTuple):
    """When a round closes: after its deadline with what came, or ``grace`` seconds after it has all its answers."""

    deadline: float = 3600.0
    grace: float = 1.0


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


class QuantileFold:
    """One group's conversation about a quantile, and its open round."""

    def __init__(self, method: QuantileOfArrivals, pauses: Pauses, now: float) -> None:
        self.method, self.pauses, self.log = method, pauses, method.init()
        self.round: OpenRound | None = None
        self._closed = 0  # reports of closed rounds
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
    def reports(self) -> int:
        """Return how many reports were taken."""
        return self._closed + (0 if self.round is None else sum(self.round.counts))

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
        if round != self.round.number:
            return LATE if round < self.round.number else AHEAD
        return self.round.take(id, point, letter, now)

    def close(self, now: float) -> ClosedRound | None:
        """Close the open round, if it is time, and open the next."""
        open_ = self.round
        if open_ is None or not open_.closes(now, self.pauses):
            return None
        sums = json.dumps([open_.points.tolist(), open_.counts, open_.ones])
        closed = ClosedRound(open_.number, sums)
        self.follow(closed, now)
        return closed

    def follow(self, closed: ClosedRound, now: float) -> None:
        """Go on from what the open round came to; refuse sums that it cannot have come to."""
        try:
            points, counts, ones = json.loads(closed.sums)
        except (ValueError, TypeError):
            points, counts, ones = None, [], []
        if self.round is None or self.round.number != closed.round or self.round.points.tolist() != points:
            raise BadInput("the log holds rounds that this study does not ask; use the log and version of it.")
        came = np.array(counts, np.int64)
        self.log = self.method.arrive(self.log, np.array(ones, np.int64)[None], came[None])
        self._closed += int(came.sum())
        self._begin(now)

    def estimate(self) -> dict[str, Any]:
        """Return rounds, reports, and estimate and interval, if it is valid at this time."""
        found: dict[str, Any] = {
            "tau": self.method.plan.tau,
            "reports": self.reports,
            "rounds": self.log.rounds,
            "over": self.over,
            "interval": None,
            "estimate": None,
        }
        if self.round is None:
            result = self.method.outcome(self.log)
            found |= {"interval": plain(result.interval.low, result.interval.high), "estimate": result.estimate}
        elif isinstance(self.method, SequenceQuantile) and (ends := self.method.so_far(self.log)) is not None:
            found |= {"interval": plain(*ends), "estimate": self.method.estimate_so_far(self.log)}
        return found


def plain(low: float, high: float) -> list[float | None]:
    """Return ends that JSON can say; an open end is null."""
    return [float(end) if np.isfinite(end) else None for end in (low, high)]

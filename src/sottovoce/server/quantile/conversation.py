"""A conversation as a method: the state is the log of questions and answers, and replaying it is the fold.

A procedure that adapts its queries is easiest to read as a conversation (a generator that yields `Ask` and is sent the
ones); a store wants a state. Because a procedure depends on nothing but the answers, the log *is* its state, and it
survives any restart. One generator is kept alive beside the newest log, so that a step costs a step and not a replay. A
log whose questions this procedure would not have asked is refused: it is of another study, or of another version.

A round closes once everybody who was asked has answered or is absent, if as many answered as the quorum asks for; else
the absent are asked again, with the same bytes. In the log an absent site has negative numbers in place of its ones.

People who come by themselves may be late: answers to the round before are taken while a round is open, and stand in the
log behind those of the open one. What was asked meanwhile does not depend on them, so every method may use them under
the question that they answer.
"""

from abc import abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar, overload

import numpy as np

from sottovoce.core.arrays import Bools, Floats, Ints
from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import Message, Query, Tally
from sottovoce.server.method import Absent, Queries, Replies
from sottovoce.server.quantile.asking import ABSENT, GONE, LOST, Ask, all_periods, late_answers, said_by_arrivals
from sottovoce.server.quantile.quorum import Quorum

Outcome = TypeVar("Outcome")
Procedure = Generator[Ask, Ints, Outcome]


LEFT = "a site left before the end: what it had said until then counts, and the interval is longer for it"


class Log(NamedTuple):
    """What was asked and answered so far, and what has come in of the round that is still open, site by site."""

    asked: tuple[Ask, ...] = ()
    answered: tuple[Ints, ...] = ()
    open: tuple[tuple[int, ...], ...] = ()

    @property
    def rounds(self) -> int:
        """Return how many rounds are closed."""
        return len(self.answered)

    @property
    def reports(self) -> int:
        """Return how many records have answered in them."""
        return int(sum(int(counts[_row(ones) >= 0].sum()) for counts, ones in self._closed))

    @property
    def spent(self) -> Ints:
        """Return how many records of each site have answered in them, or were lost on the way."""
        taken: list[Any] = [
            np.where((_row(ones) >= 0) | (_row(ones) == LOST), counts.sum(axis=1), 0) for counts, ones in self._closed
        ]
        return np.asarray(np.sum(taken, axis=0), dtype=np.int64)

    @property
    def late(self) -> int:
        """Return how many of these reports came a round late."""
        told = (late_answers(ones, len(ask.points)) for ask, ones in zip(self.asked, self.answered, strict=False))
        return sum(int(late[1].sum()) for late in told if late is not None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what a result should say of who was absent."""
        return (LEFT,) if any(np.any(_row(ones) == GONE) for _, ones in self._closed) else ()

    @property
    def _closed(self) -> list[tuple[Ints, Ints]]:
        """Return how many answered and what was said in each of them."""
        return [
            (ask.counts, ones) if (came := said_by_arrivals(ones)) is None else (came[1], came[0])
            for ask, ones in zip(self.asked, self.answered, strict=False)
        ]


class Round(Sequence[Message | None]):
    """One message a site, or None, of a matrix with a row a site; each is made where it is looked at."""

    speaks: Bools

    def __len__(self) -> int:
        return len(self.speaks)

    @overload
    def __getitem__(self, site: int) -> Message | None: ...
    @overload
    def __getitem__(self, site: slice) -> list[Message | None]: ...
    def __getitem__(self, site: int | slice) -> Message | list[Message | None] | None:
        if isinstance(site, slice):
            return [self[k] for k in range(*site.indices(len(self)))]
        return self.message(site) if self.speaks[site] else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    @abstractmethod
    def message(self, site: int) -> Message:
        """Return the message to or of one site."""


@dataclass(frozen=True, eq=False)
class AskedRound(Round):
    """What a round asks: points, how many records of each site answer at each, which sites are asked, and periods."""

    round: int
    points: Floats
    counts: Ints
    speaks: Bools
    periods: Floats | None = None

    def message(self, site: int) -> Query:
        """Return the query to one site."""
        periods = () if self.periods is None else tuple(self.periods.tolist())
        return Query(self.round, tuple(self.points.tolist()), tuple(self.counts[site].tolist()), periods=periods)


@dataclass(frozen=True, eq=False)
class ToldRound(Round):
    """What the sites said in a round: how many letters were one at each point, and who spoke."""

    round: int
    ones: Ints
    speaks: Bools

    def message(self, site: int) -> Tally:
        """Return the tally of one site."""
        return Tally(self.round, tuple(self.ones[site].tolist()))

    def answers(self, round: int, ask: Ask) -> bool:
        """Tell whether this is what all sites may have said to a question."""
        return (
            self.round == round
            and self.ones.shape == ask.counts.shape
            and np.array_equal(self.speaks, ask.counts.any(axis=1))
            and bool(np.all((self.ones >= 0) & (self.ones <= ask.counts)))
        )


class Conversation(Generic[Outcome]):
    """A procedure as ``init, query, step, outcome``; ``start`` begins it anew.

    Without a quorum nobody may be absent. Rounds are counted on from ``before``, where a study goes on as another one.
    """

    replies: tuple[type[Message], ...] = (Tally,)
    state = Log

    def __init__(self, start: Callable[[], Procedure[Outcome]], quorum: Quorum | None = None, before: int = 0) -> None:
        self._start, self._quorum, self._before = start, quorum, before
        self._live: tuple[Log, Procedure[Outcome], Ask | None, Any] | None = None

    def init(self) -> Log:
        """Return the state before anything was asked."""
        return Log()

    def query(self, log: Log) -> Queries | None:
        """Return what is asked next: every site that has records to ask and has not answered yet; None at the end."""
        ask, _ = self._at(log)
        if ask is None:
            return None
        asked: Bools = np.any(ask.counts, axis=1)
        if log.open:
            asked &= np.array([not said for said in log.open])
        records = int(ask.counts.sum(axis=1)[asked].sum())
        round = AskedRound(self.round_after(log), ask.points, ask.counts, asked, ask.periods)
        return Queries(round.round, round, records)

    def round_after(self, log: Log) -> int:
        """Return the number of the round that is open."""
        return self._before + log.rounds + 1

    def open_counts(self, log: Log) -> Ints:
        """Return how many records of each site the open round asks; none at the end."""
        ask, _ = self._at(log)
        if ask is None:
            raise BadInput("the conversation is over; no round is open.")
        return np.asarray(ask.counts.sum(axis=1))

    def step(self, log: Log, replies: Replies) -> Log:
        """Return the log with these tallies in it; the round closes when all who were asked have answered or are gone.

        It stays open where that leaves less than the quorum, and then the absent are asked again.
        """
        ask, _ = self._at(log)
        if ask is None:
            raise BadInput("the conversation is over; nothing was asked.")
        round = self.round_after(log)
        if len(replies) != len(ask.counts):
            raise BadInput(f"round {round} asked {len(ask.counts)} sites; give one reply for each of them.")
        if isinstance(replies, ToldRound) and not log.open and replies.answers(round, ask):
            return self._forward(log, ask, replies.ones)
        said = list(log.open or ((),) * len(ask.counts))
        for k, (reply, counts) in enumerate(zip(replies, ask.counts.tolist(), strict=True)):
            if isinstance(reply, Absent):
                said[k] = self._missing(reply, round, k, counts, said[k])
            elif reply is not None:
                said[k] = _checked(reply, round, k, counts, () if _is_absent(said[k]) else said[k])
        if any(any(counts) and not ones for ones, counts in zip(said, ask.counts.tolist(), strict=True)):
            return log._replace(open=tuple(said))
        absent = np.array([_is_absent(ones) for ones in said])
        if self._quorum is not None and absent.any() and not self._quorum.closes(absent):
            return log._replace(open=tuple(() if gone else ones for ones, gone in zip(said, absent, strict=True)))
        zeros = (0,) * ask.counts.shape[1]
        ones = np.array([row or zeros for row in said], dtype=np.int64).reshape(ask.counts.shape)
        return self._forward(log, ask, ones)

    def arrive(self, log: Log, ones: Ints, counts: Ints, late: tuple[Ints, Ints] | None = None) -> Log:
        """Return the log after a round that people answered who came by themselves: as many as came, (sites, points).

        More or fewer than were asked for may have come, but at every point that asks somebody at least one. ``late``
        are ones and counts of the round before that came since it closed, at its points; they count under that round.
        """
        ask, _ = self._at(log)
        if ask is None:
            raise BadInput("the conversation is over; nothing was asked.")
        came = np.asarray(np.stack((ones, counts)), dtype=np.int64)
        fits = came.shape == (2, *ask.counts.shape) and bool(np.all((came[0] >= 0) & (came[0] <= came[1])))
        if not fits or bool(np.any((came[1] > 0) != (ask.counts > 0))):
            raise BadInput(
                f"round {self.round_after(log)} asks at {len(ask.points)} points; give ones and answers for each, at "
                "least one answer where somebody is asked and no more ones than answers."
            )
        if late is not None and (after := self._checked_late(log, late)).any():
            came = np.concatenate((came, after), axis=2)
        return self._forward(log, ask, came)

    def _checked_late(self, log: Log, late: tuple[Ints, Ints]) -> Ints:
        """Return late answers, (2, sites, points), or refuse what cannot have come late to the round before."""
        before = log.asked[log.rounds - 1].counts if log.rounds and log.answered[-1].ndim == 3 else None
        shapes = [np.shape(part) for part in late]
        if before is None or shapes != [before.shape] * 2:
            raise BadInput(f"nothing like this can come late to round {self.round_after(log) - 1}; give its points.")
        came = np.asarray(np.stack(late), dtype=np.int64)
        if not bool(np.all((came[0] >= 0) & (came[0] <= came[1]) & ((came[1] == 0) | (before > 0)))):
            raise BadInput(
                f"what came late to round {self.round_after(log) - 1} cannot have answered it; give ones and answers "
                "where somebody was asked, no more ones than answers."
            )
        return came

    def _missing(
        self, reply: Absent, round: int, site: int, counts: list[int], before: tuple[int, ...]
    ) -> tuple[int, ...]:
        """Return what stands for the ones of an absent site, or refuse; what it has said before stays."""
        if self._quorum is None:
            raise BadInput(f"site {site} is absent, and this method needs every site in every round; ask it again.")
        if reply.round != round or not any(counts):
            raise BadInput(f"site {site} cannot be absent from round {round}, which did not ask it so; correct that.")
        if before and not _is_absent(before):
            return before
        return (GONE if reply.gone else LOST if reply.spent else ABSENT,) * len(counts)

    def outcome(self, log: Log) -> Outcome:
        """Return what the conversation came to."""
        ask, outcome = self._at(log)
        if ask is not None:
            raise BadInput("the conversation goes on; answer what it asks first.")
        return outcome  # type: ignore[no-any-return]

    def _forward(self, log: Log, ask: Ask, ones: Ints) -> Log:
        """Close a round; the living generator goes along with the new log."""
        after = Log((*log.asked[: log.rounds], ask), (*log.answered, ones))
        if self._live is not None:
            _, procedure, _, _ = self._live
            self._live = None
            self._live = (after, procedure, *_sent(procedure, ones))
        return after

    def _at(self, log: Log) -> tuple[Ask | None, Any]:
        """Return what is asked after a log, or the outcome; replay it where the living generator is elsewhere."""
        if self._live is None or not _same(self._live[0], log):
            procedure = self._start()
            ask: Ask | None = next(procedure)
            outcome = None
            for logged, ones in zip(log.asked, log.answered, strict=False):
                if ask is None or not _equal(ask, logged):
                    raise BadInput("the log holds questions that this study does not ask; use the log of this study.")
                ask, outcome = _sent(procedure, ones)
            self._live = (log, procedure, ask, outcome)
        return self._live[2], self._live[3]


def _row(ones: Ints) -> Ints:
    """Return of each site the ones at the first point, which are negative where it was absent."""
    return ones[:, 0]


def _is_absent(said: tuple[int, ...]) -> bool:
    """Tell whether this stands for the ones of an absent site."""
    return bool(said) and said[0] < 0


def _sent(procedure: Procedure[Any], ones: Ints) -> tuple[Ask | None, Any]:
    """Send an answer to a procedure; return its next question, or its outcome."""
    try:
        return procedure.send(ones), None
    except StopIteration as end:
        return None, end.value


def _same(one: Log, two: Log) -> bool:
    """Tell whether two logs stand at the same place: they share their answers, whatever has come in of a round."""
    return one.answered is two.answered or (
        len(one.answered) == len(two.answered)
        and all(a is b or np.array_equal(a, b) for a, b in zip(one.answered, two.answered, strict=True))
        and all(a is b or _equal(a, b) for a, b in zip(one.asked, two.asked, strict=False))
    )


def _equal(one: Ask, two: Ask) -> bool:
    """Tell whether two questions are one, bit for bit."""
    here, there = (ask.points.tobytes() + all_periods(ask.points, ask.periods).tobytes() for ask in (one, two))
    return here == there and np.array_equal(one.counts, two.counts)


def _checked(reply: Message, round: int, site: int, counts: list[int], before: tuple[int, ...]) -> tuple[int, ...]:
    """Return a tally's ones, or refuse what cannot be the sum of the letters that were asked for."""
    if not isinstance(reply, Tally) or reply.round != round:
        raise BadInput(f"site {site} sent no tally of round {round}; send the sums of this round's letters.")
    if not any(counts):
        raise BadInput(f"site {site} was not asked in round {round}; it has nothing to send.")
    fits = len(reply.ones) == len(counts) and all(0 <= ones <= n for ones, n in zip(reply.ones, counts, strict=True))
    if not fits:
        raise BadInput(
            f"round {round} asked site {site} at {len(counts)} points; answer with one count of ones for each, "
            "none above what was asked."
        )
    if before and before != reply.ones:
        raise BadInput(f"site {site} has answered round {round} before, and otherwise; a retry sends the same again.")
    return reply.ones

"""The recursion of Liu and Hu as a method: one person a query, since every letter moves the point of its chain."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import Message, PersonQuery, PersonReport
from sottovoce.protocol.regression.blocks import SLOPES
from sottovoce.protocol.regression.decode import alphabets, check_sendable, checked_letters
from sottovoce.protocol.regression.questions import public_words
from sottovoce.server.method import Queries, Replies
from sottovoce.server.regression.liu_hu.fit import LiuHuFit
from sottovoce.server.regression.liu_hu.step import (
    ChainQuery,
    LiuHuState,
    RegressionChains,
    chains_of,
    init,
    query,
    step,
)
from sottovoce.server.regression.study import LiuHuStudy


class LiuHuRounds(NamedTuple):
    """How many rounds were answered, and what they came to."""

    round: int
    run: LiuHuState


@dataclass(frozen=True, eq=False)
class LiuHuMethod:
    """A study, how many people will be asked, and the public key that draws their questions.

    ``first`` is the number of the first of them, and ``before`` the rounds of the conversation before theirs.
    """

    study: LiuHuStudy
    people: int
    key: bytes
    first: int = 0
    before: int = 0

    replies: ClassVar[tuple[type[Message], ...]] = (PersonReport,)
    state: ClassVar[type[LiuHuRounds]] = LiuHuRounds

    @cached_property
    def chains(self) -> RegressionChains:
        """Return the chains, which a tree deals out for so many people."""
        check_sendable(self.study.tables)
        return chains_of(self.study, self.people)

    def init(self) -> LiuHuRounds:
        """Return the state before the first person."""
        return LiuHuRounds(0, init(self.study, self.chains))

    def query(self, state: LiuHuRounds) -> Queries | None:
        """Return what the next person is asked; None once all were."""
        if state.run.people == self.people:
            return None
        asked = self._asked(state)
        slopes = tuple(asked.chosen[: self.study.tables.plan[asked.block, SLOPES]].tolist())
        points = tuple(tuple(point) for point in asked.points.tolist())
        message = PersonQuery(self.first + state.run.people, asked.block, slopes, points)
        return Queries(self.before + state.round + 1, [message], 1)

    def step(self, state: LiuHuRounds, replies: Replies) -> LiuHuRounds:
        """Return the state after the person's letter, or refuse it."""
        round = self.before + state.round + 1
        if state.run.people == self.people or len(replies) != 1:
            raise BadInput(f"round {round} awaits one reply of its person, or is over; send what was asked for.")
        reply = replies[0]
        if reply is None:
            return state
        if not isinstance(reply, PersonReport) or reply.person != self.first + state.run.people:
            raise BadInput(f"round {round} asked another person; answer for the one who was asked.")
        asked = self._asked(state)
        letter = checked_letters((reply.letter,), self._sizes[[asked.block]], round)[0]
        return LiuHuRounds(state.round + 1, step(self.study, self.chains, state.run, asked, int(letter)))

    def outcome(self, state: LiuHuRounds) -> LiuHuFit:
        """Return the fit to all people so far."""
        return LiuHuFit(self.study, self.chains, state.run)

    @cached_property
    def _sizes(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return alphabets(self.study.channel)

    def _asked(self, state: LiuHuRounds) -> ChainQuery:
        """Return what the next person is asked, by their public word."""
        word = public_words(self.key, self.first + state.run.people, 1)[0]
        return query(self.study, self.chains, state.run, word)

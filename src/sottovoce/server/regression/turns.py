"""A regression over sites as a method: a pilot over all, then one recursion that every site goes on with in turn.

A site is sent where the recursion stands, asks its people one after the other, and answers with their letters, from
which the same steps are repeated here: the result is that of one process that asks the sites' people in this order.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sottovoce.core.arrays import Ints
from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import Message, Reports, Tally, TurnQuery
from sottovoce.protocol.regression.dithered.state import follow, init
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.protocol.regression.questions import KEY, public_words
from sottovoce.protocol.regression.turn import most_people, run_to_bytes, unpacked, whose
from sottovoce.server.method import Queries, Replies
from sottovoce.server.quantile.asking import Ask
from sottovoce.server.regression.dithered.fit import DitheredFit
from sottovoce.server.regression.dithered.method import DitheredRounds
from sottovoce.server.regression.method import RegressionMethod, RegressionState
from sottovoce.server.regression.pilot import Guess
from sottovoce.server.regression.result import RegressionResult


@dataclass(eq=False)
class RegressionInTurns(RegressionMethod):
    """A plan, the people of each site, in the order of the sites' turns, and the public key of their questions."""

    replies: ClassVar[tuple[type[Message], ...]] = (Reports, Tally)

    def __post_init__(self) -> None:
        if not self.people or min(self.people) < 1 or len(self.key) != KEY:
            raise BadInput(f"a regression needs people at every site, and a public key of {KEY} bytes; give both.")
        if self.plan.settings.inference != "dithered":
            raise BadInput("over sites a regression is 'dithered'; leave inference out.")
        self._known: tuple[Guess, list[DitheredStudy]] | None = None

    def query(self, state: RegressionState) -> Queries | None:
        """Return the pilot's next query, or whose turn it is; None once all have had theirs."""
        if state.guess is None:
            return self._pilot(state)
        turn = self._turn(state)
        if turn is None:
            return None
        site, first, count = turn
        runs = zip(self._studies(state), state.dithered, strict=True)
        query = TurnQuery(state.round + 1, first, count, tuple(run_to_bytes(study, own.run) for study, own in runs))
        return Queries(state.round + 1, [query if k == site else None for k in range(len(self.people))], count)

    def step(self, state: RegressionState, replies: Replies) -> RegressionState:
        """Return the state after a reply, or refuse it."""
        if state.guess is None:
            return super().step(state, replies)
        turn, round = self._turn(state), state.round + 1
        if turn is None or len(replies) != len(self.people):
            raise BadInput(f"round {round} is over, or awaits another number of replies; send what was asked.")
        site, first, count = turn
        if any(reply is not None and k != site for k, reply in enumerate(replies)):
            raise BadInput(f"somebody answered round {round} who was not asked; send what was asked for.")
        reply = replies[site]
        if reply is None:
            return state
        if not isinstance(reply, Reports) or reply.round != round:
            raise BadInput(f"round {round} was a site's turn; answer with the letters of its people.")
        channels = self.plan.design.channels
        letters = unpacked(reply.letters, self._alphabet)
        if len(letters) != count:
            raise BadInput(f"round {round} asked {count:,} people; answer with one letter for each.")
        words = public_words(self.key, sum(self.people[:site]) + first, count)
        drawn, runs = whose(words, len(channels)), []
        for number, (study, own) in enumerate(zip(self._studies(state), state.dithered, strict=True)):
            mine = drawn == number
            runs.append(DitheredRounds(round, follow(study, own.run, words[mine], letters[mine])))
        turned = list(state.turned or state.searched)
        turned[site] += count
        return state._replace(round=round, dithered=tuple(runs), turned=tuple(turned))

    def outcome(self, state: RegressionState) -> RegressionResult:
        """Return the result: coefficients, intervals, summary."""
        if state.guess is None:
            return super().outcome(state)
        fits = [DitheredFit.of(study, own.run) for study, own in zip(self._studies(state), state.dithered, strict=True)]
        return self.plan.result(fits, sum(state.turned or state.searched), self.private)

    @property
    def _alphabet(self) -> int:
        """Return how many letters the largest alphabet has."""
        return max(channel.letters for channel in self.plan.design.channels)

    def _turn(self, state: RegressionState) -> tuple[int, int, int] | None:
        """Return whose turn it is: the site, the first of its people, and how many of them; None if nobody's."""
        for site, (people, done) in enumerate(zip(self.people, state.turned or state.searched, strict=True)):
            if done < people:
                return site, done, min(people - done, most_people(self._alphabet))
        return None

    def _shares(self, asked: Ask) -> Ints:
        """Return how many people of each site answer at each of the pilot's points: as large as the sites are."""
        counts, ends = asked.counts[0], np.cumsum([0, *self.people])
        shift = np.arange(len(counts)) * 7919 % ends[-1]
        return np.asarray(np.diff((counts * ends[:, None] + shift) // ends[-1], axis=0), dtype=np.int64)

    def _begun(self, state: RegressionState, guess: Guess) -> RegressionState:
        """Return the state in which the first site's turn is about to begin."""
        after = state._replace(guess=guess)
        return after._replace(dithered=tuple(DitheredRounds(0, init(study)) for study in self._studies(after)))

    def _studies(self, state: RegressionState) -> list[DitheredStudy]:
        """Return what the people of each channel take part in, which the pilot's outcome decides; made once."""
        if state.guess is None:
            raise BadInput("the pilot is not over; go on with it.")
        if self._known is None or self._known[0] is not state.guess:
            studies = [study for study in self.plan.studies(state.guess) if isinstance(study, DitheredStudy)]
            self._known = state.guess, studies
        if len(state.dithered) not in (0, len(self._known[1])):
            raise BadInput("the state belongs to another regression; restore it with the plan that it was made by.")
        return self._known[1]

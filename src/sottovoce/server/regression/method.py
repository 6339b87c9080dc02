"""A whole private quantile regression as a method: a pilot among the first people, then the recursion of each channel.

Behind each door stand the people of one channel (several levels that are split have one a level). All doors are asked
in step: a round is over when every one has answered, and is asked again, with the same bytes, until then.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from sottovoce.core.arrays import Ints
from sottovoce.core.errors import BadInput, SearchFailed
from sottovoce.protocol.messages import Message, PeopleReport, PersonReport, PilotQuery, Tally
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.protocol.regression.questions import KEY
from sottovoce.server.method import Queries, Replies
from sottovoce.server.quantile.asking import Ask
from sottovoce.server.regression.dithered.method import BY_SHARE, BatchRule, DitheredMethod, DitheredRounds
from sottovoce.server.regression.liu_hu.method import LiuHuMethod, LiuHuRounds
from sottovoce.server.regression.pilot import USED_UP, Guess, guess_of, out_of_reach, replay
from sottovoce.server.regression.plan import RegressionPlan
from sottovoce.server.regression.result import RegressionResult


class RegressionState(NamedTuple):
    """Rounds so far, the pilot's answers and people, what they led to, and the state of each channel's recursion."""

    round: int
    searched: tuple[int, ...]  # people behind each door who answered the pilot
    answers: tuple[Ints, ...]  # ones at each point, over all doors
    guess: Guess | None = None  # None: the pilot goes on
    dithered: tuple[DitheredRounds, ...] = ()
    liu_hu: tuple[LiuHuRounds, ...] = ()
    open: tuple[bool, ...] = ()  # who has answered the round that is open; empty: nobody
    told: tuple[tuple[int, ...], ...] = ()  # and what, of the pilot
    turned: tuple[int, ...] = ()  # people of each site who have answered, where there are sites; empty: the pilot's


@dataclass(eq=False)
class RegressionMethod:
    """A plan, the people behind each channel's door, and the public key that draws their questions.

    ``private`` says whether the doors draw their noise from their systems' entropy.
    """

    plan: RegressionPlan
    people: Sequence[int]
    key: bytes
    batches: BatchRule = BY_SHARE
    private: bool = True

    replies: ClassVar[tuple[type[Message], ...]] = (PersonReport, PeopleReport, Tally)
    state: ClassVar[type[RegressionState]] = RegressionState

    def __post_init__(self) -> None:
        if len(self.people) != len(self.plan.design.channels) or min(self.people) < 1 or len(self.key) != KEY:
            raise BadInput(
                f"a regression needs people behind a door for each of its {len(self.plan.design.channels)} channels, "
                f"and a public key of {KEY} bytes; give both."
            )
        self._made: tuple[RegressionState, list[DitheredMethod | LiuHuMethod]] | None = None

    def init(self) -> RegressionState:
        """Return the state before anybody was asked."""
        nobody = RegressionState(0, (0,) * len(self.people), ())
        return nobody if self.plan.settings.searches else self._begun(nobody, self.plan.guess(None))

    def query(self, state: RegressionState) -> Queries | None:
        """Return what the people behind each door are asked next; None once all were, or the pilot used them up."""
        if state.guess is None:
            return self._pilot(state)
        done = state.open or (False,) * len(self.people)
        parts = [
            None if told else method.query(own) for told, (method, own) in zip(done, self._channels(state), strict=True)
        ]
        if all(part is None for part in parts):
            return None
        messages = [None if part is None else part.messages[0] for part in parts]
        return Queries(state.round + 1, messages, sum(part.records for part in parts if part is not None))

    def step(self, state: RegressionState, replies: Replies) -> RegressionState:
        """Return the state with a round's replies in it, or refuse them; the round closes when all have come."""
        queries = self.query(state)
        if queries is None or len(replies) != len(queries.messages):
            raise BadInput(
                f"round {state.round + 1} is over, or awaits another number of replies; send what was asked."
            )
        asked = [message is not None for message in queries.messages]
        if any(reply is not None and not wanted for reply, wanted in zip(replies, asked, strict=True)):
            raise BadInput(f"somebody answered round {queries.round} who was not asked; send what was asked for.")
        if state.guess is None:
            return self._found(state, queries, replies)
        runs = [
            method.step(own, [reply]) if wanted else own
            for (method, own), reply, wanted in zip(self._channels(state), replies, asked, strict=True)
        ]
        if all(reply is None for reply in replies):
            return state
        if any(reply is None and wanted for reply, wanted in zip(replies, asked, strict=True)):
            before = state.open or (False,) * len(self.people)
            done = tuple(told or reply is not None for told, reply in zip(before, replies, strict=True))
            return self._with(state._replace(open=done), runs)
        return self._with(state._replace(round=state.round + 1, open=()), runs)

    def outcome(self, state: RegressionState) -> RegressionResult:
        """Return the result: coefficients, intervals, summary."""
        if state.guess is None:
            found = replay(self.plan.design.epsilon, self.plan.settings.taus, state.answers)
            if not isinstance(found, Ask) and (reason := out_of_reach(found)):
                raise SearchFailed(reason)
            raise SearchFailed(
                f"the search for location and scale asked {sum(state.searched):,} people and did not end; "
                "give density and size, public guesses, or more people."
            )
        runs = [own.run.people for own in state.dithered] + [own.run.people for own in state.liu_hu]
        people = sum(state.searched) + sum(runs)
        fits = [method.outcome(own) for method, own in self._channels(state)]
        return self.plan.result(fits, people, self.private)

    def _pilot(self, state: RegressionState) -> Queries | None:
        """Return the pilot's next query, each point's people divided over the doors; None if they are too few."""
        asked = replay(self.plan.design.epsilon, self.plan.settings.taus, state.answers)
        if not isinstance(asked, Ask) and out_of_reach(asked):
            return None
        asked = self._asked(state)
        if not asked.counts[0].any():
            raise SearchFailed(USED_UP)
        shares = self._shares(asked)
        if np.any(shares.sum(axis=1) > np.array(self.people) - np.array(state.searched)):
            return None
        messages = [
            PilotQuery(state.round + 1, first, tuple(asked.points.tolist()), tuple(own.tolist()))
            if own.any() and not told
            else None
            for first, own, told in zip(state.searched, shares, self._told(state), strict=True)
        ]
        return Queries(state.round + 1, messages, sum(sum(query.counts) for query in messages if query is not None))

    def _shares(self, asked: Ask) -> Ints:
        """Return how many people behind each door answer at each of the pilot's points."""
        counts, doors = asked.counts[0], np.arange(len(self.people))[:, None]
        return np.asarray((counts + (doors + np.arange(len(counts))) % len(doors)) // len(doors), dtype=np.int64)

    def _told(self, state: RegressionState) -> tuple[tuple[int, ...], ...]:
        """Return what each door has said in the pilot's open round."""
        return state.told or ((),) * len(self.people)

    def _found(self, state: RegressionState, queries: Queries, replies: Replies) -> RegressionState:
        """Return the state after the pilot's replies."""
        heard, missing = list(self._told(state)), False
        for door, (query, reply) in enumerate(zip(queries.messages, replies, strict=True)):
            if not isinstance(query, PilotQuery):
                continue
            if reply is None:
                missing = True
                continue
            told = reply.ones if isinstance(reply, Tally) and reply.round == queries.round else ()
            if len(told) != len(query.counts) or not all(
                type(one) is int and 0 <= one <= count for one, count in zip(told, query.counts, strict=True)
            ):
                raise BadInput(
                    f"round {queries.round} asked at {len(query.counts)} points; answer with one count of ones for "
                    "each, none above what was asked."
                )
            heard[door] = told
        if all(reply is None for reply in replies):
            return state
        if missing:
            return state._replace(told=tuple(heard))
        ones = np.asarray(np.sum([told for told in heard if told], axis=0), dtype=np.int64)
        searched = np.array(state.searched) + self._shares(self._asked(state)).sum(axis=1)
        answers = (*state.answers, ones)
        after = state._replace(round=state.round + 1, searched=tuple(searched.tolist()), answers=answers, told=())
        settings = self.plan.settings
        found = replay(self.plan.design.epsilon, settings.taus, after.answers)
        if isinstance(found, Ask) or out_of_reach(found):
            return after
        return self._begun(after, self.plan.guess(guess_of(found, settings.taus, self.plan.p)))

    def _asked(self, state: RegressionState) -> Ask:
        """Return what the pilot asks next."""
        asked = replay(self.plan.design.epsilon, self.plan.settings.taus, state.answers)
        if not isinstance(asked, Ask):
            raise BadInput("the pilot is over, but the state does not say what it found; begin anew.")
        return asked

    def _begun(self, state: RegressionState, guess: Guess) -> RegressionState:
        """Return the state in which every channel's recursion is about to begin."""
        after = state._replace(guess=guess)
        runs: list[Any] = [method.init() for method in self._methods(after)]
        return self._with(after, runs)

    def _with(self, state: RegressionState, runs: Sequence[Any]) -> RegressionState:
        """Return a state with the recursions of its channels."""
        if self.plan.settings.inference == "dithered":
            return state._replace(dithered=tuple(runs))
        return state._replace(liu_hu=tuple(runs))

    def _channels(self, state: RegressionState) -> list[tuple[Any, Any]]:
        """Return each channel's method with its state."""
        runs = state.dithered if self.plan.settings.inference == "dithered" else state.liu_hu
        methods = self._methods(state)
        if len(runs) != len(methods):
            raise BadInput("the state belongs to another regression; restore it with the plan that it was made by.")
        return list(zip(methods, runs, strict=True))

    def _methods(self, state: RegressionState) -> list[DitheredMethod | LiuHuMethod]:
        """Return the method of each channel, which the pilot's outcome decides; made once."""
        if self._made is not None and self._made[0].guess is state.guess:
            return self._made[1]
        if state.guess is None:
            raise BadInput("the pilot is not over; go on with it.")
        made: list[DitheredMethod | LiuHuMethod] = []
        before = len(state.answers)
        for study, people, first in zip(self.plan.studies(state.guess), self.people, state.searched, strict=True):
            if isinstance(study, DitheredStudy):
                made.append(DitheredMethod(study, people - first, self.key, self.batches, first, before))
            else:
                made.append(LiuHuMethod(study, people - first, self.key, first, before))
        self._made = state, made
        return made

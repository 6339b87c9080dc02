"""The confidence sequence as ``init, query, step, outcome``: from a plan and the sites' tallies to a result."""

import math
from collections.abc import Generator, Sequence
from typing import Self

from sottovoce.core.arrays import Ints
from sottovoce.core.errors import BadInput
from sottovoce.server.quantile.asking import Ask
from sottovoce.server.quantile.certified.protocol import CertifiedStudy
from sottovoce.server.quantile.certified.sequence import Sequel, sequence_protocol
from sottovoce.server.quantile.conversation import Conversation, Log
from sottovoce.server.quantile.departed import asked_so_far, plan_rest
from sottovoce.server.quantile.plan import QuantilePlan
from sottovoce.server.quantile.quorum import quorum_of
from sottovoce.server.quantile.result import QuantileResult
from sottovoce.server.quantile.solutions import SequenceSolution

OPEN = "an end has no certificate yet: more records, or public bounds=, would give it one"


class SequenceQuantile:
    """One quantile whose interval holds at every time; its state is the log of questions and answers.

    ``coin`` is the public key of the lottery that says which site answers, ``until`` the length at which the questions
    end, and ``after`` what an earlier sequence left behind. A round closes without absent sites once ``quorum`` have
    answered: a number of sites, or a part of the shares.
    """

    replies, state = Conversation.replies, Log

    def __init__(
        self,
        plan: QuantilePlan,
        level: float = 0.95,
        coin: bytes = b"",
        until: float | None = None,
        after: Sequel | None = None,
        quorum: float = 1,
    ) -> None:
        self._plan, self._level, self._coin, self._until, self._after = plan, level, coin, until, after
        study = CertifiedStudy(plan.tau, plan.crowd, 1 - level, coin, plan.bounds, plan.scale)

        self._ends: tuple[float, float] | None = None
        self._estimate: float | None = None

        def enough(low: float, high: float, estimate: float) -> bool:
            self._estimate = plan.rounded(estimate)
            self._ends = low, high = plan.rounded(low, -1), plan.rounded(high, 1)
            censored = plan.roster.unit.censored
            settled = censored is not None and censored.settled(low, high)
            return until is not None and (settled or high - low <= until)

        def begun() -> Generator[Ask, Ints, Sequel]:
            self._ends = self._estimate = None
            return sequence_protocol(study, enough, after)

        self._talk: Conversation[Sequel] = Conversation(begun, quorum_of(plan.crowd.shares, quorum), plan.rounds_before)
        self.init, self.query, self.step = self._talk.init, self._talk.query, self._talk.step
        self.arrive = self._talk.arrive

    def so_far(self, log: Log) -> tuple[float, float] | None:
        """Return the interval after the rounds of a log; None before there is one."""
        self.query(log)  # brings the conversation there
        return self._ends

    def estimate_so_far(self, log: Log) -> float | None:
        """Return the estimate after the rounds of a log; None before there is one."""
        self.query(log)  # brings the conversation there
        return self._estimate

    @property
    def plan(self) -> QuantilePlan:
        """Return the plan."""
        return self._plan

    def without(self, log: Log, gone: Sequence[str], quorum: float = 1) -> Self:
        """Return the study that goes on, from its own beginning, over the sites that stay; refuse what cannot.

        A sequence that goes on from an earlier one is about all its sites, and is refused.
        """
        if self._after is not None:
            raise BadInput("a sequence that goes on from an earlier one needs all its sites; begin a new study.")
        round, asked = asked_so_far(self._talk, log)
        rest = plan_rest(self._plan, asked, round, gone, certified=True, confidence=self._level)
        return type(self)(rest, self._level, self._coin + round.to_bytes(4, "big"), self._until, None, quorum)

    def outcome(self, log: Log) -> QuantileResult:
        """Return the result; reports and rounds are those of this conversation, the trajectory is the whole."""
        sequel = self._talk.outcome(log)
        known = all(map(math.isfinite, sequel.interval(1 - self._level)))
        return QuantileResult(
            plan=self._plan,
            solution=SequenceSolution(sequel),
            level=self._level,
            method="sequence",
            rounds=log.rounds,
            reports=log.reports,
            private=all(map(math.isfinite, self._plan.budgets)),
            warnings=(*self._plan.warnings, *(() if known else (OPEN,)), *log.warnings),
        )

"""The default method as ``init, query, step, outcome``: from a plan and the sites' tallies to a result."""

import math
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Self

from sottovoce.core.arrays import Ints
from sottovoce.inference.quantile.error_budgets import interval
from sottovoce.server.quantile.asking import Ask, QueryAllocator
from sottovoce.server.quantile.certified.protocol import Certificate
from sottovoce.server.quantile.conversation import Conversation, Log
from sottovoce.server.quantile.departed import asked_so_far, plan_rest
from sottovoce.server.quantile.plan import QuantilePlan
from sottovoce.server.quantile.quorum import quorum_of
from sottovoce.server.quantile.result import QuantileResult
from sottovoce.server.quantile.scarce import Fitted
from sottovoce.server.quantile.search import Found
from sottovoce.server.quantile.solutions import staged_solution
from sottovoce.server.quantile.staged import Local, StagedStudy, certify, staged_protocol

Left = Local | Fitted | Certificate
OPEN = "an end has no certificate: the records could not tell; public bounds= would limit it"
TURNED = {
    False: "few records: the interval is certified, which holds for every distribution and is longer",
    True: "the answers did not fit a smooth density around the quantile (ties, an atom, a gap or a valley), so the "
    "rest of the records was asked for a certified interval, which holds for every distribution",
}


FENCED = (
    "the last answers did not fit a smooth density around the quantile, so the interval goes on to the next points "
    "whose answers lie clearly beyond the level"
)


SCARCELY = (
    "records are scarce: the interval takes the density to be smooth around the quantile (no mode, edge or atom "
    'nearby); compare with method="certified", which holds for every distribution'
)


AWAY = (
    "some sites stayed away from some stages: their other answers stand in for what they missed, and the interval is "
    "longer for it"
)


class StagedQuantile:
    """One quantile by stages, or certified; its state is the log of questions and answers.

    ``coin`` is the public key of the lottery that says which site answers, where the study is certified; without
    ``watch`` stages do not look at the shape of the distribution. A round closes without absent sites once ``quorum``
    have answered: a number of sites, or a part of the shares.
    """

    replies, state = Conversation.replies, Log

    def __init__(
        self,
        plan: QuantilePlan,
        level: float = 0.95,
        coin: bytes = b"",
        certified: bool = False,
        watch: bool = True,
        quorum: float = 1,
    ) -> None:
        self._plan, self._level, self._coin, self._watch, self._quorum = plan, level, coin, watch, quorum
        self._method = "certified" if certified else "staged"
        study = replace(staged_study(plan, level, coin), watch=watch, phases=watch)
        self._talk: Conversation[Local | Fitted | Certificate] = Conversation(
            lambda: default_protocol(study, certified), quorum_of(plan.crowd.shares, quorum), plan.rounds_before
        )
        self.init, self.query, self.step = self._talk.init, self._talk.query, self._talk.step
        self.arrive = self._talk.arrive

    @property
    def plan(self) -> QuantilePlan:
        """Return the plan."""
        return self._plan

    def without(self, log: Log, gone: Sequence[str], quorum: float = 1) -> Self:
        """Return the study that goes on, from its own beginning, over the sites that stay; refuse what cannot."""
        round, asked = asked_so_far(self._talk, log)
        certified = self._method == "certified"
        rest = plan_rest(self._plan, asked, round, gone, certified=certified, confidence=self._level)
        return type(self)(rest, self._level, self._coin + round.to_bytes(4, "big"), certified, self._watch, quorum)

    def outcome(self, log: Log) -> QuantileResult:
        """Return the result; it protects the records if every site has a budget and draws its noise from the system."""
        local = self._talk.outcome(log)
        return QuantileResult(
            plan=self._plan,
            solution=staged_solution(local),
            level=self._level,
            method="certified" if isinstance(local, Certificate) else self._method,
            rounds=log.rounds,
            reports=log.reports,
            private=all(map(math.isfinite, self._plan.budgets)),
            warnings=self._plan.warnings + staged_warnings(local, self._method) + log.warnings,
        )


def staged_study(plan: QuantilePlan, level: float, coin: bytes) -> StagedStudy:
    """Return what the design needs to know of a plan."""
    public = (plan.tau, plan.crowd, plan.bounds, plan.scale, 1 - level, coin)
    return StagedStudy(*public, phases=True, mixed=plan.roster.mixed)


def default_protocol(study: StagedStudy, certified: bool, found: Found | None = None) -> Generator[Ask, Ints, Left]:
    """Run the stages, or certify from the start."""
    if certified:
        return (yield from certify(QueryAllocator(study.crowd), study, found))
    return (yield from staged_protocol(study, found))


def staged_warnings(local: Left, method: str) -> tuple[str, ...]:
    """Return what the stages noticed."""
    if isinstance(local, Certificate):
        known = all(map(math.isfinite, interval(local.evidence, local.success, local.alpha)))
        turned = () if method == "certified" else (TURNED[bool(local.reports_before)],)
        return turned if known else (*turned, OPEN)
    if local.fence is not None:
        return (FENCED,)
    if isinstance(local, Fitted):
        return (SCARCELY,)
    if local.stages[0].shares is not None:
        return (AWAY,)
    if local.dips:
        return ('the density seems to dip at the quantile, as between two modes: compare with method="certified"',)
    return ()

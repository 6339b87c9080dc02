"""The default method as ``init, query, step, outcome``: from a plan and the sites' tallies to a result."""

import math

from sottovoce.server.quantile.conversation import Conversation, Log
from sottovoce.server.quantile.plan import QuantilePlan
from sottovoce.server.quantile.result import QuantileResult
from sottovoce.server.quantile.scarce import Fitted
from sottovoce.server.quantile.solutions import staged_solution
from sottovoce.server.quantile.staged import Local, StagedStudy, staged_protocol


class StagedQuantile:
    """One quantile by stages; its state is the log of questions and answers."""

    replies, state = Conversation.replies, Log

    def __init__(self, plan: QuantilePlan, level: float = 0.95, robust: bool = False) -> None:
        self._plan, self._level, self._robust = plan, level, robust
        study = StagedStudy(plan.tau, plan.crowd, plan.bounds, plan.scale, robust)
        self._talk: Conversation[Local | Fitted] = Conversation(lambda: staged_protocol(study))
        self.init, self.query, self.step = self._talk.init, self._talk.query, self._talk.step

    def outcome(self, log: Log) -> QuantileResult:
        """Return the result; it protects the records if every site has a budget and draws its noise from the system."""
        local = self._talk.outcome(log)
        return QuantileResult(
            plan=self._plan,
            solution=staged_solution(local),
            level=self._level,
            method="staged",
            rounds=log.rounds,
            reports=log.reports,
            private=all(map(math.isfinite, self._plan.budgets)),
            warnings=self._plan.warnings + staged_warnings(local, self._robust),
        )


def staged_warnings(local: Local | Fitted, robust: bool) -> tuple[str, ...]:
    """Return what the stages noticed."""
    if isinstance(local, Fitted):
        return ("records are scarce: the interval takes the density to be smooth around the quantile, no edge nearby",)
    if local.dips and not robust:
        return ("the density seems to dip at the quantile, as between two modes: compare with robust=True",)
    return ()

"""Value at risk and shortfall as ``init, query, step, outcome``: from a plan and the sites' tallies to a result."""

import math
from dataclasses import replace

from sottovoce.server.quantile.certified.protocol import Certificate
from sottovoce.server.quantile.conversation import Conversation, Log
from sottovoce.server.quantile.method import staged_warnings
from sottovoce.server.quantile.result import QuantileResult
from sottovoce.server.quantile.shortfall.plan import ShortfallPlan
from sottovoce.server.quantile.shortfall.protocol import Parted, ShortfallStudy, shortfall_protocol
from sottovoce.server.quantile.shortfall.result import ShortfallResult
from sottovoce.server.quantile.solutions import staged_solution


class StagedShortfall:
    """A quantile by stages, or certified, and the mean beyond it; its state is the log of questions and answers.

    Every site answers every round. ``coin`` is the public key of the lottery that says which site answers.
    """

    replies, state = Conversation.replies, Log

    def __init__(self, plan: ShortfallPlan, coin: bytes = b"") -> None:
        self._plan = plan
        study = ShortfallStudy(plan.quantile, plan.upper, plan.part, 1 - plan.level, coin, plan.certified)
        self._talk: Conversation[Parted] = Conversation(lambda: shortfall_protocol(study))
        self.init, self.query, self.step = self._talk.init, self._talk.query, self._talk.step

    @property
    def plan(self) -> ShortfallPlan:
        """Return the plan."""
        return self._plan

    def outcome(self, log: Log) -> ShortfallResult:
        """Return the result; it protects the records if every site has a budget and draws its noise from the system."""
        told, plan, method = self._talk.outcome(log), self._plan.quantile, self._plan.method
        private = all(map(math.isfinite, plan.budgets))
        quantile = QuantileResult(
            plan=replace(plan, warnings=()),
            solution=staged_solution(told.quantile),
            level=self._plan.level,
            method="certified" if isinstance(told.quantile, Certificate) else method,
            rounds=log.rounds,
            reports=told.quantile_reports,
            private=private,
            warnings=staged_warnings(told.quantile, method),
        )
        return ShortfallResult(
            value_at_risk=quantile,
            excess=told.excess,
            upper=self._plan.upper,
            split=self._plan.part,
            level=self._plan.level,
            rounds=log.rounds,
            reports=log.reports,
            private=private,
            warnings=(*self._plan.warnings, *quantile.warnings),
        )

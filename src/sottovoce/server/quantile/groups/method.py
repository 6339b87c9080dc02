"""Groups as ``init, query, step, outcome``: from a plan and the sites' tallies to a result for every group."""

import math

from sottovoce.server.quantile.certified.protocol import Certificate
from sottovoce.server.quantile.conversation import Conversation, Log
from sottovoce.server.quantile.groups.plan import GroupsPlan
from sottovoce.server.quantile.groups.protocol import groups_protocol
from sottovoce.server.quantile.groups.result import GroupQuantilesResult
from sottovoce.server.quantile.method import Left, staged_study, staged_warnings
from sottovoce.server.quantile.result import QuantileResult
from sottovoce.server.quantile.solutions import staged_solution


class StagedGroups:
    """A quantile for every group; its state is the log of questions and answers.

    ``coin`` is the public key of the lottery that says which site answers, where a group is certified.
    """

    replies, state = Conversation.replies, Log

    def __init__(self, plan: GroupsPlan, coin: bytes = b"") -> None:
        self._plan = plan
        studies = [
            staged_study(each, plan.each, coin + index.to_bytes(2, "big")) for index, each in enumerate(plan.plans)
        ]
        self._talk: Conversation[list[Left]] = Conversation(
            lambda: groups_protocol(
                studies, plan.members, plan.whole.crowd, [name in plan.exact for name in plan.names]
            )
        )
        self.init, self.query, self.step = self._talk.init, self._talk.query, self._talk.step

    def outcome(self, log: Log) -> GroupQuantilesResult:
        """Return the results."""
        plan, spent = self._plan, log.spent
        results = tuple(
            QuantileResult(
                plan=each,
                solution=staged_solution(left),
                level=plan.each,
                method="certified" if isinstance(left, Certificate) else "staged",
                rounds=log.rounds,
                reports=int(spent[own].sum()),
                private=all(map(math.isfinite, each.budgets)),
                warnings=staged_warnings(left, "certified" if plan.certified else "staged"),
            )
            for each, own, left in zip(plan.plans, plan.members, self._talk.outcome(log), strict=True)
        )
        return GroupQuantilesResult(
            names=plan.names,
            results=results,
            level=plan.level,
            simultaneous=plan.simultaneous,
            shrinkage=plan.shrinkage,
            by=plan.by,
            left_out=plan.left_out,
            said=plan.warnings,
        )

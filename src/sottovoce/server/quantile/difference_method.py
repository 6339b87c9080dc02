"""The difference of a quantile between two groups of sites as a method: both groups are asked side by side."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from sottovoce.core.errors import BadInput
from sottovoce.protocol.card import Card
from sottovoce.protocol.messages import Message
from sottovoce.server.method import Queries, Replies
from sottovoce.server.quantile.conversation import Conversation, Log
from sottovoce.server.quantile.difference import Difference
from sottovoce.server.quantile.method import StagedQuantile
from sottovoce.server.quantile.plan import QuantilePlan
from sottovoce.server.quantile.sequence import SequenceQuantile

BOTH = ("first", "second")
LISTED = ("sites", "taus", "budgets", "flips", "shares", "sizes")  # of a card: one entry a site


class Talks(NamedTuple):
    """The logs of both groups."""

    first: Log
    second: Log


class DifferenceQuantile:
    """Two quantiles over different sites; those of the first group stand first among the replies.

    Each group has rounds of its own, which begin together: a round asks those who have come to it.
    """

    replies, state = Conversation.replies, Talks

    def __init__(self, first: StagedQuantile | SequenceQuantile, second: StagedQuantile | SequenceQuantile) -> None:
        self._groups = first, second
        self._split = len(first.plan.names)

    @property
    def plans(self) -> tuple[QuantilePlan, QuantilePlan]:
        """Return the plan of each group."""
        return self._groups[0].plan, self._groups[1].plan

    def init(self) -> Talks:
        """Return the state before anything was asked."""
        return Talks(*(group.init() for group in self._groups))

    def query(self, state: Talks) -> Queries | None:
        """Return what is asked next, of those who have not come further; None once both groups are done."""
        asked = self._asked(state)
        rounds = [queries.round for queries in asked if queries is not None]
        if not rounds:
            return None
        messages: list[Message | None] = []
        for queries, plan in zip(asked, self.plans, strict=True):
            now = queries is not None and queries.round == min(rounds)
            messages += queries.messages if queries is not None and now else [None] * len(plan.names)
        records = sum(each.records for each in asked if each is not None and each.round == min(rounds))
        return Queries(min(rounds), messages, records)

    def step(self, state: Talks, replies: Replies) -> Talks:
        """Return the state after some replies to what was asked; refuse replies that do not fit."""
        asked = self._asked(state)
        rounds = [queries.round for queries in asked if queries is not None]
        if not rounds or len(replies) != sum(len(plan.names) for plan in self.plans):
            raise BadInput("the study is over, or awaits another number of replies; send what was asked.")
        logs = []
        parts = replies[: self._split], replies[self._split :]
        for group, log, queries, own in zip(self._groups, state, asked, parts, strict=True):
            if queries is not None and queries.round == min(rounds):
                logs.append(group.step(log, own))
            elif any(reply is not None for reply in own):
                raise BadInput(f"somebody answered round {min(rounds)} who was not asked; send what was asked for.")
            else:
                logs.append(log)
        return Talks(*logs)

    def outcome(self, state: Talks) -> Difference:
        """Return the difference of both results."""
        first, second = (group.outcome(log) for group, log in zip(self._groups, state, strict=True))
        return Difference(first, second, first.level)

    def _asked(self, state: Talks) -> list[Queries | None]:
        return [group.query(log) for group, log in zip(self._groups, state, strict=True)]


def joined_card(plans: Sequence[QuantilePlan], method: str) -> Card:
    """Return one study card for both groups, in which every site finds its own line."""
    first, second = (plan.card(method) for plan in plans)
    if any(first.terms[name] != second.terms[name] for name in ("unit", "resolution")):
        raise BadInput("the two groups hold values of different kinds or steps; compare like with like.")
    terms: dict[str, Any] = {name: first.terms[name] + second.terms[name] for name in LISTED}
    groups = dict(zip(BOTH, (list(plan.names) for plan in plans), strict=True))
    return msgspec.structs.replace(first, terms={**first.terms, **terms, "groups": groups})

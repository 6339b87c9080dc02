"""One round in which each site sends order statistics or a cell, and the server takes a rank of all votes."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.protocol.messages import CellReport, Message, OrderQuery, OrderReport
from sottovoce.server.conformal.coverage.choose import lower_neighbour
from sottovoce.server.conformal.one_round import OneRound
from sottovoce.server.conformal.plan import ConformalPlan, Participants
from sottovoce.server.conformal.result import ConformalThreshold


class Votes(NamedTuple):
    """The values of each site, in the order of the sites; none where it has not answered."""

    values: tuple[tuple[float, ...], ...]


class TakenRank(NamedTuple):
    """The rank that is taken of all votes, and with which probability it is the upper of two."""

    rank: int
    chance: float = 1.0


def take_rank(plan: ConformalPlan, word: int | None = None) -> TakenRank:
    """Return the rank of a plan; with a random 64-bit word, that or the one below, so that coverage is exact."""
    choice = plan.choice
    if word is None:
        return TakenRank(choice.rank)
    lower = lower_neighbour(plan.kinds, plan.number, choice)
    chance = min((1 - plan.settings.alpha - lower.mean) / (choice.mean - lower.mean), 1.0)
    return TakenRank(lower.rank if word >= int(chance * 2.0**64) else choice.rank, chance)


class VotesMethod(OneRound[Votes, tuple[float, ...], ConformalThreshold]):
    """The quantile of quantiles: one value or a few of each site, each with its votes, and a rank of them all.

    ``edges`` are none without privacy; ``taken`` is the rank to take, where it was drawn (`take_rank`), and the plan's
    own otherwise.

    >>> from sottovoce.server.conformal.plan import SiteFacts, plan
    >>> from sottovoce.server.conformal.settings import check_settings
    >>> settings = check_settings(0.1, "marginal", 0.1, "closest", 1, False, "sparse-vector", False)
    >>> who = Participants(("north", "south"), (SiteFacts(99, math.inf), SiteFacts(99, math.inf)))
    >>> method = VotesMethod(plan(who.facts, settings, 0), who)
    >>> method.query(method.init()).messages
    [OrderQuery(orders=(89,)), OrderQuery(orders=(89,))]
    >>> state = method.step(method.init(), [OrderReport((1.5,)), OrderReport((1.75,))])
    >>> method.outcome(state).value
    1.75
    """

    replies = (OrderReport, CellReport)
    state = Votes

    def __init__(
        self, plan: ConformalPlan, who: Participants, edges: tuple[float, ...] = (), taken: TakenRank | None = None
    ) -> None:
        super().__init__(plan.queries(edges), [fact.size for fact in plan.facts])
        self._plan, self._who, self._edges = plan, who, edges
        self._taken = take_rank(plan) if taken is None else taken

    def init(self) -> Votes:
        """Return the state before anything was asked."""
        return Votes(((),) * len(self.messages))

    def heard(self, state: Votes) -> Sequence[bool]:
        """Tell which sites have answered."""
        return [bool(values) for values in state.values]

    def read(self, place: int, reply: Message) -> tuple[float, ...]:
        """Return the values of a site: scores of the ranks it was asked for, or the upper edge of its cell."""
        query, size = self.messages[place], self._sizes[place]
        if isinstance(query, OrderQuery):
            if not isinstance(reply, OrderReport) or not _are_ranks(reply.values, query.orders, size):
                self.refuse(place, f"{len(query.orders)} scores in the order of the ranks asked")
            return reply.values
        if not isinstance(reply, CellReport) or not 0 <= reply.cell <= len(self._edges):
            self.refuse(place, f"a cell from 0 to {len(self._edges)}")
        return (math.inf if reply.cell == len(self._edges) else self._edges[reply.cell],)

    def added(self, state: Votes, said: Sequence[tuple[float, ...] | None]) -> Votes:
        """Return the state with what some sites have said."""
        return Votes(tuple(old if new is None else new for old, new in zip(state.values, said, strict=True)))

    def outcome(self, state: Votes) -> ConformalThreshold:
        """Return the threshold: a rank of all votes."""
        self.finished(state)
        values = np.array([value for said in state.values for value in said])
        votes = np.repeat(self._plan.votes, [len(said) for said in state.values])
        unbounded = (name for name, said in zip(self._who.names, state.values, strict=True) if math.inf in said)
        return self.promised(weighted_rank(values, votes, self._taken.rank), tuple(unbounded))

    def promised(self, value: float = math.nan, unbounded: tuple[str, ...] = ()) -> ConformalThreshold:
        """Return the threshold as it will be, but for its value, or with it."""
        return ConformalThreshold(
            value=value,
            settings=self._plan.settings,
            plan=self._plan,
            taken=self._taken.rank,
            chance=self._taken.chance,
            spent=self._plan.spent(),
            edges=self._edges,
            unbounded=unbounded,
            **self._who._asdict(),
        )


def _are_ranks(values: tuple[float, ...], orders: tuple[int, ...], size: int) -> bool:
    """Tell whether values can be the scores of some ranks: finite where the site has so many, and in their order."""
    if len(values) != len(orders):
        return False
    for value, order in zip(values, orders, strict=True):
        if not (math.isfinite(value) if order <= size else value == math.inf):
            return False
    if len(orders) == 1:
        return True
    by_rank = [value for _, value in sorted(zip(orders, values, strict=True))]
    return by_rank == sorted(by_rank)


def weighted_rank(values: Floats, votes: Ints, rank: int) -> float:
    """Return the smallest value at or below which there are at least ``rank`` votes; minus infinity for rank 0."""
    if rank < 1:
        return -np.inf
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(votes[order])
    if rank > reached[-1]:
        raise ValueError(f"there are {int(reached[-1])} votes, and rank {rank} was asked for")
    return float(values[order][np.searchsorted(reached, rank)])

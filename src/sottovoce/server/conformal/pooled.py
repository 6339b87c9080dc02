"""A threshold from summed answers: counts of many sites at one edge each, one question a record, or a secure sum.

A scan goes from the highest edge of the public grid down and stops at the first count that exceeds its threshold; the
cell above that edge is the answer, and the lowest cell if none does. A cell stands for its upper edge; the highest has
none.
"""

import functools
import math
from abc import abstractmethod
from collections.abc import Sequence
from itertools import accumulate
from typing import Generic, NamedTuple, TypeVar

from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import ROUND, CoverageCount, CoverageQuery, Message, Query, SumQuery, SumShare, Tally
from sottovoce.protocol.selection.geometric import NoisyCount
from sottovoce.server.conformal.coverage.counted import choose_counts
from sottovoce.server.conformal.coverage.pooled import Guarantee, PooledChoice
from sottovoce.server.conformal.coverage.pooled_modes import choose_aggregate, choose_local
from sottovoce.server.conformal.one_round import OneRound
from sottovoce.server.conformal.plan import Participants, SiteFacts
from sottovoce.server.conformal.pooled_result import PooledThreshold
from sottovoce.server.conformal.report import FARTHEST
from sottovoce.server.conformal.settings import COUNTED, ConformalSettings

WORD = 1 << 32  # shares of a sum are integers modulo this


def plan_pooled(facts: Sequence[SiteFacts], settings: ConformalSettings, bins: int, study: bytes = b"") -> PooledChoice:
    """Decide what to count, and where the counts are large enough, from public numbers alone.

    ``study``, the identity of the study, decides which site counts at which edge.
    """
    return _chosen(tuple(facts), settings, bins, study if settings.mechanism == COUNTED else b"")


@functools.lru_cache(maxsize=32)
def _chosen(facts: tuple[SiteFacts, ...], settings: ConformalSettings, bins: int, study: bytes) -> PooledChoice:
    """Decide the same question once."""
    guarantee: Guarantee = "training-conditional" if settings.conditional else "marginal"
    sizes, epsilons = [fact.size for fact in facts], [fact.epsilon for fact in facts]
    if settings.mechanism == COUNTED:
        return choose_counts(sizes, epsilons, bins, settings.alpha, guarantee, settings.delta, study)
    if settings.mechanism == "local":
        return choose_local(sizes, epsilons, bins, settings.alpha, guarantee, settings.delta)
    # one noise protects the sum, so the smallest budget is everybody's
    return choose_aggregate(sum(sizes), len(sizes), min(epsilons), bins, settings.alpha, guarantee, settings.delta)


State = TypeVar("State")


class PooledMethod(OneRound[State, tuple[int, ...], PooledThreshold], Generic[State]):
    """One round in which all sites' answers are summed before a cell is read."""

    def __init__(
        self, choice: PooledChoice, settings: ConformalSettings, who: Participants, edges: tuple[float, ...]
    ) -> None:
        super().__init__(self.asked(choice, edges), [fact.size for fact in who.facts])
        self._choice, self._settings, self._who, self._edges = choice, settings, who, edges

    @staticmethod
    @abstractmethod
    def asked(choice: PooledChoice, edges: tuple[float, ...]) -> list[Message | None]:
        """Return what each site is asked."""

    @abstractmethod
    def cell(self, state: State) -> int:
        """Return the cell that all answers together point at."""

    def outcome(self, state: State) -> PooledThreshold:
        """Return the threshold: the upper edge of the cell that the sums point at."""
        self.finished(state)
        cell = self.cell(state)
        return self.promised(math.inf if cell == len(self._edges) else self._edges[cell])

    def promised(self, value: float = math.nan) -> PooledThreshold:
        """Return the threshold as it will be, but for its value, or with it."""
        return PooledThreshold(
            value=value,
            settings=self._settings,
            spent=tuple(self._choice.epsilons),
            edges=self._edges,
            choice=self._choice,
            **self._who._asdict(),
        )


class Tallies(NamedTuple):
    """How many records of each site said yes at each edge; none where it has not answered."""

    ones: tuple[tuple[int, ...], ...]


class TallyMethod(PooledMethod[Tallies]):
    """One-record local privacy: each record says through randomised response whether its score is above one edge.

    Every edge gets equally many records of a site, taken in a random order; the remainder is not asked, and neither is
    a site with fewer records than there are edges.
    """

    replies = (Tally,)
    state = Tallies

    @staticmethod
    def asked(choice: PooledChoice, edges: tuple[float, ...]) -> list[Message | None]:
        """Return the questions: every edge at as many records of a site."""
        return [Query(ROUND, edges, (count,) * len(edges)) if count else None for count in choice.asked]

    def init(self) -> Tallies:
        """Return the state before anything was asked."""
        silent = (0,) * self._choice.cells  # of a site that is not asked
        return Tallies(tuple(silent if message is None else () for message in self.messages))

    def heard(self, state: Tallies) -> Sequence[bool]:
        """Tell which sites have answered."""
        return [bool(ones) for ones in state.ones]

    def read(self, place: int, reply: Message) -> tuple[int, ...]:
        """Return how many records of a site said yes at each edge."""
        most, cells = self._choice.asked[place], self._choice.cells
        if not isinstance(reply, Tally) or reply.round != ROUND or len(reply.ones) != cells:
            self.refuse(place, f"{cells} counts of round {ROUND}")
        if not all(0 <= count <= most for count in reply.ones):
            self.refuse(place, f"{cells} counts from 0 to {most}")
        return reply.ones

    def added(self, state: Tallies, said: Sequence[tuple[int, ...] | None]) -> Tallies:
        """Return the state with what some sites have said."""
        return Tallies(tuple(old if new is None else new for old, new in zip(state.ones, said, strict=True)))

    def cell(self, state: Tallies) -> int:
        """Return the cell that all answers together point at."""
        return cell_of_tallies(state.ones, self._choice)


class EdgeCounts(NamedTuple):
    """How many scores each site said lie at or below its edge, with noise; None where it has not answered."""

    covered: tuple[int | None, ...]


class CountsMethod(PooledMethod[EdgeCounts]):
    """Noisy counts: each site says once how many of its scores lie at or below one edge of the public grid."""

    replies = (CoverageCount,)
    state = EdgeCounts

    @staticmethod
    def asked(choice: PooledChoice, edges: tuple[float, ...]) -> list[Message | None]:
        """Return the questions: a site's own edge, and the integer of the noise of its count."""
        pairs = zip(choice.edge_of, choice.numerators, strict=True)
        return [CoverageQuery(edges[edge], numerator) for edge, numerator in pairs]

    def init(self) -> EdgeCounts:
        """Return the state before anything was asked."""
        return EdgeCounts((None,) * len(self.messages))

    def heard(self, state: EdgeCounts) -> Sequence[bool]:
        """Tell which sites have answered."""
        return [count is not None for count in state.covered]

    def read(self, place: int, reply: Message) -> tuple[int, ...]:
        """Return the count of a site, which noise may carry beyond 0 or the number of its scores."""
        size, numerator = self._sizes[place], self._choice.numerators[place]
        reach = math.ceil(FARTHEST / NoisyCount(numerator).epsilon) if numerator else 0
        if not isinstance(reply, CoverageCount) or reply.values or not -reach <= reply.covered <= size + reach:
            self.refuse(place, f"a count of {size:,} scores")
        return (reply.covered,)

    def added(self, state: EdgeCounts, said: Sequence[tuple[int, ...] | None]) -> EdgeCounts:
        """Return the state with what some sites have said."""
        pairs = zip(state.covered, said, strict=True)
        return EdgeCounts(tuple(old if new is None else new[0] for old, new in pairs))

    def cell(self, state: EdgeCounts) -> int:
        """Return the cell that all counts together point at."""
        counts = [count for count in state.covered if count is not None]
        return cell_of_counts(counts, self._sizes, self._choice)


class Total(NamedTuple):
    """The sum of the shares that have come, modulo 2^32, and whose they are: no single share is kept."""

    counts: tuple[int, ...]
    known: tuple[bool, ...]


class SumMethod(PooledMethod[Total]):
    """A secure sum of noisy counts: a share alone is not private, so shares are added as they come and forgotten."""

    replies = (SumShare,)
    state = Total

    @staticmethod
    def asked(choice: PooledChoice, edges: tuple[float, ...]) -> list[Message | None]:
        """Return the one question: counts above each edge, with one of as many shares of noise as there are sites."""
        if choice.noise is None:
            raise ValueError("this choice is not for a sum")
        return [SumQuery(edges, choice.noise.numerator, choice.noise.sites)] * choice.noise.sites

    def init(self) -> Total:
        """Return the state before anything was asked."""
        return Total((0,) * self._choice.cells, (False,) * len(self.messages))

    def heard(self, state: Total) -> Sequence[bool]:
        """Tell which sites have answered."""
        return state.known

    def read(self, place: int, reply: Message) -> tuple[int, ...]:
        """Return the share of a site, which may be any integers: noise and masks make it so."""
        cells = self._choice.cells
        if not isinstance(reply, SumShare) or len(reply.counts) != cells:
            self.refuse(place, f"a share of {cells} counts")
        if not all(0 <= count < WORD for count in reply.counts):
            self.refuse(place, f"{cells} integers from 0 on and below 2^32")
        return reply.counts

    def added(self, state: Total, said: Sequence[tuple[int, ...] | None]) -> Total:
        """Return the state with the shares of some sites added."""
        shares = [share for share in said if share is not None]
        counts = tuple(sum(column) % WORD for column in zip(state.counts, *shares, strict=True))
        return Total(counts, tuple(known or new is not None for known, new in zip(state.known, said, strict=True)))

    def cell(self, state: Total) -> int:
        """Return the cell that the sum points at."""
        return cell_of_sum(state.counts, self._choice)


def cell_of_tallies(ones: Sequence[Sequence[int]], choice: PooledChoice) -> int:
    """Return the cell that all sites' answers to the questions point at.

    ``ones`` has for each site how many records said yes at each edge, the lowest first.

    >>> choice = choose_local([4_000, 4_000], [2.0, 2.0], bins=4)
    >>> choice.asked, choice.thresholds[0]
    ((1000, 1000), 403)
    >>> cell_of_tallies([[400, 250, 190, 110], [420, 240, 180, 130]], choice)
    2
    """
    if len(ones) != len(choice.asked):
        raise BadInput(f"{len(choice.asked)} sites were asked but {len(ones)} answered; one tally a site is needed.")
    for place, (tally, asked) in enumerate(zip(ones, choice.asked, strict=True)):
        if len(tally) != choice.cells or not all(0 <= count <= asked for count in tally):
            raise BadInput(
                f"the tally of site number {place + 1} is not {choice.cells} counts from 0 to {asked}; ask it again."
            )
    counts = [sum(vote * tally[b] for vote, tally in zip(choice.votes, ones, strict=True)) for b in range(choice.cells)]
    return first_above(counts, choice.thresholds)


def cell_of_counts(covered: Sequence[int], sizes: Sequence[int], choice: PooledChoice) -> int:
    """Return the cell that counts of many sites, each at its own edge, point at."""
    above = [0] * choice.cells
    for edge, votes, size, count in zip(choice.edge_of, choice.votes, sizes, covered, strict=True):
        above[edge] += votes * (size - count)
    return first_above(above, choice.thresholds)


def cell_of_sum(total: Sequence[int], choice: PooledChoice) -> int:
    """Return the cell that the secure sum of all sites' noisy histograms points at.

    The sum is modulo 2^32, one integer a cell but for the lowest cell.
    """
    if len(total) != choice.cells:
        raise BadInput(f"a sum over {choice.cells} cells has as many integers, not {len(total)}; send one a cell.")
    signed = ((count + (1 << 31)) % (1 << 32) - (1 << 31) for count in reversed(total))  # noise may be negative
    return first_above([*accumulate(signed)][::-1], choice.thresholds)


def first_above(counts: Sequence[int], thresholds: Sequence[int]) -> int:
    """Return the highest cell whose count of scores above its lower edge exceeds the threshold; 0 if none does."""
    for cell in range(len(counts), 0, -1):
        if counts[cell - 1] > thresholds[cell - 1]:
            return cell
    return 0

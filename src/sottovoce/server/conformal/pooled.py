"""A threshold from the summed answers of all sites: one question a record, or a secure sum of noisy counts.

A scan goes from the highest edge of the public grid down and stops at the first count that exceeds its threshold; the
cell above that edge is the answer, and the lowest cell if none does. A cell stands for its upper edge; the highest has
none.
"""

import functools
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from sottovoce.core import codec
from sottovoce.core.digits import number_text
from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import ROUND, Message, Query, SumQuery, SumShare, Tally
from sottovoce.server.conformal.base import HOLDS_FOR, NOT_PROTECTED, Threshold, ThresholdState, check_state
from sottovoce.server.conformal.coverage.pooled import Guarantee, PooledChoice
from sottovoce.server.conformal.coverage.pooled_modes import choose_aggregate, choose_local
from sottovoce.server.conformal.one_round import OneRound
from sottovoce.server.conformal.plan import Participants, SiteFacts
from sottovoce.server.conformal.settings import ConformalSettings
from sottovoce.server.description import WIDTH, Description, labelled, promise

WORD = 1 << 32  # shares of a sum are integers modulo this
TRUST = (
    "The epsilon holds for the sum over all sites, whoever sees it; each single message is protected by the secure "
    "aggregation that adds them up, and by nothing else. All sites must take part. Here the sum was taken in this "
    "process."
)


class PooledState(NamedTuple):
    """What a stored threshold is made from again."""

    common: ThresholdState
    choice: PooledChoice


@dataclass(frozen=True, kw_only=True, repr=False)
class PooledThreshold(Threshold):
    """An edge of the public grid at which a noisy count of all sites' scores passed its threshold."""

    kind: ClassVar[str] = "pooled-threshold"

    choice: PooledChoice = field(repr=False)

    @property
    def coverage(self) -> float:
        """Return what the mean coverage is at least, whatever the distribution of the scores."""
        return self.choice.coverage

    @property
    def confidence(self) -> float:
        """Return what the chance of covering 1 - alpha is at least; the worst distribution decides it."""
        return self.choice.confidence

    @property
    def infinite_chance(self) -> float:
        """Return the chance of an infinite set even if no score lies beyond the grid."""
        return self.choice.infinite

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what is worth knowing before the threshold is used."""
        if math.isinf(self.value):
            return ("the threshold is infinite, and so is every prediction set: too many scores seemed above the grid",)
        return self.noise_warnings()

    @property
    def privacy_statement(self) -> str:
        """Return what is protected, and what is not."""
        if self.mechanism == "local":
            return promise(self.epsilon or {}, self.private, self.per_person, self.seeded)
        text = "Each site sent the counts of its scores in the cells of the public grid, with its share of noise. "
        epsilon = max(self.spent or (math.inf,))
        unit = "person" if self.per_person else "record"
        text += f"Another score of one {unit} shifts the odds of any sum by at most a factor {math.exp(epsilon):.3g} "
        text += f"(epsilon {epsilon:.3g}, computed from the integers of the noise). {TRUST} {NOT_PROTECTED}"
        if self.seeded:
            text += " This run used seeded dice: it is a simulation and protects nobody."
        return text

    @property
    def votes(self) -> Mapping[str, int]:
        """Return how many votes a record of each site has."""
        return dict(zip(self.names, self.choice.votes, strict=True)) if self.choice.asked else super().votes

    def to_state(self) -> PooledState:
        """Return the plain state the threshold is made from."""
        return PooledState(self.state(), self.choice)

    @classmethod
    def from_state(cls, plain: Any) -> Self:
        """Make the threshold again from what JSON kept of its state."""
        common, choice = codec.from_plain(plain, PooledState)
        check_state(common)
        if not common.edges or common.spent is None or len(choice.votes) != len(common.names):
            raise BadInput("this is not a whole stored threshold; store it again.")
        return cls(choice=choice, **common._asdict())

    def describe(self) -> Description:
        """Return what the threshold says of itself: guarantee, value, coverage, every site, what is protected."""
        asked = sum(n * self.choice.cells for n in self.choice.asked) or sum(fact.size for fact in self.facts)
        ends = f"{number_text(self.edges[0])} to {number_text(self.edges[-1])}"
        rows = [
            ("Promise", self.estimand),
            ("Threshold", self.text_value()),
            ("Coverage", f"at least {self.coverage:.4f} on average, whatever the distribution of the scores"),
            ("Made from", f"{asked:,} scores at {len(self.names):,} sites, summed; mechanism {self.mechanism!r}"),
            ("Private", "yes" if self.private else "no (simulation, or no budget at some site)"),
            *self.cost,
            ("Public grid", f"{len(self.edges):,} edges from {ends}"),
            *([("Left out", f"{self.dropped:,} missing values")] if self.dropped else ()),
        ]
        table = [f"{'site':<40}{'scores':>18}{'epsilon':>20}", "-" * WIDTH]
        cells = [("site", "scores", "epsilon")]
        for name, fact, epsilon in zip(self.names, self.facts, self.spent or (), strict=True):
            cells.append((name, f"{fact.size:,}", f"{epsilon:.4g}"))
            table.append(f"{name if len(name) <= 39 else name[:38] + '…':<40}{fact.size:>18,}{epsilon:>20.4g}")
        notes = [*labelled("Warning", self.warnings)]
        notes += [("Holds for", HOLDS_FOR), ("Protected", self.privacy_statement)]
        title = f"Conformal threshold, alpha = {self.alpha:.6g}"
        about = self.outside(f"at least {self.coverage:.4f} on average, whatever the distribution of the scores")
        return Description(title, rows, table, notes, self.plain_values(), cells, about)


def plan_pooled(facts: Sequence[SiteFacts], settings: ConformalSettings, bins: int) -> PooledChoice:
    """Decide what to count, and where the counts are large enough, from public numbers alone."""
    return _chosen(tuple(facts), settings, bins)


@functools.lru_cache(maxsize=32)
def _chosen(facts: tuple[SiteFacts, ...], settings: ConformalSettings, bins: int) -> PooledChoice:
    """Decide the same question once."""
    guarantee: Guarantee = "training-conditional" if settings.conditional else "marginal"
    sizes, epsilons = [fact.size for fact in facts], [fact.epsilon for fact in facts]
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

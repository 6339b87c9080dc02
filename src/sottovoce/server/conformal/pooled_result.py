"""A threshold at which summed answers of many sites pointed: what it promises, and what it says of itself."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

from sottovoce.core import codec
from sottovoce.core.digits import number_text
from sottovoce.core.errors import BadInput
from sottovoce.server.conformal.base import HOLDS_FOR, NOT_PROTECTED, Threshold, ThresholdState, check_state
from sottovoce.server.conformal.coverage.pooled import PooledChoice
from sottovoce.server.conformal.settings import COUNTED
from sottovoce.server.description import WIDTH, Description, labelled, promise

MOST_ROWS = 24  # of the table of sites
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
        if self.mechanism == COUNTED:
            return self._counted_statement()
        text = "Each site sent the counts of its scores in the cells of the public grid, with its share of noise. "
        epsilon = max(self.spent or (math.inf,))
        unit = "person" if self.per_person else "record"
        text += f"Another score of one {unit} shifts the odds of any sum by at most a factor {math.exp(epsilon):.3g} "
        text += f"(epsilon {epsilon:.3g}, computed from the integers of the noise). {TRUST} {NOT_PROTECTED}"
        if self.seeded:
            text += " This run used seeded dice: it is a simulation and protects nobody."
        return text

    def _counted_statement(self) -> str:
        """Return what is protected where sites sent noisy counts."""
        spent, unit = self.spent or (math.inf,), "person" if self.per_person else "record"
        worst = max((epsilon for epsilon in spent if math.isfinite(epsilon)), default=math.inf)
        text = (
            "Each site sent one number, how many of its scores lie at or below one edge of the public grid, with "
            f"two-sided geometric noise: another score of one {unit} shifts the odds of any number by at most a factor "
            f"{math.exp(worst):.3g} (epsilon {worst:.3g}, computed from the integer of the noise). "
        )
        exposed = [name for name, epsilon in zip(self.names, spent, strict=True) if math.isinf(epsilon)]
        if exposed:
            text += f"Not so at {', '.join(exposed)}, whose counts were sent as they are. "
        if self.seeded:
            text += "This run used seeded dice, which anybody can throw again: it is a simulation and protects nobody. "
        return text + NOT_PROTECTED

    @property
    def edges_asked(self) -> Mapping[str, float]:
        """Return the edge at which each site counted its scores; none where sites were asked about all of them."""
        return {name: self.edges[edge] for name, edge in zip(self.names, self.choice.edge_of, strict=False)}

    @property
    def votes(self) -> Mapping[str, int]:
        """Return how many votes a record, or a count, of each site has."""
        return super().votes if self.choice.noise else dict(zip(self.names, self.choice.votes, strict=True))

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
        how = "counted at one edge a site" if self.choice.edge_of else "summed"
        ends = f"{number_text(self.edges[0])} to {number_text(self.edges[-1])}"
        rows = [
            ("Promise", self.estimand),
            ("Threshold", self.text_value()),
            ("Coverage", f"at least {self.coverage:.4f} on average, whatever the distribution of the scores"),
            ("Made from", f"{asked:,} scores at {len(self.names):,} sites, {how}; mechanism {self.mechanism!r}"),
            ("Private", "yes" if self.private else "no (simulation, or no budget at some site)"),
            *self.cost,
            ("Public grid", f"{len(self.edges):,} edges from {ends}"),
            *([("Left out", f"{self.dropped:,} missing values")] if self.dropped else ()),
        ]
        cells = self._sites()
        table = [_row(row) for row in cells[: MOST_ROWS + 1]]
        table.insert(1, "-" * WIDTH)
        if len(self.names) > MOST_ROWS:
            table.append(f"and {len(self.names) - MOST_ROWS:,} more sites")
        notes = [*labelled("Warning", self.warnings)]
        notes += [("Holds for", HOLDS_FOR), ("Protected", self.privacy_statement)]
        title = f"Conformal threshold, alpha = {self.alpha:.6g}"
        about = self.outside(f"at least {self.coverage:.4f} on average, whatever the distribution of the scores")
        return Description(title, rows, table, notes, self.plain_values(), cells, about)

    def _sites(self) -> list[tuple[str, ...]]:
        """Write every site, cell by cell, the head first; where sites counted at one edge each, with that edge."""
        rows = zip(self.names, self.facts, self.spent or (), strict=True)
        found = [(name, f"{fact.size:,}", f"{epsilon:.4g}") for name, fact, epsilon in rows]
        if not self.choice.edge_of:
            return [("site", "scores", "epsilon"), *found]
        edges = self.edges_asked
        told = [(name, size, number_text(float(f"{edges[name]:.4g}")), epsilon) for name, size, epsilon in found]
        return [("site", "scores", "counted at", "epsilon"), *told]


def _row(row: tuple[str, ...]) -> str:
    """Lay one line of the table of sites."""
    name, *cells = row
    width = 40 // len(cells)
    return f"{name if len(name) <= 37 else name[:36] + '…':<38}" + "".join(f"{each:>{width}}" for each in cells)

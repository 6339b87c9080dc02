"""A threshold from order statistics or cells that sites sent, and the exact distribution of its coverage."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from sottovoce.core import codec
from sottovoce.core.arrays import Floats
from sottovoce.core.checks import first_few, number, rest_of
from sottovoce.core.digits import number_text
from sottovoce.core.errors import BadInput
from sottovoce.server.conformal.base import (
    HOLDS_FOR,
    NOT_PROTECTED,
    CoverageDistribution,
    Threshold,
    ThresholdState,
    check_state,
)
from sottovoce.server.conformal.coverage.choose import Choice, choose, distribution_grid, infinite, survival
from sottovoce.server.conformal.plan import ConformalPlan, aim_of
from sottovoce.server.description import WIDTH, Description, labelled

HEAD = ("site", "scores", "order", "votes", "epsilon")
MOST_ROWS = 24  # of the table of sites
SHUFFLED = (
    "Shuffling the messages would not add to it: that takes messages that hide a whole site, and more than 232 of them "
    "at delta 1e-6."
)


class VotedState(NamedTuple):
    """What a stored threshold is made from again."""

    common: ThresholdState
    choice: Choice
    taken: int
    chance: float
    unbounded: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class ConformalThreshold(Threshold):
    """A rank of what the sites sent; print it, or `summary()`, for a table."""

    kind: ClassVar[str] = "threshold"

    plan: ConformalPlan = field(repr=False)
    taken: int = field(repr=False)
    chance: float = field(repr=False)
    unbounded: tuple[str, ...] = field(repr=False)

    @property
    def rule(self) -> str:
        """Return how orders and rank were chosen."""
        return self.settings.rule

    @property
    def choice(self) -> Choice:
        """Return what the design chose."""
        return self.plan.choice

    @property
    def coverage(self) -> float:
        """Return the mean coverage: exact for scores without ties, and at least that with ties or with privacy."""
        return rest_of(self.alpha) if self.settings.exact else self.choice.mean

    @property
    def sd(self) -> float:
        """Return the standard deviation of the coverage over calibrations, as the promised distribution has it."""
        if not self.settings.exact:
            return self.choice.sd
        grid = distribution_grid(self.plan.kinds, self.choice)
        return float(grid.sd(self._survival(grid.levels)))

    @property
    def rank(self) -> int:
        """Return the rank of the threshold among all votes."""
        return self.taken

    @property
    def orders(self) -> Mapping[str, tuple[int, ...]]:
        """Return which order statistics each site was asked for."""
        return dict(zip(self.names, self.plan.orders, strict=True))

    @property
    def votes(self) -> Mapping[str, int]:
        """Return how many votes each value of a site has."""
        return dict(zip(self.names, self.plan.votes, strict=True))

    @property
    def total_votes(self) -> int:
        """Return how many votes all values have."""
        return sum(votes * len(asked) for votes, asked in zip(self.plan.votes, self.plan.orders, strict=True))

    def at_least(self, level: float) -> float:
        """Return the probability (a lower bound with privacy) that this calibration covers at least a level."""
        asked = number(level, "level")
        if not 0 < asked < 1:
            return 1.0 if asked <= 0 else 0.0
        return float(self._survival(np.array([asked]))[0])

    @property
    def confidence(self) -> float:
        """Return the probability that one calibration covers at least 1 - alpha."""
        return self.at_least(1 - self.alpha)

    @cached_property
    def distribution(self) -> CoverageDistribution:
        """Return the distribution of the coverage over calibrations."""
        levels = distribution_grid(self.plan.kinds, self.choice).levels
        return CoverageDistribution(levels, self._survival(levels))

    def _survival(self, levels: Floats) -> Floats:
        """Return the probability of at least each coverage, over both ranks where one was drawn."""
        kinds, number = self.plan.kinds, self.plan.number
        upper = survival(kinds, number, self.choice, levels)
        if not self.settings.exact or self.choice.rank == 1:
            return self.chance * upper
        lower = survival(kinds, number, self.choice._replace(rank=self.choice.rank - 1), levels)
        return np.asarray(self.chance * upper + (1 - self.chance) * lower)

    @cached_property
    def paper(self) -> Choice | None:
        """Return what the paper's rule would have chosen, for comparison; None with privacy or where it has none."""
        if self.spent is not None or (self.settings.conditional and len(self.plan.kinds) > 1):
            return None
        return choose(self.plan.kinds, self.plan.number, aim_of(self.settings)._replace(rule="paper"))

    @cached_property
    def infinite_chance(self) -> float:
        """Return the chance (at most) of an infinite set even if no score lies beyond the grid."""
        return infinite(self.plan.kinds, self.plan.number, self.choice)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what is worth knowing before the threshold is used."""
        found = self.plan.warnings(self.names)
        if not math.isinf(self.value) or self.value < 0:
            return found
        sites = first_few(self.unbounded)
        infinite_set = f"the threshold is infinite, and so is every prediction set: {sites} answered infinity"
        return (*(text for text in found if not text.startswith("noise alone")), infinite_set)

    @property
    def privacy_statement(self) -> str:
        """Return what is protected, and what is not."""
        if self.spent is None:
            return "No privacy: sites sent scores as they are."
        unit = "person" if self.per_person else "record"
        worst = max(epsilon for epsilon in self.spent if math.isfinite(epsilon))
        text = (
            f"Each site sent one cell of the public grid, drawn so that another score of one {unit} shifts the odds of "
            f"any cell by at most a factor {math.exp(worst):.3g} (epsilon {worst:.3g}, computed from the integers of "
            "the mechanism). "
        )
        exposed = [name for name, epsilon in zip(self.names, self.spent, strict=True) if math.isinf(epsilon)]
        if exposed:
            text += f"Not so at {', '.join(exposed)}, where scores were sent as they are. "
        if self.seeded:
            text += "This run used seeded dice, which anybody can throw again: it is a simulation and protects nobody. "
        return f"{text}{NOT_PROTECTED} {SHUFFLED}"

    def to_state(self) -> VotedState:
        """Return the plain state the threshold is made from."""
        return VotedState(self.state(), self.choice, self.taken, self.chance, self.unbounded)

    @classmethod
    def from_state(cls, plain: Any) -> Self:
        """Make the threshold again from what JSON kept of its state."""
        common, choice, taken, chance, unbounded = codec.from_plain(plain, VotedState)
        check_state(common)
        kinds = len(set(common.facts))
        if len(choice.orders) != kinds or len(choice.votes) != kinds or not all(choice.orders):
            raise BadInput("this is not a whole stored threshold; store it again.")
        cells = len(common.edges) + 1 if common.edges else 0
        plan = ConformalPlan(common.facts, common.settings, cells, choice)
        return cls(plan=plan, taken=taken, chance=chance, unbounded=unbounded, **common._asdict())

    def describe(self) -> Description:
        """Return what the threshold says of itself: guarantee, value, coverage, every site, what is protected."""
        rows = [
            ("Promise", self.estimand),
            ("Threshold", self.text_value()),
            ("Coverage", _coverage(self)),
            *([] if math.isinf(self.value) else [("Confidence", _confidence(self))]),
            ("Made from", _made(self)),
        ]
        if self.paper is not None and self.rule != "paper" and self.paper[:3] != self.choice[:3]:
            rows.append(("Paper's rule", f"mean {self.paper.mean:.4f}, standard deviation {self.paper.sd:.4f}"))
        rows += [("Private", _private(self)), *self.cost]
        if self.edges:
            ends = f"{number_text(self.edges[0])} to {number_text(self.edges[-1])}"
            rows.append(("Public grid", f"{len(self.edges):,} edges from {ends}, and beyond"))
        if self.dropped:
            rows.append(("Left out", f"{self.dropped:,} missing values"))
        notes = labelled("Warning", self.warnings)
        notes.append(("Holds for", HOLDS_FOR))
        if self.spent is not None:
            notes.append(("Protected", self.privacy_statement))
        title = f"Conformal threshold, alpha = {self.alpha:.6g}"
        cells = _cells(self)
        table = [_row(*HEAD), "-" * WIDTH, *(_row(*row) for row in cells[1 : MOST_ROWS + 1])]
        if len(self.names) > MOST_ROWS:
            table.append(f"and {len(self.names) - MOST_ROWS:,} more sites")
        return Description(title, rows, table, notes, self.plain_values(), cells, self.outside(_coverage(self)))

    def plain_values(self) -> dict[str, Any]:
        """Return everything that may be passed on, in plain numbers."""
        known = super().plain_values()
        for site, asked, votes in zip(known["sites"], self.plan.orders, self.plan.votes, strict=True):
            site |= {"orders": list(asked), "votes": votes}
        return known | {
            "spread": self.sd,
            "rule": self.rule,
            "exact": self.settings.exact,
            "rank": self.rank,
            "total_votes": self.total_votes,
        }


def _coverage(result: ConformalThreshold) -> str:
    """Say what coverage is known, and how surely."""
    if result.spent is not None:  # the deviation of the distribution that is promised is not that of the coverage
        return f"at least {result.coverage:.4f} on average"
    return f"{result.coverage:.4f} on average, standard deviation {result.sd:.4f}"


def _confidence(result: ConformalThreshold) -> str:
    """Say how often one calibration covers enough."""
    least = "at least " if result.spent is not None else ""
    return f"of calibrations like this one {least}{result.confidence:.1%} cover {1 - result.alpha:.6g} or more"


def _made(result: ConformalThreshold) -> str:
    """Say which of how many values was taken."""
    scores, sites = sum(fact.size for fact in result.facts), len(result.names)
    drawn = f" (drawn, with probability {result.chance:.3f} for rank {result.choice.rank:,})"
    return (
        f"rank {result.rank:,} of {result.total_votes:,} votes{drawn if result.settings.exact else ''}, {sites:,} "
        f"site{'' if sites == 1 else 's'}, {scores:,} scores; rule {result.rule!r}"
    )


def _private(result: ConformalThreshold) -> str:
    """Say whether the threshold is private, and how."""
    if result.spent is None:
        return "no: sites sent scores"
    how = f"{result.mechanism}, one message a site"
    return f"yes ({how})" if result.private else f"no (simulation, or no budget at some site; {how})"


def _cells(result: ConformalThreshold) -> list[tuple[str, str, str, str, str]]:
    """Write every site, cell by cell; the head first."""
    epsilon = result.spent or (math.inf,) * len(result.names)
    sites = zip(result.names, result.facts, result.plan.orders, result.plan.votes, epsilon, strict=True)
    return [
        HEAD,
        *(
            (name, f"{fact.size:,}", ", ".join(map(str, asked)), f"{votes:,}", f"{spent:.4g}")
            for name, fact, asked, votes, spent in sites
        ),
    ]


def _row(name: str, scores: str, order: str, votes: str, epsilon: str) -> str:
    shown = name if len(name) <= 24 else name[:23] + "…"
    return f"{shown:<24}{scores:>12}{order:>24}{votes:>8}{epsilon:>10}"

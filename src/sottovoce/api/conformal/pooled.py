"""A threshold from the summed answers of all sites: one question a record, or a secure sum of noisy counts."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sottovoce.client.reading.table import SiteTable
from sottovoce.core.arrays import Floats
from sottovoce.core.random_source import RandomSource
from sottovoce.local.conformal.one_round import ask_sum, ask_tallies
from sottovoce.protocol.selection.base import upper_edge
from sottovoce.server.conformal.base import NOT_PROTECTED, SiteFacts, Threshold
from sottovoce.server.conformal.coverage.pooled import Guarantee, PooledChoice
from sottovoce.server.conformal.coverage.pooled_modes import choose_aggregate, choose_local
from sottovoce.server.conformal.settings import Settings
from sottovoce.server.description import WIDTH, wrapped
from sottovoce.server.privacy_statement import promise

RARE = 0.001
TRUST = (
    "The epsilon holds for the sum over all sites, whoever sees it; each single message is protected by the secure "
    "aggregation that adds them up, and by nothing else. All sites must take part. Here the sum was taken in this "
    "process."
)


@dataclass(frozen=True, kw_only=True)
class PooledThreshold(Threshold):
    """An edge of the public grid at which a noisy count of all sites' scores passed its threshold."""

    choice: PooledChoice = field(repr=False)

    @property
    def coverage(self) -> float:
        """Return what the mean coverage is at least, whatever the law of the scores."""
        return self.choice.coverage

    @property
    def confidence(self) -> float:
        """Return what the chance of covering 1 - alpha is at least; the worst law decides it, most are far better."""
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
        if self.choice.infinite > RARE:
            return (
                f"noise alone makes the set infinite in {self.choice.infinite:.1%} of calibrations; more scores or a "
                "larger epsilon would help",
            )
        return ()

    @property
    def promise(self) -> str:
        """Return what is protected, and what is not."""
        text = promise(self.epsilon or {}, self.private, self.per_person, self.seeded)
        if self.mechanism == "local":
            return text
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

    def summary(self) -> str:
        """Return a table of the promise, the threshold and the sites."""
        value = "infinite: the prediction set holds everything" if math.isinf(self.value) else f"{self.value:.6g}"
        asked = sum(n * self.choice.cells for n in self.choice.asked) or sum(fact.size for fact in self.facts)
        lines = [
            f" Conformal threshold, alpha = {self.alpha:.6g} ".center(WIDTH, "="),
            *wrapped("Promise", self.estimand),
            *wrapped("Threshold", value),
            *wrapped("Coverage", f"at least {self.coverage:.4f} on average, whatever the law of the scores"),
            *wrapped(
                "Made from", f"{asked:,} scores at {len(self.names):,} sites, summed; mechanism {self.mechanism!r}"
            ),
            *wrapped("Private", "yes" if self.private else "no (simulation, or no budget at some site)"),
            *wrapped("Public grid", f"{len(self.edges):,} edges from {self.edges[0]:.6g} to {self.edges[-1]:.6g}"),
            *(wrapped("Left out", f"{self.dropped:,} missing values") if self.dropped else ()),
            "-" * WIDTH,
            f"{'site':<40}{'scores':>18}{'epsilon':>20}",
            "-" * WIDTH,
        ]
        for name, fact, epsilon in zip(self.names, self.facts, self.spent or (), strict=True):
            lines.append(f"{name if len(name) <= 39 else name[:38] + '…':<40}{fact.size:>18,}{epsilon:>20.4g}")
        lines.append("-" * WIDTH)
        for label, texts in (("Warning", self.warnings), ("Hint", self.hints), ("Protected", (self.promise,))):
            for text in texts:
                lines += wrapped(label, text)
        return "\n".join([*lines, "=" * WIDTH])


def pooled_threshold(
    table: SiteTable,
    settings: Settings,
    facts: Sequence[SiteFacts],
    edges: Floats,
    dice: RandomSource,
    hints: tuple[str, ...],
) -> PooledThreshold:
    """Decide what to count from public numbers, count it once, and read the cell."""
    guarantee: Guarantee = "training-conditional" if settings.conditional else "marginal"
    sizes, epsilons = [fact.size for fact in facts], [fact.epsilon for fact in facts]
    bins, alpha, delta = len(edges), settings.alpha, settings.delta
    if settings.mechanism == "local":
        choice = choose_local(sizes, epsilons, bins, alpha, guarantee, delta)
        cell, spent = ask_tallies(table.records, epsilons, edges, choice, dice), choice.epsilons
    else:
        # one noise protects the sum, so the smallest budget is everybody's
        choice = choose_aggregate(sum(sizes), len(sizes), min(epsilons), bins, alpha, guarantee, delta)
        cell, spent = ask_sum(table.records, epsilons, edges, choice, dice), choice.epsilons
    return PooledThreshold(
        value=upper_edge(edges, cell),
        settings=settings,
        names=table.names,
        facts=tuple(facts),
        spent=tuple(spent),
        edges=tuple(edges.tolist()),
        seeded=not dice.private or table.seeded,
        per_person=table.per_person,
        dropped=sum(table.dropped.values()),
        hints=hints,
        choice=choice,
    )

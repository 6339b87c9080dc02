"""A threshold from order statistics or cells that sites sent, and the exact law of its coverage."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.checks import first_few, number
from sottovoce.server.conformal.base import CoverageLaw, Threshold
from sottovoce.server.conformal.coverage.choose import Choice, choose, distribution_grid, infinite, survival
from sottovoce.server.conformal.plan import Plan, aim_of

RARE = 0.001  # of infinite sets by noise alone, below which nothing is said


@dataclass(frozen=True, kw_only=True)
class ConformalThreshold(Threshold):
    """A rank of what the sites sent; print it, or `summary()`, for a table."""

    plan: Plan = field(repr=False)
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
        return 1 - self.alpha if self.settings.exact else self.choice.mean

    @property
    def spread(self) -> float:
        """Return the standard deviation of the coverage over calibrations, as the law that is promised has it."""
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
    def distribution(self) -> CoverageLaw:
        """Return the law of the coverage over calibrations."""
        levels = distribution_grid(self.plan.kinds, self.choice).levels
        return CoverageLaw(levels, self._survival(levels))

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
        found = []
        short = [
            f"{name!r} ({fact.size:,} scores, asked for order {max(asked):,})"
            for name, fact, asked in zip(self.names, self.facts, self.plan.orders, strict=True)
            if math.isinf(fact.epsilon) and max(asked) > fact.size
        ]
        if short:
            listed = ", ".join(short[:4]) + (f" and {len(short) - 4:,} more" if len(short) > 4 else "")
            found.append(f"too few scores for the order asked, so the answer is infinity: {listed}")
        if math.isinf(self.value) and self.value > 0:
            sites = first_few(self.unbounded)
            found.append(f"the threshold is infinite, and so is every prediction set: {sites} answered infinity")
        elif self.mechanism == "sparse-vector" and self.infinite_chance > RARE:  # of others a rough bound is known
            found.append(
                f"noise alone makes the set infinite in {self.infinite_chance:.1%} of calibrations; more scores or "
                "a larger epsilon would help"
            )
        return tuple(found)

    @property
    def promise(self) -> str:
        """Return what is protected, and what is not."""
        from sottovoce.server.conformal.summary import protected

        return protected(self) if self.spent is not None else "No privacy: sites sent scores as they are."

    def summary(self) -> str:
        """Return a table of the promise, the threshold and the sites."""
        from sottovoce.server.conformal.summary import summary

        return summary(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything that may be passed on, in plain numbers."""
        known = super().to_dict()
        for site, asked, votes in zip(known["sites"], self.plan.orders, self.plan.votes, strict=True):
            site |= {"orders": list(asked), "votes": votes}
        return known | {
            "spread": self.spread,
            "rule": self.rule,
            "exact": self.settings.exact,
            "rank": self.rank,
            "total_votes": sum(v * len(o) for v, o in zip(self.plan.votes, self.plan.orders, strict=True)),
        }

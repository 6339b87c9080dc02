"""The intervals of all groups, each computed once: comparisons and pictures ask for the same ones again."""

import math
from collections.abc import Sequence
from statistics import NormalDist

from sottovoce.inference.common.measured import SiteEstimate
from sottovoce.inference.common.normal import two_sided
from sottovoce.server.description import Interval
from sottovoce.server.quantile.result import QuantileResult
from sottovoce.server.quantile.solutions import CertifiedSolution, FittedSolution, StagedSolution

LEAST = 1e-300  # a p-value as small as numbers go
USUAL = 0.95  # the level at which an interval is measured against a normal one


class GroupEnds:
    """The results of groups, with the ends of their intervals at any level as the answers give them, and rounded."""

    def __init__(self, results: Sequence[QuantileResult]) -> None:
        self.results = tuple(results)
        self._known: dict[tuple[int, float], tuple[float, float]] = {}

    @property
    def exact(self) -> bool:
        """Tell whether all intervals hold for every distribution."""
        return all(isinstance(result.solution, CertifiedSolution) for result in self.results)

    def at(self, place: int, level: float) -> tuple[float, float]:
        """Return the interval of a group at a level, before it is rounded."""
        key = place, level
        if key not in self._known:
            low, high = self.results[place].solution.interval(level)
            self._known[key] = low, high
        return self._known[key]

    def rounded(self, place: int, level: float) -> Interval:
        """Return the interval of a group at a level, in the public resolution."""
        (low, high), plan = self.at(place, level), self.results[place].plan
        return Interval(plan.rounded(low, -1), plan.rounded(high, 1))

    def near_normal(self, place: int) -> SiteEstimate | None:
        """Return a group's estimate, and the error by which a normal interval is as long as its own; None without."""
        solution = self.results[place].solution
        if not isinstance(solution, (StagedSolution, FittedSolution)):
            return None
        left = solution.local if isinstance(solution, StagedSolution) else solution.fitted
        low, high = self.at(place, USUAL)
        if left.fence is not None or not 0 < high - low < math.inf:
            return None
        return SiteEstimate(solution.point, (high - low) / (2 * two_sided(USUAL)))

    def evidence(self, place: int, value: float) -> float:
        """Return the normal quantile of a group's evidence against a value, or the nearest that rounds to it."""
        result = self.results[place]
        half, point = result.plan.resolution / 2, result.solution.point
        nearest = min(max(point, value - half), value + half)
        if nearest == point:
            return 0.0
        p = result.solution.p_value(nearest, "greater" if point > nearest else "less")
        return -NormalDist().inv_cdf(min(max(p, LEAST), 0.5))

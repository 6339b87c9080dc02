"""The intervals of all groups, each computed once: comparisons and pictures ask for the same ones again."""

import math
from collections.abc import Sequence

from sottovoce.inference.common.measured import SiteEstimate
from sottovoce.inference.common.normal import two_sided
from sottovoce.server.description import Interval
from sottovoce.server.quantile.result import QuantileResult
from sottovoce.server.quantile.solutions import CertifiedSolution, FittedSolution, StagedSolution

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

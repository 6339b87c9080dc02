"""The difference of two independent quantiles: interval by the method of variance estimates recovery, and a test.

Zou and Donner (2008): with estimates ``q`` and interval ends ``l, u`` of two independent groups, the lower end for
``q1 - q2`` is ``d - sqrt((q1 - l1)^2 + (u2 - q2)^2)``, and likewise above. The p-value is where the interval first
touches the supposed difference, so test and interval always agree.

Where both quantiles are certified (or sequences), so is the difference: two independent intervals at the level
``sqrt(level)`` hold both quantiles with probability ``level``, and the interval holds the differences of all pairs. A
one-sided test of it has the whole error of its side, as those of the quantiles do.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from sottovoce.core import codec
from sottovoce.core.checks import confidence
from sottovoce.core.errors import BadInput
from sottovoce.core.unit import Unit
from sottovoce.inference.common import normal
from sottovoce.server.description import ALTERNATIVES, Description, Interval, Test, finite
from sottovoce.server.quantile.result import KeptQuantile, QuantileResult, holds
from sottovoce.server.quantile.solutions import CertifiedSolution, SequenceSolution
from sottovoce.server.stored import StoredResult

FARTHEST = 8.0  # standard normal quantile beyond which a p-value is reported as its bound, about 1e-15


class KeptDifference(NamedTuple):
    """A difference as plain values."""

    first: KeptQuantile
    second: KeptQuantile
    level: float


@dataclass(frozen=True, eq=False)
class Difference(StoredResult):
    """The first quantile minus the second."""

    kind = "difference"

    first: QuantileResult
    second: QuantileResult
    level: float

    @property
    def estimate(self) -> float:
        """Return the difference of the estimates."""
        return self.first.estimate - self.second.estimate

    @property
    def interval(self) -> Interval:
        """Return the interval at the level asked for."""
        return self.interval_at(self.level)

    def interval_at(self, level: float) -> Interval:
        """Return the interval at any confidence level."""
        return self._at(confidence(level))

    def test(self, value: float = 0.0, alternative: str = "two-sided") -> Test:
        """Test whether the difference equals a value."""
        if alternative not in ALTERNATIVES:
            raise BadInput(
                f"alternative {alternative!r} is unknown; choose one of {', '.join(map(repr, ALTERNATIVES))}."
            )
        z = self._touching(value)
        if self._certified:
            beyond = alternative == ("less" if z > 0 else "greater")
            return Test(value, alternative, 1.0 if beyond else normal.p_value(z, "two-sided"))
        return Test(value, alternative, normal.p_value(z, alternative))

    @property
    def pvalue(self) -> float:
        """Return the two-sided p-value of no difference."""
        return self.test().pvalue

    @property
    def guarantee(self) -> str:
        """Return what the interval promises, in words."""
        return holds("certified" if self._certified else "staged", self.level)

    @property
    def private(self) -> bool:
        """Tell whether both runs protect their records."""
        return self.first.private and self.second.private

    def format(self, value: float) -> str:
        """Return a difference in words: dates differ by days, moments by durations."""
        unit = self.first.plan.roster.unit
        if not math.isfinite(value):
            return "-inf" if value < 0 else "inf"
        if unit.kind in ("date", "category"):
            return f"{value:.6g} {'days' if unit.kind == 'date' else 'categories'}"
        return Unit("duration").format(value) if unit.kind == "datetime" else unit.format(value)

    def summary(self) -> str:
        """Return the two quantiles and their difference."""
        return "\n".join(self.describe().table)

    def describe(self) -> Description:
        """Return the two quantiles and their difference."""
        low, high = self.interval
        title = "Difference of two private quantiles"
        lines = [f"{title}, {self.level:.4g} interval"]
        for which, result in (("first", self.first), ("second", self.second)):
            ends = result.interval_at(self.level)
            lines.append(
                f"  {which:<10} {result.format(result.estimate):>16}   "
                f"[{result.format(ends.low)}, {result.format(ends.high)}]   {', '.join(result.plan.names)}"
            )
        lines.append(
            f"  {'difference':<10} {self.format(self.estimate):>16}   [{self.format(low)}, {self.format(high)}]   "
            f"({self.guarantee})"
        )
        lines.append(f"  no difference: p = {self.pvalue:.3g} (two-sided)")
        lines += [f"  {label.lower()}: {text}" for label, text in self.cost]
        values = {
            "estimate": self.estimate,
            "interval": {"low": finite(low), "high": finite(high), "level": self.level},
            "guarantee": self.guarantee,
            "pvalue": self.pvalue,
            "private": self.private,
            "first": dict(self.first.describe().values),
            "second": dict(self.second.describe().values),
        }
        return Description(title, [], lines, values=values)

    def to_state(self) -> KeptDifference:
        """Return the plain state the difference is made from."""
        return KeptDifference(self.first.to_state(), self.second.to_state(), self.level)

    @classmethod
    def from_state(cls, plain: Any) -> Self:
        """Make the difference again."""
        first, second, level = codec.from_plain(plain, KeptDifference)
        return cls(QuantileResult.from_kept(first), QuantileResult.from_kept(second), level)

    @property
    def _certified(self) -> bool:
        """Tell whether the intervals of both groups hold for every distribution."""
        exact = (CertifiedSolution, SequenceSolution)
        return isinstance(self.first.solution, exact) and isinstance(self.second.solution, exact)

    def _at(self, level: float) -> Interval:
        """Take all pairs of certified ends, or recover variances; a rounded quantile may be off by half a step."""
        one, two = self.first.solution, self.second.solution
        each = math.sqrt(level) if self._certified else level
        (low1, high1), (low2, high2) = one.interval(each), two.interval(each)
        q1, q2 = one.point, two.point
        slack = (self.first.plan.resolution + self.second.plan.resolution) / 2
        if self._certified:
            return Interval(low1 - high2 - slack, high1 - low2 + slack)
        return Interval(
            q1 - q2 - math.hypot(q1 - low1, high2 - q2) - slack,
            q1 - q2 + math.hypot(high1 - q1, q2 - low2) + slack,
        )

    def _touching(self, value: float) -> float:
        """Return the signed normal quantile at which the interval first touches a value."""
        centre = self.first.solution.point - self.second.solution.point
        above = centre >= value

        def reaches(z: float) -> bool:
            low, high = self._at(1 - 2 * normal.below(-z))
            return low <= value if above else high >= value

        low, high = 0.0, FARTHEST
        if reaches(1e-6):
            return 0.0
        if not reaches(high):
            return high if above else -high
        for _ in range(24 if self._certified else 60):  # certified ends move in steps
            middle = (low + high) / 2
            low, high = (low, middle) if reaches(middle) else (middle, high)
        return high if above else -high

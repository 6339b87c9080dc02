"""The difference of two independent quantiles: interval by the method of variance estimates recovery, and a test.

Zou and Donner (2008): with estimates ``q`` and interval ends ``l, u`` of two independent groups, the lower end for
``q1 - q2`` is ``d - sqrt((q1 - l1)^2 + (u2 - q2)^2)``, and likewise above. The p-value is where the interval first
touches the supposed difference, so test and interval always agree.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sottovoce.api.quantile.federated import plan_study, run_study
from sottovoce.client.reading.table import SiteTable, read_sites
from sottovoce.core.checks import check_callers, confidence, label_text
from sottovoce.core.errors import BadInput
from sottovoce.core.unit import Unit
from sottovoce.inference.common import normal
from sottovoce.server.quantile.result import ALTERNATIVES, QuantileResult, Test, finite
from sottovoce.server.quantile.solutions import Interval

FARTHEST = 8.0  # standard normal quantile beyond which a p-value is reported as its bound, about 1e-15


@dataclass(frozen=True)
class Difference:
    """The first quantile minus the second."""

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
        return self._recovered(confidence(level))

    def test(self, value: float = 0.0, alternative: str = "two-sided") -> Test:
        """Test whether the difference equals a value."""
        if alternative not in ALTERNATIVES:
            raise BadInput(
                f"alternative {alternative!r} is unknown; choose one of {', '.join(map(repr, ALTERNATIVES))}."
            )
        z = self._touching(value)
        return Test(value, alternative, normal.p_value(z, alternative))

    @property
    def pvalue(self) -> float:
        """Return the two-sided p-value of no difference."""
        return self.test().pvalue

    @property
    def private(self) -> bool:
        """Tell whether both runs protect their records."""
        return self.first.private and self.second.private

    def format(self, value: float) -> str:
        """Return a difference in words: dates differ by days, moments by durations."""
        unit = self.first.panel.table.unit
        if not math.isfinite(value):
            return "-inf" if value < 0 else "inf"
        if unit.kind == "date":
            return f"{value:.6g} days"
        return Unit("duration").format(value) if unit.kind == "datetime" else unit.format(value)

    def summary(self) -> str:
        """Return the two quantiles and their difference."""
        low, high = self.interval
        lines = [f"Difference of two private quantiles, {self.level:.4g} interval"]
        for title, result in (("first", self.first), ("second", self.second)):
            ends = result.interval_at(self.level)
            lines.append(
                f"  {title:<10} {result.format(result.estimate):>16}   "
                f"[{result.format(ends.low)}, {result.format(ends.high)}]   {', '.join(result.panel.names)}"
            )
        lines.append(
            f"  {'difference':<10} {self.format(self.estimate):>16}   [{self.format(low)}, {self.format(high)}]"
        )
        lines.append(f"  no difference: p = {self.pvalue:.3g} (two-sided)")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for strict JSON: what is infinite is None."""
        low, high = self.interval
        return {
            "estimate": self.estimate,
            "interval": {"low": finite(low), "high": finite(high), "level": self.level},
            "pvalue": self.pvalue,
            "private": self.private,
            "first": self.first.to_dict(),
            "second": self.second.to_dict(),
        }

    def __str__(self) -> str:
        return self.summary()

    def _recovered(self, level: float) -> Interval:
        """Recover the variances from the two intervals; a rounded quantile may be off by half a step."""
        one, two = self.first.solution, self.second.solution
        (low1, high1), (low2, high2) = one.interval(level), two.interval(level)
        q1, q2 = one.point, two.point
        slack = (self.first.panel.resolution + self.second.panel.resolution) / 2
        return Interval(
            q1 - q2 - math.hypot(q1 - low1, high2 - q2) - slack,
            q1 - q2 + math.hypot(high1 - q1, q2 - low2) + slack,
        )

    def _touching(self, value: float) -> float:
        """Return the signed normal quantile at which the interval first touches a value."""
        centre = self.first.solution.point - self.second.solution.point
        above = centre >= value

        def reaches(z: float) -> bool:
            low, high = self._recovered(1 - 2 * normal.below(-z))
            return low <= value if above else high >= value

        low, high = 0.0, FARTHEST
        if reaches(1e-6):
            return 0.0
        if not reaches(high):
            return high if above else -high
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if reaches(middle) else (middle, high)
        return high if above else -high


def compare(first: QuantileResult, second: QuantileResult, level: float | None = None) -> Difference:
    """Return the difference of two results over different records.

    Parameters
    ----------
    first, second
        Two results; they must not share records, for then they would not be independent.
    level
        The confidence level; that of the first result if not given.
    """
    if first is second:
        raise BadInput("the two results are one and the same; compare different groups of sites.")
    check_comparable(first.panel.table, second.panel.table)
    return Difference(first, second, confidence(first.level if level is None else level))


def check_comparable(first: SiteTable, second: SiteTable) -> None:
    """Refuse two groups of different kinds, or that hold the same records and so do not answer independently."""
    if first.unit.kind != second.unit.kind:
        raise BadInput(
            f"the first group measures {first.unit.plural} and the second {second.unit.plural}; compare like with like."
        )
    if any(one.overlaps(two) for one in first.records for two in second.records):
        raise BadInput("the two groups share records, so they are not independent; compare different groups of sites.")


def quantile_difference(first: Any, second: Any, tau: Any, epsilon: Any, **options: Any) -> Difference:
    """Estimate the difference of a quantile between two groups of sites.

    Parameters
    ----------
    first, second
        Two groups of sites, as for `federated_quantile`, with different records.
    tau, epsilon
        As for `federated_quantile`; a mapping of budgets may name the sites of both groups.
    **options
        As for `federated_quantile`.

    Examples
    --------
    >>> import sottovoce as sv
    >>> g = sv.sim.dice(3).generator()
    >>> d = sv.quantile_difference([g.normal(1.0, 1.0, 40_000)], [g.normal(0.0, 1.0, 40_000)], 0.5, 2.0,
    ...                            randomness=sv.sim.dice(4))
    >>> bool(d.interval.low < 1.0 < d.interval.high), d.pvalue < 1e-6
    (True, True)
    """
    randomness, progress = options.pop("randomness", None), options.pop("progress", None)
    missing = options.get("missing", "refuse")
    check_callers(randomness, progress)
    tables = [
        group if isinstance(group, SiteTable) else read_sites(group, missing=missing) for group in (first, second)
    ]
    check_comparable(*tables)
    shares = options.pop("shares", "pooled")
    check_names({"tau": tau, "epsilon": epsilon, "shares": shares}, tables)
    studies = [
        plan_study(table, _own(tau, table), _own(epsilon, table), shares=_own(shares, table), **options)
        for table in tables
    ]
    dice = (None, None) if randomness is None else randomness.split(2)
    one, two = (run_study(study, own, progress) for study, own in zip(studies, dice, strict=True))
    return compare(one, two)


def _own(value: Any, table: SiteTable) -> Any:
    """Return the part of a mapping that names the sites of one group."""
    if not isinstance(value, Mapping):
        return value
    return {name: item for name, item in value.items() if label_text(name) in table.names}


def check_names(mappings: Mapping[str, Any], tables: list[SiteTable]) -> None:
    """Refuse a mapping that names a site of neither group."""
    known = {name for table in tables for name in table.names}
    for what, value in mappings.items():
        unknown = [name for name in value if label_text(name) not in known] if isinstance(value, Mapping) else []
        if unknown:
            raise BadInput(f"{what} names {unknown[0]!r}, which is a site of neither group; correct it.")

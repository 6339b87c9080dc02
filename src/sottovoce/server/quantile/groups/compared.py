"""Which groups differ: each from the others or from one of them, by Holm's rule, and whether all are equal at all."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from scipy.special import gammaincc

from sottovoce.inference.common import normal
from sottovoce.inference.common.several import adjusted, each_of
from sottovoce.inference.quantile.contrast import combined, own_level
from sottovoce.server.description import Description, finite, percent
from sottovoce.server.quantile.groups.ends import GroupEnds
from sottovoce.server.quantile.result import QuantileResult

ANY, NOISE = "for every distribution", "sampling and privacy noise"
MARKS = (1.0, 2.0, 2.5, 3.0, 3.5, 4.5, 6.0, 8.0)  # normal quantiles at which ends of smooth densities are looked at
# p-values that are told of exact intervals
LEVELS = (0.5, 0.2, 0.1, 0.05, 0.025, 0.01, 0.005, 0.002, 0.001, 1e-4, 1e-5, 1e-6, 1e-9, 1e-12)
THIRDS = 30  # of the range of the estimates, in which one value for all is looked for
SHOWN = 40  # rows of a summary


class Equality(NamedTuple):
    """The test that all groups have one quantile, and by what it was made."""

    pvalue: float
    statistic: float | None
    df: int | None
    by: str


class Contrasted(NamedTuple):
    """One group compared: difference, interval, p-value, and Holm's adjusted one."""

    group: str
    difference: float
    low: float
    high: float
    pvalue: float
    adjusted: float
    differs: bool


@dataclass(frozen=True, repr=False)
class GroupComparison:
    """Every group compared with the others, or with one of them; print it for a table.

    The intervals hold all together; a group differs if Holm's adjusted p-value is at most ``1 - level``, so that one
    or more are named wrongly with that probability at most.
    """

    to: str | None  # None: the mean of the others
    level: float
    rows: tuple[Contrasted, ...]
    guarantee: str
    format: Callable[[float], str]

    @property
    def differing(self) -> tuple[str, ...]:
        """Return the groups that differ."""
        return tuple(row.group for row in self.rows if row.differs)

    def summary(self) -> str:
        """Return a table that a statistician reads at a glance."""
        cells: list[tuple[str, ...]] = [("group", "difference", "low", "high", "p", "p (Holm)", "")]
        cells += [
            (
                row.group if len(row.group) <= 28 else f"{row.group[:27]}…",
                *map(self.format, (row.difference, row.low, row.high)),
                f"{row.pvalue:.2g}",
                f"{row.adjusted:.2g}",
                "differs" if row.differs else "",
            )
            for row in self.rows[:SHOWN]
        ]
        wide = [max(len(row[i]) for row in cells) for i in range(7)]
        table = [
            "  ".join(f"{cell:<{width}}" if i in (0, 6) else f"{cell:>{width}}"
                      for i, (cell, width) in enumerate(zip(row, wide, strict=True))).rstrip()
            for row in cells
        ]  # fmt: skip
        table += [f"and {len(self.rows) - SHOWN} more groups"] * (len(self.rows) > SHOWN)
        title = f"Groups compared with {'the mean of the others' if self.to is None else self.to}"
        rows = [("Intervals", f"{percent(self.level)}, all together   ({self.guarantee})")]
        return Description(title, rows, table).text()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for strict JSON."""
        rows = [{**row._asdict(), "low": finite(row.low), "high": finite(row.high)} for row in self.rows]
        return {"to": self.to, "level": self.level, "guarantee": self.guarantee, "groups": rows}

    def __str__(self) -> str:
        return self.summary()

    __repr__ = __str__


def compare(
    names: Sequence[str], ends: GroupEnds, to: str | None, level: float, format_: Callable[[float], str]
) -> GroupComparison:
    """Compare every group with the mean of the others, weighed by their records, or with one of them."""
    compared = [at for at, name in enumerate(names) if name != to]
    joint = each_of(level, len(compared), independent=False)
    told = []
    for at in compared:
        reach = _Contrast({at: 1.0, **_against(names, ends.results, at, to)}, ends)
        told.append((names[at], reach.difference, *reach.interval(joint), reach.p_value()))
    holm = adjusted([row[-1] for row in told])
    rows = tuple(Contrasted(*row, p, p <= 1 - level) for row, p in zip(told, holm, strict=True))
    return GroupComparison(to, level, rows, ANY if ends.exact else NOISE, format_)


def _against(names: Sequence[str], results: Sequence[QuantileResult], at: int, to: str | None) -> dict[int, float]:
    """Return the weights of what a group is compared with."""
    if to is not None:
        return {names.index(to): -1.0}
    records = {i: sum(each.plan.roster.sizes) for i, each in enumerate(results) if i != at}
    return {i: -size / sum(records.values()) for i, size in records.items()}


class _Contrast:
    """A weighted sum of some groups' quantiles."""

    def __init__(self, weights: dict[int, float], ends: GroupEnds) -> None:
        self._weights, self._ends = weights, ends
        results = [ends.results[at] for at in weights]
        self._points = [result.solution.point for result in results]
        self._slack = sum(
            abs(weight) * result.plan.resolution / 2 for weight, result in zip(weights.values(), results, strict=True)
        )

    @property
    def difference(self) -> float:
        return math.fsum(weight * point for weight, point in zip(self._weights.values(), self._points, strict=True))

    def interval(self, level: float) -> tuple[float, float]:
        each = own_level(level, len(self._weights), self._ends.exact)
        ends = [self._ends.at(at, each) for at in self._weights]
        return combined(list(self._weights.values()), self._points, ends, self._slack, self._ends.exact)

    def p_value(self) -> float:
        """Return the p-value of no difference: of the level at which the interval first reaches zero, or more.

        Exact intervals are looked at for some levels, and the p-value is that of the last one without zero. Of others
        the near end is looked at for a few normal quantiles, between which it goes on in a line, or bends outwards.
        """
        if self._ends.exact:
            return _last_apart(lambda p: self._gap(1 - p) > 0)
        before, gap = 0.0, abs(self.difference) - self._slack
        for z in MARKS:
            if gap <= 0:
                break
            now = self._gap(1 - 2 * normal.below(-z))
            if now <= 0:
                return normal.p_value(before + (z - before) * gap / (gap - now), "two-sided")
            before, gap = z, now
        return normal.p_value(before, "two-sided")

    def _gap(self, level: float) -> float:
        """Return how far the interval at a level stays away from zero; negative if it holds zero."""
        low, high = self.interval(level)
        return max(low, -high)


def _last_apart(apart: Callable[[float], bool]) -> float:
    """Return the smallest of some p-values for which something holds, as it does for all larger ones; one if none."""
    first, last = 0, len(LEVELS)
    while first < last:
        middle = (first + last) // 2
        first, last = (middle + 1, last) if apart(LEVELS[middle]) else (first, middle)
    return LEVELS[first - 1] if first else 1.0


def equal(ends: GroupEnds) -> Equality:
    """Test that all groups have one quantile: by Cochran's Q, or, where most are certified, by a point they share."""
    many = len(ends.results)
    smooth = [at for at in range(many) if ends.near_normal(at) is not None]
    if len(smooth) >= max(2, many / 2):
        q, df = _least(ends, smooth), len(smooth) - 1
        of = "" if len(smooth) == many else f" of {len(smooth)} groups with smooth intervals"
        return Equality(float(gammaincc(df / 2, q / 2)), q, df, f"Cochran's Q{of}")

    def apart(p: float) -> bool:
        each = each_of(1 - p, many)
        rounded = [ends.rounded(at, each) for at in range(many)]
        return max(end.low for end in rounded) > min(end.high for end in rounded)

    return Equality(_last_apart(apart), None, None, "whether all intervals share a point")


def _least(ends: GroupEnds, some: Sequence[int]) -> float:
    """Return the least sum, over one value for some groups, of the squared evidence of each against it."""
    points = [ends.results[at].solution.point for at in some]
    low, high = min(points), max(points)
    for _ in range(THIRDS):
        third = (high - low) / 3
        left, right = (math.fsum(ends.evidence(at, value) ** 2 for at in some) for value in (low + third, high - third))
        low, high = (low, high - third) if left <= right else (low + third, high)
    return math.fsum(ends.evidence(at, (low + high) / 2) ** 2 for at in some)

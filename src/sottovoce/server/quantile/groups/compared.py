"""Which groups differ: each from the others or from one of them, by Holm's rule, and whether all are equal at all."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from scipy.special import gammaincc

from sottovoce.inference.common import normal
from sottovoce.inference.common.several import adjusted, each_of
from sottovoce.inference.quantile.contrast import combined, own_level
from sottovoce.server.description import Description, finite, percent
from sottovoce.server.quantile.groups.plan import OTHERS
from sottovoce.server.quantile.groups.shrunk import near_normal
from sottovoce.server.quantile.result import QuantileResult
from sottovoce.server.quantile.solutions import CertifiedSolution

STEPS = 100  # of the normal quantile in which p-values are looked for, up to `FARTHEST`
FARTHEST = 8.0
HALVINGS = 24
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

    to: str
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
        title = f"Groups compared with {'the mean of the others' if self.to == OTHERS else self.to}"
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
    names: Sequence[str], results: Sequence[QuantileResult], to: str, level: float, format_: Callable[[float], str]
) -> GroupComparison:
    """Compare every group with the mean of the others, weighed by their records, or with one of them."""
    exact = all(isinstance(result.solution, CertifiedSolution) for result in results)

    @cache
    def ends(at: int, each: float) -> tuple[float, float]:
        return results[at].solution.interval(each)

    compared = [at for at, name in enumerate(names) if name != to]
    joint = each_of(level, len(compared), independent=False)
    told = []
    for at in compared:
        weights = {at: 1.0, **_against(names, results, at, to)}
        reach = _Contrast(weights, results, ends, exact)
        told.append((names[at], reach.difference, *reach.interval(joint), reach.p_value()))
    holm = adjusted([row[-1] for row in told])
    rows = tuple(Contrasted(*row, p, p <= 1 - level) for row, p in zip(told, holm, strict=True))
    return GroupComparison(
        to, level, rows, "for every distribution" if exact else "sampling and privacy noise", format_
    )


def _against(names: Sequence[str], results: Sequence[QuantileResult], at: int, to: str) -> dict[int, float]:
    """Return the weights of what a group is compared with."""
    if to != OTHERS:
        return {names.index(to): -1.0}
    records = {i: sum(each.plan.roster.sizes) for i, each in enumerate(results) if i != at}
    return {i: -size / sum(records.values()) for i, size in records.items()}


class _Contrast:
    """A weighted sum of some groups' quantiles."""

    def __init__(
        self,
        weights: dict[int, float],
        results: Sequence[QuantileResult],
        ends: Callable[[int, float], tuple[float, float]],
        exact: bool,
    ) -> None:
        self._weights, self._ends, self._exact = weights, ends, exact
        self._points = [results[at].solution.point for at in weights]
        self._slack = sum(abs(weight) * results[at].plan.resolution / 2 for at, weight in weights.items())

    @property
    def difference(self) -> float:
        return math.fsum(weight * point for weight, point in zip(self._weights.values(), self._points, strict=True))

    def interval(self, level: float) -> tuple[float, float]:
        each = own_level(level, len(self._weights), self._exact)
        ends = [self._ends(at, each) for at in self._weights]
        return combined(list(self._weights.values()), self._points, ends, self._slack, self._exact)

    def p_value(self) -> float:
        """Return the p-value of no difference: where intervals first reach zero, on a grid, to the safe side."""
        low, high = 0, STEPS
        while low < high:
            middle = (low + high + 1) // 2
            ends = self.interval(1 - 2 * normal.below(-FARTHEST * middle / STEPS))
            low, high = (low, middle - 1) if ends[0] <= 0 <= ends[1] else (middle, high)
        return normal.p_value(FARTHEST * low / STEPS, "two-sided")


def equal(results: Sequence[QuantileResult]) -> Equality:
    """Test that all groups have one quantile: by Cochran's Q, or, where one is certified, by a point they may share."""
    known = [near_normal(result) for result in results]
    if all(found is not None for found in known):
        points = [found.estimate for found in known if found is not None]
        errors = [found.std_error for found in known if found is not None]
        q, df = _least(points, errors, results[0].plan.resolution / 2), len(results) - 1
        return Equality(float(gammaincc(df / 2, q / 2)), q, df, "Cochran's Q")
    low, high = -FARTHEST, FARTHEST  # of the normal quantile of the joint level
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        each = each_of(normal.below(middle), len(results))
        ends = [result.interval_at(min(each, 1 - 1e-15)) for result in results]
        shared = max(end.low for end in ends) <= min(end.high for end in ends)
        low, high = (low, middle) if shared else (middle, high)
    return Equality(1 - normal.below(low), None, None, "whether all intervals share a point")


def _least(points: Sequence[float], errors: Sequence[float], slack: float) -> float:
    """Return the least sum of squared distances from one value, in errors, beyond what rounding may do."""

    def far(value: float) -> float:
        return math.fsum(
            (max(abs(point - value) - slack, 0.0) / error) ** 2 for point, error in zip(points, errors, strict=True)
        )

    low, high = min(points), max(points)
    for _ in range(200):
        third = (high - low) / 3
        low, high = (low, high - third) if far(low + third) <= far(high - third) else (low + third, high)
    return far((low + high) / 2)

"""The difference of two independent quantiles: interval by the method of variance estimates recovery, and a test.

The interval is that of `inference.quantile.contrast`. The p-value is where it first touches the supposed difference, so
test and interval always agree.

Where both quantiles are certified (or sequences), so is the difference: two independent intervals at the level
``sqrt(level)`` hold both quantiles with probability ``level``, and the interval holds the differences of all pairs. A
one-sided test of it has the whole error of its side, as those of the quantiles do.
"""

import datetime as dt
import math
import os
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from sottovoce.core import codec
from sottovoce.core.checks import confidence, first_few, number
from sottovoce.core.digits import multiple, span
from sottovoce.core.errors import BadInput
from sottovoce.core.unit import Unit
from sottovoce.inference.common import normal
from sottovoce.inference.quantile.contrast import combined, own_level
from sottovoce.server.axis import value_axis
from sottovoce.server.description import (
    Description,
    Interval,
    Outside,
    Test,
    check_alternative,
    finite,
    labelled,
    of_column,
    percent,
    protection,
)
from sottovoce.server.picture import INK, Drawn, check_path, forest, frame_of, save, short
from sottovoce.server.quantile.result import KeptQuantile, QuantileResult
from sottovoce.server.quantile.solutions import CertifiedSolution, SequenceSolution
from sottovoce.server.quantile.summary import holds, outside
from sottovoce.server.stored import StoredResult

NAMES = ("first", "second")
FARTHEST = 8.0  # standard normal quantile beyond which a p-value is reported as its bound, about 1e-15


def difference_of(value: Any, unit: Unit) -> float:
    """Return a supposed difference in the unit of the records, or refuse."""
    if isinstance(value, str | dt.timedelta | np.timedelta64):
        if not unit.timed:
            raise BadInput(f"the difference to test is {value!r}, and the records are {unit.plural}; give a number.")
        seconds = Unit("duration").parse(value, where="the difference to test")
        return seconds / 86400 if unit.kind == "date" else seconds
    supposed = number(value, "the difference to test")
    if math.isinf(supposed):
        raise BadInput(f"the difference to test must be finite, not {supposed!r}; correct it.")
    return supposed


class KeptDifference(NamedTuple):
    """A difference as plain values."""

    first: KeptQuantile
    second: KeptQuantile
    level: float


@dataclass(frozen=True, eq=False, repr=False)
class Difference(StoredResult):
    """The first quantile minus the second."""

    kind = "difference"

    first: QuantileResult
    second: QuantileResult
    level: float

    @property
    def estimate(self) -> float:
        """Return the difference of the estimates."""
        gap, step = self.first.estimate - self.second.estimate, self.first.plan.resolution
        return multiple(round(gap / step), step) if step > 0 and step == self.second.plan.resolution else gap

    @cached_property
    def interval(self) -> Interval:
        """Return the interval at the level asked for."""
        return self.interval_at(self.level)

    def interval_at(self, level: float) -> Interval:
        """Return the interval at any confidence level."""
        return self._at(confidence(level))

    def test(self, value: Any = 0.0, alternative: str = "two-sided") -> Test:
        """Test whether the difference equals a value.

        Parameters
        ----------
        value
            The supposed difference: a number, or a duration such as "1h" where the records are times.
        alternative
            "two-sided", "greater" or "less".
        """
        check_alternative(alternative)
        supposed = difference_of(value, self._unit)
        z = self._touching(supposed)
        if self._certified:
            beyond = alternative == ("less" if z > 0 else "greater")
            return Test(supposed, alternative, 1.0 if beyond else normal.p_value(z, "two-sided"))
        return Test(supposed, alternative, normal.p_value(z, alternative))

    @cached_property
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
        """Return a difference in words, with the digits that the width of the interval deserves."""
        low, high = self.interval
        step = max(self.first.plan.resolution, self.second.plan.resolution)
        return self._unit.format_width(value, span(low, self.estimate, high), step)

    @property
    def hints(self) -> tuple[str, ...]:
        """Return what was noticed in the records themselves: for whoever holds them, so never part of `to_dict`."""
        return tuple(dict.fromkeys([*self.first.hints, *self.second.hints]))

    @property
    def headline(self) -> str:
        """Return the difference in one line."""
        low, high = self.interval
        paid = protection([*self.first.epsilon.values(), *self.second.epsilon.values()], self.private)
        name = f"difference of {self.first.tau:.6g} quantiles{of_column(self.first.plan.roster.column)}"
        ends = f"[{self.format(low)}, {self.format(high)}]"
        return f"{name}: {self.format(self.estimate)} {ends} ({percent(self.level)}), p = {self.pvalue:.2g}, {paid}"

    def describe(self) -> Description:
        """Return the two quantiles and their difference."""
        low, high = self.interval
        cells: list[tuple[str, ...]] = [("", "estimate", "low", "high", "sites")]
        for which, result in zip(NAMES, (self.first, self.second), strict=True):
            ends = result.interval_at(self.level)
            texts = (result.format(value) for value in (result.estimate, *ends))
            cells.append((which, *texts, first_few(result.plan.by_site).replace("'", "")))
        cells.append(("difference", *(self.format(value) for value in (self.estimate, low, high)), ""))
        wide = [max(len(row[i]) for row in cells) for i in range(4)]
        table = [
            "  ".join([f"{row[0]:<{wide[0]}}", *(f"{row[i]:>{wide[i]}}" for i in (1, 2, 3)), row[4]]).rstrip()
            for row in cells
        ]
        column = of_column(self.first.plan.roster.column)
        rows = [
            ("Estimand", f"the {self.first.tau:.6g} quantile{column} of the first sites minus that of the second"),
            ("Difference", self.format(self.estimate)),
            (f"{self.level:.4g} interval", f"[{self.format(low)}, {self.format(high)}]   ({self.guarantee})"),
            ("No difference", f"p = {self.pvalue:.3g} (two-sided)"),
            ("Private", "yes" if self.private else "no (simulation, or no budget at some site)"),
            *self.cost,
        ]
        notes = labelled("Warning", dict.fromkeys([*self.first.warnings, *self.second.warnings]))
        notes.append(("Promise", self.promise))
        title = f"Difference of two private quantiles, tau = {self.first.tau:.6g}"
        return Description(title, rows, table, notes, self._values(), cells, self._outside())

    def _values(self) -> dict[str, Any]:
        """Return everything as plain values, ready for strict JSON."""
        low, high = self.interval
        return {
            "estimate": self.estimate,
            "interval": {"low": finite(low), "high": finite(high), "level": self.level},
            "guarantee": self.guarantee,
            "pvalue": self.pvalue,
            "private": self.private,
            "first": dict(self.first.describe().values),
            "second": dict(self.second.describe().values),
        }

    def _outside(self) -> Outside:
        """Return what somebody outside the study asks."""
        low, high = self.interval
        one, two = outside(self.first), outside(self.second)
        answer = (
            f"{self.format(self.estimate)}; with {percent(self.level)} confidence between {self.format(low)} and "
            f"{self.format(high)} ({self.guarantee}). No difference at all: p = {self.pvalue:.3g}."
        )
        question = (
            f"By how much does the {self.first.tau:.6g} quantile{of_column(self.first.plan.roster.column)} of "
            f"{', '.join(self.first.plan.by_site)} exceed that of {', '.join(self.second.plan.by_site)}?"
        )
        assumed = ("The two groups share no records.", *one.assumptions)
        settings = [(f"{label} ({which})", text) for which, each in zip(NAMES, (one, two), strict=True) for label, text
                    in each.settings]  # fmt: skip
        return Outside(question, answer, self.promise, assumed, tuple(settings))

    @property
    def promise(self) -> str:
        """Return the privacy promise of both runs, in words."""
        both = (self.first.promise, self.second.promise)
        return both[0] if both[0] == both[1] else f"First: {both[0]} Second: {both[1]}"

    @property
    def value(self) -> Any:
        """Return the difference as what it stands for: timedelta64 where the records are times, else the number."""
        return self._unit.width_value(self.estimate)

    @property
    def value_interval(self) -> tuple[Any, Any]:
        """Return the ends of the interval like `value`; NaT where a time has no end."""
        low, high = self.interval
        return self._unit.width_value(low), self._unit.width_value(high)

    def plot(self, path: str | os.PathLike[str]) -> Path:
        """Draw the difference with its interval, and where no difference is."""
        target = check_path(path)
        return save(self.draw(), target)

    def draw(self) -> Any:
        """Return the picture of `plot`, as a figure of matplotlib."""
        unit, low, high = self._unit, *self.interval
        title = f"Difference of the {self.first.tau:.4g} quantiles, {percent(self.level)} interval"
        row = Drawn("difference", self.estimate, low, high, INK)
        figure = forest(title, [row], self.format, frame_of([row, Drawn("", 0.0, 0.0, 0.0)]))
        axes = figure.axes[0]
        axes.axvline(0, color="#777777", lw=1.0)
        value_axis(axes.xaxis, unit, widths=True)
        column = self.first.plan.roster.column
        axes.set_xlabel(f"difference of {short(column)}" if column else "difference")
        return figure

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what can be computed again."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def _unit(self) -> Unit:
        """Return what the records of both groups measure."""
        return self.first.plan.roster.unit

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
        both = (self.first.solution, self.second.solution)
        each = own_level(level, 2, self._certified)
        slack = (self.first.plan.resolution + self.second.plan.resolution) / 2
        points, ends = [one.point for one in both], [one.interval(each) for one in both]
        return Interval(*combined((1, -1), points, ends, slack, self._certified))

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

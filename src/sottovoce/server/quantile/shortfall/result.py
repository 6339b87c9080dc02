"""What a study of a shortfall returns: value at risk and expected shortfall, each with its interval."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

from sottovoce.core import codec
from sottovoce.core.checks import confidence
from sottovoce.core.digits import span
from sottovoce.inference.quantile.excess import Excess, lower_end, middle, upper_end
from sottovoce.server.axis import axis_name, value_axis
from sottovoce.server.description import (
    Description,
    Interval,
    Outside,
    finite,
    labelled,
    of_column,
    percent,
    protection,
)
from sottovoce.server.picture import INK, Drawn, check_path, forest, save
from sottovoce.server.quantile.result import KeptQuantile, QuantileResult
from sottovoce.server.quantile.shortfall.protocol import OF_QUANTILE, ShortfallStudy
from sottovoce.server.quantile.summary import outside
from sottovoce.server.stored import StoredResult

SPARE = 1.25  # times its own error that the quantile may cost of one end


class KeptShortfall(NamedTuple):
    """A shortfall as plain values."""

    value_at_risk: KeptQuantile
    excess: Excess
    upper: bool
    split: float
    level: float
    rounds: int
    reports: int
    private: bool
    warnings: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class ShortfallResult(StoredResult):
    """The mean beyond a quantile (`estimate`, `interval`), and the quantile itself (`value_at_risk`)."""

    kind = "shortfall"

    value_at_risk: QuantileResult
    excess: Excess = field(repr=False)
    upper: bool
    split: float
    level: float
    rounds: int
    reports: int
    private: bool
    warnings: tuple[str, ...]

    @property
    def tau(self) -> float:
        """Return the level of the quantile."""
        return self.value_at_risk.tau

    @property
    def tail(self) -> str:
        """Return which tail the mean is over."""
        return "upper" if self.upper else "lower"

    @cached_property
    def estimate(self) -> float:
        """Return the expected shortfall: the mean of the records beyond the quantile, within the public bounds."""
        low, high = self._turned(*self.interval)
        floor = max(self._study.ends_of(Interval(*[self.value_at_risk.estimate] * 2))[0], low)
        found = min(max(middle(self.excess, self.value_at_risk.plan.resolution == 0), min(floor, high)), high)
        return self._turned(found, found)[0] + 0.0

    @cached_property
    def interval(self) -> Interval:
        """Return the interval of the shortfall at the level asked for."""
        return self.interval_at(self.level)

    def interval_at(self, level: float) -> Interval:
        """Return the interval of the shortfall at any confidence level, at no further cost."""
        error = (1 - confidence(level)) / 2
        of_quantile = OF_QUANTILE * (1 - self.level)
        if error < SPARE * of_quantile:  # a higher level than planned: of the error half goes to the quantile
            of_quantile = error / 2
        low, high = self._study.ends_of(self.value_at_risk.interval_at(1 - of_quantile))
        least = lower_end(self.excess, low, high, error - of_quantile)
        most = max(upper_end(self.excess, error), least)
        return Interval(*(value + 0.0 for value in self._turned(least, most)))

    @property
    def epsilon(self) -> Mapping[str, float]:
        """Return the realised epsilon of each site, computed from its channel."""
        return self.value_at_risk.epsilon

    @property
    def shares(self) -> Mapping[str, float]:
        """Return the weight of each site in the estimand."""
        return self.value_at_risk.shares

    @property
    def guarantee(self) -> str:
        """Return what the interval of the shortfall promises, in words."""
        if self.value_at_risk.method == "certified":
            return f"at least {100 * self.level:.6g} % for every distribution within the bounds"
        far, near = ("upper", "lower") if self.upper else ("lower", "upper")
        return f"its {far} end for every distribution within the bounds, its {near} end as far as the quantile's"

    @property
    def estimand(self) -> str:
        """Return in words what is estimated."""
        low, high = map(self.format, self._bounds)
        side = f"highest {1 - self.tau:.4g}" if self.upper else f"lowest {self.tau:.4g}"
        whose = self.value_at_risk.plan.roster.column or "the value"
        sites = self.value_at_risk.plan
        where = sites.sites if len(set(sites.roster.places)) == 1 else f"{sites.sites} ({sites.shares_name})"
        return f"the mean of {whose} over the {side} of {where}, limited to [{low}, {high}]"

    @property
    def promise(self) -> str:
        """Return the privacy promise of this run, in words."""
        return replace(self.value_at_risk, private=self.private).promise

    @property
    def hints(self) -> tuple[str, ...]:
        """Return what was noticed in the records themselves: for whoever holds them, so never part of `to_dict`."""
        return self.value_at_risk.hints

    def format(self, value: float) -> str:
        """Return a value in the unit of the records, with as many digits as the width of the interval deserves."""
        return self.value_at_risk.plan.roster.unit.format(value, self._width)

    @property
    def headline(self) -> str:
        """Return the result in one line."""
        risk, column = self.value_at_risk, of_column(self.value_at_risk.plan.roster.column)
        low, high = risk.interval
        first = f"value at risk{column}, {self.tau:.6g}: {risk.format(risk.estimate)}"
        own, paid = self.interval, protection(self.epsilon.values(), self.private)
        return (
            f"{first} [{risk.format(low)}, {risk.format(high)}], expected shortfall {self.format(self.estimate)} "
            f"[{self.format(own.low)}, {self.format(own.high)}] ({percent(self.level)} each), {paid}"
        )

    def describe(self) -> Description:
        """Return both numbers with their intervals, and what they promise."""
        risk, (low, high) = self.value_at_risk, self.interval
        first, last = risk.interval
        ends = f"{self.level:.4g} interval"
        rows = [
            ("Value at risk", f"{risk.format(risk.estimate)}   {risk.estimand}"),
            (ends, f"[{risk.format(first)}, {risk.format(last)}]   ({risk.guarantee})"),
            ("Shortfall", f"{self.format(self.estimate)}   {self.estimand}"),
            (ends, f"[{self.format(low)}, {self.format(high)}]   ({self.guarantee})"),
            ("Method", f"{risk.method}, {self.rounds:,} rounds, {self.reports:,} reports, {self.split:.0%} of the "
             "records for the quantile"),
            ("Private", "yes" if self.private else "no (simulation, or no budget at some site)"),
            *self.cost,
        ]  # fmt: skip
        cells = [
            ("", "estimate", "low", "high"),
            ("value at risk", *map(risk.format, (risk.estimate, first, last))),
            ("expected shortfall", *map(self.format, (self.estimate, low, high))),
        ]
        notes = [*labelled("Warning", dict.fromkeys(self.warnings)), ("Promise", self.promise)]
        values = {
            "tau": self.tau,
            "tail": self.tail,
            "level": self.level,
            "split": self.split,
            "bounds": list(self._bounds),
            "expected_shortfall": {
                "estimand": self.estimand,
                "estimate": self.estimate,
                "interval": {"low": finite(low), "high": finite(high), "level": self.level},
                "guarantee": self.guarantee,
            },
            "value_at_risk": dict(risk.describe().values),
            "private": self.private,
            "reports": self.reports,
            "rounds": self.rounds,
            "warnings": list(self.warnings),
            "promise": self.promise,
        }
        title = f"Private value at risk and expected shortfall, tau = {self.tau:.6g}"
        return Description(title, rows, (), notes, values, cells, self._outside())

    def _outside(self) -> Outside:
        """Return what somebody outside the study asks."""
        about, risk, (low, high) = outside(self.value_at_risk), self.value_at_risk, self.interval
        question = f"{about.question.partition('? ')[0]}, and what is {self.estimand}?"
        answer = (
            f"Value at risk {about.answer} Expected shortfall {self.format(self.estimate)}; with {percent(self.level)} "
            f"confidence between {self.format(low)} and {self.format(high)} ({self.guarantee})."
        )
        bounded = f"Values beyond the public bounds count as the bound: {', '.join(map(risk.format, self._bounds))}."
        settings = (*about.settings, ("Tail", self.tail), ("Records for the quantile", f"{self.split:.0%}"))
        return about._replace(
            question=f"{question} {about.question.partition('? ')[2]}",
            answer=answer,
            privacy=self.promise,
            assumptions=(*about.assumptions, bounded),
            settings=settings,
        )

    def plot(self, path: str | os.PathLike[str]) -> Path:
        """Draw both numbers with their intervals."""
        target = check_path(path)
        return save(self.draw(), target)

    def draw(self) -> Any:
        """Return the picture of `plot`, as a figure of matplotlib."""
        roster = self.value_at_risk.plan.roster
        rows = [
            Drawn("value at risk", self.value_at_risk.estimate, *self.value_at_risk.interval),
            Drawn("expected shortfall", self.estimate, *self.interval, INK),
        ]
        title = f"{self.tau:.4g} value at risk and {self.tail} shortfall, {percent(self.level)} intervals"
        figure = forest(title, rows, self.format)
        axes = figure.axes[0]
        value_axis(axes.xaxis, roster.unit)
        axes.set_xlabel(axis_name(roster.column, roster.unit))
        return figure

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what can be computed again."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def to_state(self) -> KeptShortfall:
        """Return the plain state the result is made from."""
        names = KeptShortfall._fields[1:]
        return KeptShortfall(self.value_at_risk.to_state(), *(getattr(self, name) for name in names))

    @classmethod
    def from_state(cls, plain: Any) -> Self:
        """Make the result again."""
        state = codec.from_plain(plain, KeptShortfall)
        return cls(QuantileResult.from_kept(state.value_at_risk), *state[1:])

    @property
    def _study(self) -> ShortfallStudy:
        """Return how values are turned and bounded."""
        return ShortfallStudy(self.value_at_risk.plan, self.upper, self.split)

    @property
    def _bounds(self) -> tuple[float, float]:
        """Return the public bounds of the records."""
        return self._turned(*self._study.limits)

    @property
    def _width(self) -> float:
        """Return the width that decides how many digits are shown."""
        low, high = self.interval
        return span(low, self.estimate, high)

    def _turned(self, low: float, high: float) -> tuple[float, float]:
        """Turn an interval to the tail's side, or back."""
        return self._study.turned(low, high)

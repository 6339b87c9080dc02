"""What a study returns: the estimate with its interval, tests, budgets, trajectory, and one picture of the run."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from sottovoce.core import codec
from sottovoce.core.checks import confidence
from sottovoce.core.digits import span
from sottovoce.core.errors import BadInput
from sottovoce.server.description import Description, Interval, Test, check_alternative, promise
from sottovoce.server.picture import check_path, save
from sottovoce.server.quantile import summary
from sottovoce.server.quantile.kept import KeptSolution, kept, restored
from sottovoce.server.quantile.plan import QuantilePlan
from sottovoce.server.quantile.plot import draw
from sottovoce.server.quantile.solutions import Solution
from sottovoce.server.stored import StoredResult


class KeptQuantile(NamedTuple):
    """A result as plain values."""

    plan: QuantilePlan
    solution: KeptSolution
    level: float
    method: str
    rounds: int
    reports: int
    private: bool
    warnings: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class QuantileResult(StoredResult):
    """One quantile over many sites; print it, or `summary()`, for a table."""

    kind = "quantile"

    plan: QuantilePlan = field(repr=False)
    solution: Solution = field(repr=False)
    level: float
    method: str
    rounds: int
    reports: int
    private: bool
    warnings: tuple[str, ...]

    @property
    def tau(self) -> float:
        """Return the level of the quantile."""
        return self.plan.tau

    @property
    def estimate(self) -> float:
        """Return the estimate, rounded to the public resolution if there is one; beyond limits it is infinite."""
        found, censored = self.plan.rounded(self.solution.point), self.plan.roster.unit.censored
        if censored is None:
            return found
        low, high = self.interval
        return censored.known(min(max(found, low), high))

    @cached_property
    def interval(self) -> Interval:
        """Return the interval at the level asked for."""
        return self.interval_at(self.level)

    def interval_at(self, level: float) -> Interval:
        """Return the interval at any confidence level, at no further cost."""
        low, high = self.solution.interval(confidence(level))
        return Interval(self.plan.rounded(low, -1), self.plan.rounded(high, 1))

    def test(self, value: Any, alternative: str = "two-sided") -> Test:
        """Test whether the quantile equals a value; "greater" asks for evidence that it is greater.

        Parameters
        ----------
        value
            The supposed quantile, as a number or as text in the unit of the records.
        alternative
            "two-sided", "greater" or "less".
        """
        check_alternative(alternative)
        unit = self.plan.roster.unit
        supposed = unit.parse(value, where="the value to test")
        if unit.censored is not None and unit.censored.side(supposed):
            raise BadInput(
                f"the value to test is {supposed:g}, and {unit.censored.words}; test a value within the limits."
            )
        return Test(supposed, alternative, self._pvalue(supposed, alternative))

    @property
    def left_out(self) -> tuple[str, ...]:
        """Return the sites that were too small to take part: they were not asked, and the estimand is without them."""
        return self.plan.left_out

    @property
    def value(self) -> Any:
        """Return what the estimate stands for: timedelta64, datetime64 (UTC), a category, a symbol, or the number."""
        return self.plan.roster.unit.value(self.estimate)

    @property
    def value_interval(self) -> tuple[Any, Any]:
        """Return the ends of the interval like `value`; NaT where a time has no end."""
        low, high = self.interval
        return self.plan.roster.unit.value(low), self.plan.roster.unit.value(high)

    @property
    def hints(self) -> tuple[str, ...]:
        """Return what was noticed in the records themselves: for whoever holds them, so never part of `to_dict`."""
        return self.plan.hints

    @property
    def epsilon(self) -> Mapping[str, float]:
        """Return the realised epsilon of each site, computed from its channel."""
        return self.plan.epsilons

    @property
    def shares(self) -> Mapping[str, float]:
        """Return the weight of each site in the estimand."""
        return {site: count.share for site, count in self.plan.by_site.items()}

    @property
    def variance_shares(self) -> Mapping[str, float]:
        """Return what part of the noise variance each site causes: the largest drives the width."""
        return {site: count.noise for site, count in self.plan.by_site.items()}

    @property
    def drivers(self) -> Mapping[str, float]:
        """Return `variance_shares`, by its former name."""
        from sottovoce.core.deprecation import say_former

        say_former("drivers", "variance_shares", since="0.1.0", gone="0.3.0")
        return self.variance_shares

    @property
    def trajectory(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the columns round, reports, average, low, high."""
        rows = self.solution.trajectory(self.level)
        if (censored := self.plan.roster.unit.censored) is not None:
            known, step = censored.known, self.plan.resolution
            rows = [
                row._replace(average=known(row.average), low=known(row.low, -1, step), high=known(row.high, 1, step))
                for row in rows
            ]
        columns = list(zip(*rows, strict=True)) if rows else [()] * 5
        kinds = (np.int64, np.int64, np.float64, np.float64, np.float64)
        names = ("round", "reports", "average", "low", "high")
        return {name: np.array(column, dtype=kind) for name, column, kind in zip(names, columns, kinds, strict=True)}

    @property
    def estimand(self) -> str:
        """Return in words what is estimated; an average of site quantiles it never is."""
        number = len(set(self.plan.roster.places))
        unit = "persons" if self.plan.roster.per_person else "records"
        whose = f"the value of {self.plan.roster.column}" if self.plan.roster.column else "the value"
        below = f"{whose} below which {self.tau:.6g}"
        left = f"; {self.plan.departures}" if self.plan.departed else ""
        if number == 1:
            counted = ", each counted by its weight" if self.plan.roster.weighted else ""
            return f"{below} of the {unit} of {self.plan.sites} lie{counted}{left}"
        text = {
            "pooled": f"{below} of all {unit} of {self.plan.sites} lie (pooled)",
            "weighted": f"{below} of all {unit} of {self.plan.sites} lie, each counted by its weight (weighted)",
            "equal": f"{below} lies when each of {self.plan.sites} counts the same (equal)",
            "custom": f"{below} lies when {self.plan.sites} count by their given shares (custom)",
        }
        return text[self.plan.shares_name] + left

    @property
    def guarantee(self) -> str:
        """Return what the interval promises, in words."""
        return summary.holds(self.method, self.level)

    @property
    def promise(self) -> str:
        """Return the privacy promise of this run, in words."""
        return promise(self.epsilon, self.private, self.plan.roster.per_person)

    def format(self, value: float) -> str:
        """Return a value in the unit of the records, with as many digits as the width of the interval deserves."""
        return self.plan.roster.unit.format(value, self._width, self.plan.resolution)

    @property
    def headline(self) -> str:
        """Return the result in one line."""
        return summary.headline(self)

    def describe(self) -> Description:
        """Return estimand, estimate, interval, reports, rounds, budgets and promise."""
        return self.with_cost(summary.describe(self))

    def to_state(self) -> KeptQuantile:
        """Return the plain state the result is made from; hints are for whoever holds the records, and stay behind."""
        return KeptQuantile(
            replace(self.plan, hints=()),
            kept(self.solution),
            self.level,
            self.method,
            self.rounds,
            self.reports,
            self.private,
            self.warnings,
        )

    @classmethod
    def from_state(cls, plain: Any) -> Self:
        """Make the result again."""
        return cls.from_kept(codec.from_plain(plain, KeptQuantile))

    @classmethod
    def from_kept(cls, state: KeptQuantile) -> Self:
        """Make the result again from its plain values."""
        return cls(state.plan, restored(state.solution), *state[2:])

    def plot(self, path: str | Path) -> Path:
        """Draw the estimate and its interval as reports came in, and what each site contributes."""
        return plot(self, path)

    def draw(self) -> Any:
        """Return the picture of `plot`, as a figure of matplotlib."""
        return draw(self)

    def __getstate__(self) -> dict[str, Any]:
        """Leave at home what is for whoever holds the records, and what can be computed again."""
        state = {each.name: getattr(self, each.name) for each in fields(self)}
        return state | {"plan": replace(self.plan, hints=())}

    @cached_property
    def _width(self) -> float:
        """Return the width that decides how many digits are shown."""
        ends, censored = (self.interval[0], self.estimate, self.interval[1]), self.plan.roster.unit.censored
        return span(*(ends if censored is None else map(censored.within, ends)))

    def _pvalue(self, value: float, alternative: str) -> float:
        """Return the p-value; with a resolution, of the nearest value that rounds to the supposed one."""
        half = self.plan.resolution / 2
        if half == 0:
            return self.solution.p_value(value, alternative)
        point = self.solution.point
        if alternative == "two-sided":
            nearest = min(max(point, value - half), value + half)
            return 1.0 if nearest == point else self.solution.p_value(nearest, alternative)
        return self.solution.p_value(value + half if alternative == "greater" else value - half, alternative)


def plot(
    result: QuantileResult,
    path: str | os.PathLike[str],
    *,
    reference: tuple[str, float] | None = None,
    measure: str | None = None,
) -> Path:
    """Draw a result to a file and return its path.

    ``reference`` is a label and a value to draw beside the estimate, such as an answer without privacy; ``measure``
    says what the records measure, for the axis.
    """
    target = check_path(path)
    return save(draw(result, reference=reference, measure=measure), target)

"""What a study returns: the estimate with its interval, tests, budgets and trajectory."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.api.quantile.panel import QuantilePlan
from sottovoce.core.checks import confidence
from sottovoce.core.errors import BadInput
from sottovoce.server.privacy_statement import promise
from sottovoce.server.quantile.solutions import Interval, Solution

ALTERNATIVES = ("two-sided", "greater", "less")


class Test(NamedTuple):
    """A test of a supposed quantile."""

    value: float
    alternative: str
    pvalue: float


@dataclass(frozen=True)
class QuantileResult:
    """One quantile over many sites; print it, or `summary()`, for a table."""

    panel: QuantilePlan = field(repr=False)
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
        return self.panel.tau

    @property
    def estimate(self) -> float:
        """Return the estimate, rounded to the public resolution if there is one."""
        return self._rounded(self.solution.point)

    @property
    def interval(self) -> Interval:
        """Return the interval at the level asked for."""
        return self.interval_at(self.level)

    def interval_at(self, level: float) -> Interval:
        """Return the interval at any confidence level, at no further cost."""
        low, high = self.solution.interval(confidence(level))
        return Interval(self._rounded(low), self._rounded(high))

    def test(self, value: Any, alternative: str = "two-sided") -> Test:
        """Test whether the quantile equals a value; "greater" asks for evidence that it is greater.

        Parameters
        ----------
        value
            The supposed quantile, as a number or as text in the unit of the records.
        alternative
            "two-sided", "greater" or "less".
        """
        if alternative not in ALTERNATIVES:
            raise BadInput(
                f"alternative {alternative!r} is unknown; choose one of {', '.join(map(repr, ALTERNATIVES))}."
            )
        supposed = self.panel.table.unit.parse(value, where="the value to test")
        return Test(supposed, alternative, self._pvalue(supposed, alternative))

    @property
    def hints(self) -> tuple[str, ...]:
        """Return what was noticed in the records themselves: for whoever holds them, so never part of `to_dict`."""
        return self.panel.hints

    @property
    def epsilon(self) -> Mapping[str, float]:
        """Return the realised epsilon of each site, computed from its channel."""
        return self.panel.epsilons

    @property
    def shares(self) -> Mapping[str, float]:
        """Return the weight of each site in the estimand."""
        return dict(zip(self.panel.names, map(float, self.panel.crowd.shares), strict=True))

    @property
    def variance_shares(self) -> Mapping[str, float]:
        """Return what part of the noise variance each site causes: the largest drives the width."""
        return dict(zip(self.panel.names, self.panel.support.variance_shares, strict=True))

    @property
    def trajectory(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the columns round, reports, average, low, high."""
        rows = self.solution.trajectory(self.level)
        columns = list(zip(*rows, strict=True)) if rows else [()] * 5
        kinds = (np.int64, np.int64, np.float64, np.float64, np.float64)
        names = ("round", "reports", "average", "low", "high")
        return {name: np.array(column, dtype=kind) for name, column, kind in zip(names, columns, kinds, strict=True)}

    @property
    def estimand(self) -> str:
        """Return in words what is estimated; an average of site quantiles it never is."""
        table, number = self.panel.table, len(self.panel.names)
        unit = "persons" if table.per_person else "records"
        if number == 1:
            return f"the value below which {self.tau:.6g} of the {unit} of {self.panel.names[0]} lie"
        below = f"the value below which {self.tau:.6g}"
        text = {
            "pooled": f"{below} of all {unit} of the {number} sites lie (pooled)",
            "equal": f"{below} lies when each of the {number} sites counts the same (equal)",
            "custom": f"{below} lies when the {number} sites count by their given shares (custom)",
        }
        return text[self.panel.shares_name]

    @property
    def promise(self) -> str:
        """Return the privacy promise of this run, in words."""
        return promise(self.epsilon, self.private, self.panel.table.per_person)

    def format(self, value: float) -> str:
        """Return a value in the unit of the records."""
        if not math.isfinite(value):
            return "-inf" if value < 0 else "inf"
        return self.panel.table.unit.format(value)

    def summary(self) -> str:
        """Return a table that a statistician reads at a glance."""
        from sottovoce.server.quantile.summary import summary

        return summary(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for strict JSON: what is infinite is None."""
        unit = self.panel.table.unit
        low, high = self.interval
        return {
            "estimand": self.estimand,
            "tau": self.tau,
            "method": self.method,
            "estimate": self.estimate,
            "interval": {"low": finite(low), "high": finite(high), "level": self.level},
            "unit": unit.kind,
            "text": {
                "estimate": self.format(self.estimate),
                "low": self.format(low),
                "high": self.format(high),
            },
            "private": self.private,
            "epsilon": {name: finite(epsilon) for name, epsilon in self.epsilon.items()},
            "shares": dict(self.shares),
            "drivers": dict(self.variance_shares),
            "records": {n: r.size for n, r in zip(self.panel.names, self.panel.table.records, strict=True)},
            "dropped": dict(self.panel.table.dropped),
            "left_out": self.panel.table.left_out,
            "unplaced": self.panel.table.unplaced,
            "reports": self.reports,
            "rounds": self.rounds,
            "support": self.panel.support.ratio,
            "resolution": self.panel.resolution or None,
            "warnings": list(self.warnings),
            "promise": self.promise,
        }

    def plot(self, path: str | Path) -> Path:
        """Draw the estimate and its interval as reports came in, and what each site contributes."""
        from sottovoce.server.quantile.plot import plot

        return plot(self, path)

    def __str__(self) -> str:
        return self.summary()

    def _rounded(self, value: float) -> float:
        """Round to the public resolution: the dithered quantile lies within half a step of the atom."""
        step = self.panel.resolution
        return float(f"{round(value / step) * step:.16g}") if step > 0 and math.isfinite(value) else value

    def _pvalue(self, value: float, alternative: str) -> float:
        """Return the p-value; with a resolution, of the nearest value that rounds to the supposed one."""
        half = self.panel.resolution / 2
        if half == 0:
            return self.solution.p_value(value, alternative)
        point = self.solution.point
        if alternative == "two-sided":
            nearest = min(max(point, value - half), value + half)
            return 1.0 if nearest == point else self.solution.p_value(nearest, alternative)
        return self.solution.p_value(value + half if alternative == "greater" else value - half, alternative)


def finite(value: float) -> float | None:
    """Return a value as strict JSON can hold it: None if it is infinite."""
    return value if math.isfinite(value) else None

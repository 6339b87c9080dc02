"""What a study returns: the estimate with its interval, tests, budgets, trajectory, and one picture of the run."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from sottovoce.core import codec
from sottovoce.core.checks import confidence
from sottovoce.core.errors import BadInput
from sottovoce.server.description import ALTERNATIVES, WIDTH, Description, Interval, Test, finite, labelled, promise
from sottovoce.server.picture import BAND, INK, SOFT, WARM, check_path, clear, save, short
from sottovoce.server.quantile.kept import KeptSolution, kept, restored
from sottovoce.server.quantile.plan import QuantilePlan
from sottovoce.server.quantile.solutions import Solution
from sottovoce.server.stored import StoredResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# what is guaranteed, and not only measured
HOLDS = {"certified": "for every distribution", "sequence": "at every time, for every distribution"}
BARS = 20  # more sites than a page has room for are drawn as one bar


def holds(method: str, level: float) -> str:
    """Return what the interval of a method promises, in words."""
    return f"at least {100 * level:.6g} % {HOLDS[method]}" if method in HOLDS else "sampling and privacy noise"


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


@dataclass(frozen=True, eq=False)
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
        """Return the estimate, rounded to the public resolution if there is one."""
        return self.plan.rounded(self.solution.point)

    @property
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
        if alternative not in ALTERNATIVES:
            raise BadInput(
                f"alternative {alternative!r} is unknown; choose one of {', '.join(map(repr, ALTERNATIVES))}."
            )
        supposed = self.plan.roster.unit.parse(value, where="the value to test")
        return Test(supposed, alternative, self._pvalue(supposed, alternative))

    @property
    def left_out(self) -> tuple[str, ...]:
        """Return the sites that were too small to take part: they were not asked, and the estimand is without them."""
        return self.plan.left_out

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
        return dict(zip(self.plan.names, map(float, self.plan.crowd.shares), strict=True))

    @property
    def variance_shares(self) -> Mapping[str, float]:
        """Return what part of the noise variance each site causes: the largest drives the width."""
        return dict(zip(self.plan.names, self.plan.support.variance_shares, strict=True))

    @property
    def drivers(self) -> Mapping[str, float]:
        """Return `variance_shares`, by its former name."""
        return self.variance_shares

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
        number = len(self.plan.names)
        unit = "persons" if self.plan.roster.per_person else "records"
        if number == 1:
            return f"the value below which {self.tau:.6g} of the {unit} of {self.plan.names[0]} lie"
        below = f"the value below which {self.tau:.6g}"
        text = {
            "pooled": f"{below} of all {unit} of {self.plan.sites} lie (pooled)",
            "equal": f"{below} lies when each of {self.plan.sites} counts the same (equal)",
            "custom": f"{below} lies when {self.plan.sites} count by their given shares (custom)",
        }
        return text[self.plan.shares_name]

    @property
    def guarantee(self) -> str:
        """Return what the interval promises, in words."""
        return holds(self.method, self.level)

    @property
    def promise(self) -> str:
        """Return the privacy promise of this run, in words."""
        return promise(self.epsilon, self.private, self.plan.roster.per_person)

    def format(self, value: float) -> str:
        """Return a value in the unit of the records."""
        if not math.isfinite(value):
            return "-inf" if value < 0 else "inf"
        return self.plan.roster.unit.format(value)

    def describe(self) -> Description:
        """Return estimand, estimate, interval, reports, rounds, budgets and promise."""
        roster, (low, high) = self.plan.roster, self.interval
        shown = f"[{self.format(low)}, {self.format(high)}]   ({self.guarantee})"
        rows = [
            ("Estimand", self.estimand),
            ("Estimate", self.format(self.estimate)),
            (f"{self.level:.4g} interval", shown),
            ("Method", f"{self.method}, {self.rounds:,} rounds, {self.reports:,} reports"),
            ("Private", "yes" if self.private else "no (simulation, or no budget at some site)"),
            *self.cost,
        ]
        if self.plan.resolution:
            taken = f"{self.plan.resolution:.6g}" + (f", {self.plan.step_source}" if self.plan.step_source else "")
            rows.append(("Resolution", f"{taken}; the interval covers the rounded value"))
        dropped = sum(roster.dropped.values())
        if dropped or roster.unplaced:
            rows.append(("Left out", f"{dropped:,} missing values, {roster.unplaced:,} rows without a site"))
        if roster.per_person:
            rows.append(("Person", f"one record each, drawn at random; {roster.left_out:,} further rows left out"))
        notes = [*labelled("Warning", self.warnings), *labelled("Hint", self.hints), ("Promise", self.promise)]
        worst = max(self.variance_shares, key=lambda name: self.variance_shares[name])
        if len(self.plan.names) > 1:
            notes.insert(
                0, ("Width", f"driven most by {worst} ({self.variance_shares[worst]:.0%} of the noise variance)")
            )
        return Description(f"Private quantile, tau = {self.tau:.6g}", rows, self._table(), notes, self._values())

    def _table(self) -> list[str]:
        """Return the table of the sites."""
        lines = [_row("site", "records", "share", "epsilon", "of the noise"), "-" * WIDTH]
        for name, size in zip(self.plan.names, self.plan.roster.sizes, strict=True):
            share, noise = f"{self.shares[name]:.4f}", f"{self.variance_shares[name]:.1%}"
            lines.append(_row(name, f"{size:,}", share, f"{self.epsilon[name]:.4g}", noise))
        return lines

    def _values(self) -> dict[str, Any]:
        """Return everything as plain values, ready for strict JSON: what is infinite is None."""
        roster, (low, high) = self.plan.roster, self.interval
        texts = {"estimate": self.estimate, "low": low, "high": high}
        return {
            "estimand": self.estimand,
            "tau": self.tau,
            "method": self.method,
            "estimate": self.estimate,
            "interval": {"low": finite(low), "high": finite(high), "level": self.level},
            "guarantee": self.guarantee,
            "unit": roster.unit.kind,
            "text": {name: self.format(value) for name, value in texts.items()},
            "private": self.private,
            "epsilon": {name: finite(epsilon) for name, epsilon in self.epsilon.items()},
            "shares": dict(self.shares),
            "drivers": dict(self.variance_shares),
            "records": dict(zip(roster.names, roster.sizes, strict=True)),
            "dropped": dict(roster.dropped),
            "left_out": roster.left_out,
            "unplaced": roster.unplaced,
            "sites_left_out": list(self.left_out),
            "reports": self.reports,
            "rounds": self.rounds,
            "support": self.plan.support.ratio,
            "resolution": self.plan.resolution or None,
            "resolution_source": self.plan.step_source or None,
            "kind": self.plan.kind,
            "warnings": list(self.warnings),
            "promise": self.promise,
        }

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


def _row(name: str, *cells: str) -> str:
    """Lay one line of the table of sites."""
    shown = name if len(name) <= 28 else name[:27] + "…"
    return f"{shown:<28}" + "".join(f"{cell:>12}" for cell in cells[:-1]) + f"{cells[-1]:>14}"


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
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.5, 5.2), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=(1.45, 1))
    _trajectory(left, result, reference, measure)
    _noise(right, result)
    return save(figure, target)


def _trajectory(axes: "Axes", result: QuantileResult, reference: tuple[str, float] | None, measure: str | None) -> None:
    """Draw the estimate and its interval against the reports so far."""
    from matplotlib.ticker import LogLocator, NullLocator

    rows = result.trajectory
    low, high = result.interval
    known = np.isfinite(rows["average"]) & (np.isfinite(rows["low"]) | np.isfinite(rows["high"]))
    reports, average = rows["reports"][known], rows["average"][known]
    bottom, top = _frame(result, average)
    lows, highs = np.clip(rows["low"][known], bottom, top), np.clip(rows["high"][known], bottom, top)
    shown = f"{result.level:.4g} interval"
    axes.axhspan(max(low, bottom), min(high, top), color=BAND, alpha=0.6, lw=0, label=f"{shown}, all reports")
    if len(reports) > 30:
        between: Literal["post"] | None = "post" if result.method in HOLDS else None  # it holds until the next look
        axes.fill_between(reports, lows, highs, step=between, color=SOFT, alpha=0.35, lw=0, label=f"{shown}, so far")
        axes.plot(reports, average, color=INK, lw=1.4, label="estimate so far")
    else:
        axes.vlines(reports, lows, highs, color=SOFT, lw=2.2, label=f"{shown}, so far")
        axes.plot(reports, average, "o", color=INK, ms=4.5, label="estimate so far")
    if reference is not None:
        axes.axhline(
            reference[1], color=WARM, lw=1.4, ls=(0, (5, 3)), label=f"{reference[0]}: {result.format(reference[1])}"
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(_count)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(bottom, top)
    axes.yaxis.set_major_formatter(lambda value, _: result.format(value))
    axes.set_xlabel("reports so far (one a record)")
    kind = result.plan.roster.unit.kind
    axes.set_ylabel(measure or {"number": "value", "date": "date", "datetime": "date and time"}.get(kind, kind))
    axes.set_title(
        f"The {result.tau:.4g} quantile: {result.format(result.estimate)}, "
        f"{shown} [{result.format(low)}, {result.format(high)}]",
        fontsize=11,
        loc="left",
    )
    axes.legend(fontsize=8.5, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)
    clear(axes)


def _frame(result: QuantileResult, average: Any) -> tuple[float, float]:
    """Return the part of the axis worth seeing: the last interval, and as much of the way to it as is not far off."""
    ends = [end for end in result.interval if math.isfinite(end)] + [result.estimate]
    width = max(max(ends) - min(ends), 4 * result.plan.resolution, 1e-9 * abs(result.estimate), 1e-300)
    near = average[np.abs(average - result.estimate) <= 3 * width]
    low, high = min([*ends, *near]), max([*ends, *near])
    return low - 0.8 * width, high + 0.8 * width


def _noise(axes: "Axes", result: QuantileResult) -> None:
    """Draw what part of the noise variance each site causes, with its budget and size."""
    sizes = dict(zip(result.plan.names, result.plan.roster.sizes, strict=True))
    order = sorted(result.variance_shares, key=lambda name: -result.variance_shares[name])
    kept = order if len(order) <= BARS else order[: BARS - 1]
    others = order[len(kept) :]
    names = [short(name) for name in kept]
    parts = [100 * result.variance_shares[name] for name in kept]
    notes = [f"ε {result.epsilon[name]:.3g}, {sizes[name]:,}" for name in kept]
    if others:
        names.append(f"{len(others):,} other sites")
        parts.append(100 * sum(result.variance_shares[name] for name in others))
        notes.append(f"{sum(sizes[name] for name in others):,}")
    axes.barh(range(len(names)), parts, color=SOFT, height=0.72)
    for place, (part, note) in enumerate(zip(parts, notes, strict=True)):
        axes.text(part + 0.012 * max(parts), place, note, va="center", fontsize=7.5, color="#333333")
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(max(len(names), 5) - 0.4, -0.6)
    axes.set_xlim(0, 1.35 * max(parts))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} %")
    axes.set_xlabel("part of the noise variance")
    axes.set_title("Noise by site (ε, records)", fontsize=11, loc="left")
    clear(axes)
    axes.grid(visible=False, axis="y")


def _count(value: float, _: float) -> str:
    """Write a number of reports briefly."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"

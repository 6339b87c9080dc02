"""One picture of a run: how the interval closed in as reports came in, and which site makes it as wide as it is."""

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from sottovoce.server.description import Interval
from sottovoce.server.picture import BAND, INK, SOFT, WARM, check_path, clear, save, short
from sottovoce.server.quantile.plan import QuantilePlan

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BARS = 20  # more sites than a page has room for are drawn as one bar


class Drawn(Protocol):
    """What a picture shows of a result."""

    @property
    def plan(self) -> QuantilePlan:
        """Return the plan."""

    @property
    def tau(self) -> float:
        """Return the level of the quantile."""

    @property
    def level(self) -> float:
        """Return the confidence level."""

    @property
    def estimate(self) -> float:
        """Return the estimate."""

    @property
    def interval(self) -> Interval:
        """Return the interval."""

    @property
    def epsilon(self) -> Mapping[str, float]:
        """Return the budget of each site."""

    @property
    def variance_shares(self) -> Mapping[str, float]:
        """Return each site's part of the noise."""

    @property
    def trajectory(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the way to the estimate."""

    def format(self, value: float) -> str:
        """Return a value in the unit of the records."""


def plot(
    result: Drawn,
    path: str | os.PathLike[str],
    *,
    reference: tuple[str, float] | None = None,
    measure: str | None = None,
) -> Path:
    """Draw a result to a file and return its path.

    Parameters
    ----------
    result
        What `federated_quantile` returned.
    path
        A file that ends in .png, .svg or .pdf.
    reference
        A label and a value to draw beside the estimate, such as an answer without privacy.
    measure
        What the records measure, in words, for the axis.
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


def _trajectory(axes: "Axes", result: Drawn, reference: tuple[str, float] | None, measure: str | None) -> None:
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
        axes.fill_between(reports, lows, highs, color=SOFT, alpha=0.35, lw=0, label=f"{shown}, so far")
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


def _frame(result: Drawn, average: Any) -> tuple[float, float]:
    """Return the part of the axis worth seeing: the last interval, and as much of the way to it as is not far off."""
    ends = [end for end in result.interval if math.isfinite(end)] + [result.estimate]
    width = max(max(ends) - min(ends), 4 * result.plan.resolution, 1e-9 * abs(result.estimate), 1e-300)
    near = average[np.abs(average - result.estimate) <= 3 * width]
    low, high = min([*ends, *near]), max([*ends, *near])
    return low - 0.8 * width, high + 0.8 * width


def _noise(axes: "Axes", result: Drawn) -> None:
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

"""The picture of a run: the estimate and its interval as reports came in, and what each site contributes."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sottovoce.server.axis import axis_name, value_axis
from sottovoce.server.description import percent
from sottovoce.server.picture import BAND, INK, SOFT, WARM, clear, new_figure, plain, short
from sottovoce.server.quantile.summary import HOLDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MANY = 30  # looks at a run that are drawn as a line
ALONE = 0.2  # of a limit: the frame where the quantile is known to lie beyond it
BARS = 20  # more sites than a page has room for are drawn as one bar

# A result draws itself by these functions, so that they cannot name its class without a circle of imports.
RunToDraw = Any  # a QuantileResult


def draw(result: RunToDraw, *, reference: tuple[str, float] | None = None, measure: str | None = None) -> "Figure":
    """Return the figure; `server.quantile.result.plot` says what the rest is."""
    figure = new_figure(11.5, 5.2)
    left, right = figure.subplots(1, 2, width_ratios=(1.45, 1))
    _trajectory(left, result, reference, measure)
    _noise(right, result)
    return figure


def _trajectory(axes: "Axes", result: RunToDraw, reference: tuple[str, float] | None, measure: str | None) -> None:
    """Draw the estimate and its interval against the reports so far."""
    from matplotlib.ticker import LogLocator, NullLocator

    rows, within = result.trajectory, _within(result)
    rows |= {name: within(rows[name]) for name in ("average", "low", "high")}
    ends = [result.format(end) for end in result.interval]
    low, high = within(np.array(result.interval)).tolist()
    counted = np.isfinite(rows["average"])
    reports, average, lows, highs = (rows[name][counted] for name in ("reports", "average", "low", "high"))
    bottom, top = _frame(result, average)
    shown = f"{percent(result.level)} interval"
    if math.isfinite(low) or math.isfinite(high):
        axes.axhspan(max(low, bottom), min(high, top), color=BAND, alpha=0.6, lw=0, label=f"{shown}, all reports")
    else:
        axes.plot([], [], " ", label=f"no {shown}: too little is known")
    _so_far(axes, reports, average, lows, highs, (bottom, top), result.method)
    _limits(axes, result, (bottom, top))
    if reference is not None:
        axes.axhline(
            reference[1], color=WARM, lw=1.4, ls=(0, (5, 3)),
            label=plain(f"{reference[0]}: {result.format(reference[1])}"),
        )  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(_count)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(bottom, top)
    roster = result.plan.roster
    value_axis(axes.yaxis, roster.unit)
    axes.set_xlabel("reports so far (one a record)")
    axes.set_ylabel(plain(measure) if measure else axis_name(roster.column, roster.unit))
    column = f" of {short(roster.column)}" if roster.column else ""
    text = "no interval" if math.isinf(low) and math.isinf(high) else f"[{', '.join(ends)}]"
    title = f"The {result.tau:.4g} quantile{column}: {plain(f'{result.format(result.estimate)} {text}')}"
    axes.set_title(title, fontsize=11, loc="left")
    axes.legend(fontsize=8.5, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)
    clear(axes)


def _so_far(
    axes: "Axes", reports: Any, average: Any, lows: Any, highs: Any, frame: tuple[float, float], method: str
) -> None:
    """Draw estimates with their intervals; an arrow where one goes on beyond the frame, hollow where there is none."""
    bottom, top = frame
    known = np.isfinite(lows) | np.isfinite(highs)
    within = np.clip(lows, bottom, top), np.clip(highs, bottom, top)
    many, alone = len(reports) > MANY, "estimate, no interval yet"
    if many:
        between: Literal["post"] | None = "post" if method in HOLDS else None  # it holds until the next look
        axes.fill_between(
            reports, *within, where=known.tolist(), step=between, color=SOFT, alpha=0.35, lw=0, label="interval so far"
        )
        axes.plot(reports, np.where(known, average, np.nan), color=INK, lw=1.4, label="estimate so far")
        if not known.all():
            axes.plot(reports, np.where(known, np.nan, average), ":", color=INK, lw=1.2, label=alone)
    else:
        axes.vlines(reports[known], within[0][known], within[1][known], color=SOFT, lw=2.2, label="interval so far")
        axes.plot(reports[known], average[known], "o", color=INK, ms=4.5, label="estimate so far")
        if not known.all():
            axes.plot(reports[~known], average[~known], "o", color=INK, mfc="white", ms=4.5, label=alone)
    label = "goes on beyond the frame"
    for edge, beyond, sign in ((bottom, known & (lows < bottom), "v"), (top, known & (highs > top), "^")):
        where = np.flatnonzero(beyond)
        if where.size:
            few = reports[where[:: max(where.size // MANY, 1)]]
            axes.plot(few, np.full(len(few), edge), sign, color=SOFT, ms=6, clip_on=False, label=label)
            label = ""


def _frame(result: RunToDraw, average: Any) -> tuple[float, float]:
    """Return the part of the axis worth seeing: the last interval, and as much of the way to it as is not far off."""
    *ends, estimate = _within(result)(np.array([*result.interval, result.estimate])).tolist()
    ends = [end for end in ends if math.isfinite(end)] + [estimate]
    least = 1e-9 if result.plan.roster.unit.censored is None else ALONE
    width = max(max(ends) - min(ends), 4 * result.plan.resolution, least * abs(estimate), 1e-300)
    near = average[np.abs(average - estimate) <= 3 * width]
    low, high = min([*ends, *near]), max([*ends, *near])
    return low - 0.8 * width, high + 0.8 * width


def _within(result: RunToDraw) -> Callable[[Any], Any]:
    """Return what puts symbols of values beyond limits at the limits."""
    censored = result.plan.roster.unit.censored
    return np.asarray if censored is None else lambda values: np.clip(values, censored.low, censored.high)


def _limits(axes: "Axes", result: RunToDraw, frame: tuple[float, float]) -> None:
    """Draw the limits of measurement that lie in the frame."""
    censored = result.plan.roster.unit.censored
    if censored is None:
        return
    for limit, symbol in ((censored.low, censored.below), (censored.high, censored.above)):
        if frame[0] <= limit <= frame[1]:
            axes.axhline(limit, color="#777777", lw=1.0, ls=":", label=f"limit of measurement: {plain(symbol)}")


def _noise(axes: "Axes", result: RunToDraw) -> None:
    """Draw what part of the noise variance each site causes, with its budget and size."""
    sizes = {site: count.records for site, count in result.plan.by_site.items()}
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
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} %" if value <= 100 else "")
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

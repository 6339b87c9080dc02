"""The panels of a sensitivity curve: interval, and length, against the bound that is assumed on all differences."""

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sottovoce.inference.integration.sensitivity import BEFOREHAND, SensitivityCurve
from sottovoce.server.integration.integrated import Integrated
from sottovoce.server.integration.summary import width_text
from sottovoce.server.picture import INK, SOFT, WARM, check_path, clear, save, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

GREY = "#8c8c8c"
FEW = 12  # bounds that are drawn one by one
TICKS = {"number": 6, "duration": 5, "date": 5, "datetime": 4}
STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(60, 120, 300, 600, 900, 1800),
    *(3600, 7200, 10800, 21600, 43200),
    *(86400, 172800, 432000, 864000),
)  # seconds


def plot_sensitivity(result: Integrated, curve: SensitivityCurve, path: str | os.PathLike[str]) -> Path:
    """Draw the interval, and below it its relative length, against the assumed bound to a file."""
    target = check_path(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.2, 6.2), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(2.6, 1))
    draw_curve(top, result, curve, bottom=False)
    draw_lengths(bottom, result, curve)
    top.set_title(
        f"The {result.tau:.4g} quantile of {short(result.target.name)}: "
        f"{result.level:.4g} interval by assumed bound on all differences",
        fontsize=11,
        loc="left",
    )
    figure.supxlabel(BEFOREHAND, fontsize=8, color="#333333")
    return save(figure, target)


def draw_curve(axes: "Axes", result: Integrated, curve: SensitivityCurve, bottom: bool = True) -> None:
    """Draw the interval against the bound, the target's own, and where the gain is lost; ``bottom``: name the axis."""
    end = _end(curve)
    shown = np.isfinite(curve.bound) & (curve.bound <= end)
    bounds, lows, highs = curve.bound[shown], curve.low[shown], curve.high[shown]
    split, words = int(np.sum(bounds < curve.refuted)), ("interval under a bound", _refuted(result, curve))
    if len(bounds) <= FEW:
        for part, colour, label in ((slice(split, None), INK, words[0]), (slice(split), GREY, words[1])):
            if bounds[part].size:
                axes.vlines(bounds[part], lows[part], highs[part], color=colour, lw=3, label=label)
    else:  # the two parts meet in a bound
        for part, colour, label in ((slice(split, None), SOFT, words[0]), (slice(split + 1), GREY, words[1])):
            if bounds[part].size > 1:
                axes.fill_between(bounds[part], lows[part], highs[part], color=colour, alpha=0.4, lw=0, label=label)
                axes.plot(bounds[part], np.column_stack([lows[part], highs[part]]), color=colour, lw=1.2)
    for edge, name in zip((result.target.low, result.target.high), ("target's own interval", None), strict=True):
        if math.isfinite(edge):
            axes.axhline(edge, color=WARM, lw=1.4, ls=(0, (5, 3)), label=name)
    _lost(axes, result, curve, end)
    room = 0.04 * end if len(bounds) <= FEW else 0.0
    axes.set_xlim(-room, end + room)
    axes.margins(y=0.08)
    value_axis(axes.yaxis, result)
    if bottom:
        _bound_axis(axes, result)
    axes.set_ylabel(f"{result.level:.4g} interval")
    # the gap is in letters, not in heights of the panel: tick labels and the axis' name stand in it
    gap = 5.0 if bottom else 1.2
    axes.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, 0), borderaxespad=gap, ncols=2)
    clear(axes)


def draw_lengths(axes: "Axes", result: Integrated, curve: SensitivityCurve) -> None:
    """Draw the length, over that of the target's own interval, against the bound."""
    shown = np.isfinite(curve.bound)
    axes.plot(
        curve.bound[shown], curve.length_ratio[shown], "o-" if shown.sum() <= FEW else "-", color=INK, lw=1.4, ms=4
    )
    axes.axhline(1, color=WARM, lw=1.4, ls=(0, (5, 3)))
    if curve.refuted > 0:
        axes.axvspan(0, min(curve.refuted, _end(curve)), color=GREY, alpha=0.2, lw=0)
    _lost(axes, result, curve, _end(curve))
    axes.set_ylim(0, 1.12)
    axes.set_ylabel("length / own")
    _bound_axis(axes, result)
    clear(axes)


def value_axis(axis: "Axis", result: Integrated) -> None:
    """Write the ticks of an axis of values in their unit, and few enough that they stand apart."""
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    kind = result.unit.kind
    if kind in ("duration", "datetime"):
        _clock(axis, TICKS[kind])
    else:
        axis.set_major_locator(MaxNLocator(TICKS[kind], integer=kind == "date"))
    if kind == "number":
        plain = ScalarFormatter(useOffset=False)
        plain.set_powerlimits((-5, 9))
        axis.set_major_formatter(plain)
    else:
        gap = "\n" if kind == "datetime" and axis is axis.axes.xaxis else " "
        axis.set_major_formatter(lambda value, _: result.format(value).replace(" ", gap))
    axis.set_tick_params(labelsize=8.5)


def _clock(axis: "Axis", ticks: int) -> None:
    """Set the ticks at round times: whole minutes, hours, days; where all is within seconds, as for numbers."""
    from matplotlib.ticker import MaxNLocator, MultipleLocator

    low, high = axis.get_view_interval()
    steps = [step for step in STEPS if (high - low) / step <= ticks]
    inside = STEPS[0] <= (high - low) / 2 and steps
    axis.set_major_locator(MultipleLocator(steps[0]) if inside else MaxNLocator(ticks))


def _bound_axis(axes: "Axes", result: Integrated) -> None:
    """Name the axis of bounds, in words where they are times."""
    from matplotlib.ticker import MaxNLocator

    unit = result.unit
    axes.xaxis.set_major_locator(MaxNLocator(6))
    if unit.kind in ("duration", "datetime"):
        _clock(axes.xaxis, 5)
        axes.xaxis.set_major_formatter(lambda value, _: width_text(unit, value))
    axes.tick_params(axis="x", labelsize=8.5)
    axes.set_xlabel("assumed bound on every source's difference" + (", days" if unit.kind == "date" else ""))


def _lost(axes: "Axes", result: Integrated, curve: SensitivityCurve, end: float) -> None:
    """Mark the bound from which on less than 5 % is gained."""
    if 0 < curve.lost <= end:
        words = f"gain below 5 % from {width_text(result.unit, _digits(curve.lost))} on"
        axes.axvline(curve.lost, color="#333333", lw=1.1, ls=":", label=words)


def _refuted(result: Integrated, curve: SensitivityCurve) -> str:
    return f"below {width_text(result.unit, _digits(curve.refuted))}: refuted by the data"


def _end(curve: SensitivityCurve) -> float:
    """Return where the axis of bounds ends: a bound refuted far beyond all others would squeeze the rest."""
    finite = curve.bound[np.isfinite(curve.bound)]
    inside = finite[finite != curve.refuted] if len(finite) > FEW else finite
    return float(inside.max(initial=0.0)) or 1.0


def _digits(value: float) -> float:
    return float(f"{value:.3g}")

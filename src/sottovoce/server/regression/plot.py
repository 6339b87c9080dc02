"""One picture of a private quantile regression: its slopes side by side, or every coefficient against tau."""

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sottovoce.core.bounds import Bounds
from sottovoce.server.picture import INK, SOFT, check_path, clear, save, short
from sottovoce.server.regression.summary import RegressionFacts, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS = 3  # panels beside each other


def plot(
    facts: RegressionFacts, bounds: Bounds, rows: Sequence[Table], path: str | os.PathLike[str], level: float
) -> Path:
    """Draw the coefficients with their intervals to a .png, .svg or .pdf file and return its path."""
    target = check_path(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if len(rows) == 1:
        figure = Figure(figsize=(9.0, 1.9 + 0.42 * len(rows[0])), dpi=150, layout="constrained")
        _side_by_side(figure.subplots(), facts, bounds, rows[0], level)
    else:
        deep = math.ceil(len(rows[0]) / ACROSS)
        figure = Figure(figsize=(3.7 * ACROSS, 0.6 + 2.8 * deep), dpi=150, layout="constrained")
        _against_tau(figure, facts, rows, level)
    FigureCanvasAgg(figure)
    return save(figure, target)


def _side_by_side(axes: "Axes", facts: RegressionFacts, bounds: Bounds, rows: Table, level: float) -> None:
    """Draw what each covariate does to the quantile from the middle of its bounds to the upper one."""
    # raw slopes have units of their own; over half the bounds all of them are in the unit of the response
    halves = dict(zip(bounds.names, bounds.half.tolist(), strict=True))
    for place, (name, half) in enumerate(halves.items()):
        row = rows[name]
        if row.interval is not None:
            axes.hlines(place, row.interval[0] * half, row.interval[1] * half, color=SOFT, lw=5, alpha=0.55)
        axes.plot(row.value * half, place, "o", color=INK, ms=6)
        ends = "no interval" if row.interval is None else f"[{row.interval[0]:.4g}, {row.interval[1]:.4g}]"
        axes.annotate(
            f"{row.value:.4g} {ends}", (row.value * half, place), (0, 8), textcoords="offset points", ha="center",
            fontsize=7.5, color="#333333",
        )  # fmt: skip
    axes.axvline(0, color="#999999", lw=0.8)
    axes.set_yticks(range(len(halves)), [short(name) for name in halves], fontsize=8.5)
    axes.set_ylim(len(halves) - 0.4, -0.75)
    axes.margins(x=0.15)
    axes.set_xlabel("change of the quantile from the middle of a covariate's bounds to the upper one")
    axes.set_title(f"{_title(facts)}: slopes with {level:.4g} intervals", fontsize=11, loc="left")
    clear(axes)
    axes.grid(visible=False, axis="y")


def _against_tau(figure: "Figure", facts: RegressionFacts, rows: Sequence[Table], level: float) -> None:
    """Draw each coefficient, in a panel of its own, against the quantile level."""
    names = list(rows[0])
    grid = figure.subplots(math.ceil(len(names) / ACROSS), ACROSS, squeeze=False, sharex=True)
    for axes, name in zip(grid.flat, names, strict=False):
        for tau, row in zip(facts.taus, rows, strict=True):
            interval = row[name].interval
            if interval is not None:
                axes.vlines(tau, *interval, color=SOFT, lw=4, alpha=0.55)
        axes.plot(facts.taus, [row[name].value for row in rows], "o-", color=INK, ms=4.5, lw=1.2)
        low, high = axes.get_ylim()
        if name != names[0] and low < 0 < high:
            axes.axhline(0, color="#999999", lw=0.8)
        axes.set_title(short(name), fontsize=9.5, loc="left")
        axes.set_xlabel("tau")
        axes.tick_params(labelbottom=True)  # shared axes are labelled at the bottom alone, where a panel may be hidden
        clear(axes)
    for axes in list(grid.flat)[len(names) :]:
        axes.set_visible(False)
    known = any(row.interval is not None for each in rows for row in each.values())
    shown = f"coefficients with {level:.4g} intervals" if known else "coefficients, too few people for intervals"
    figure.suptitle(f"{_title(facts)}: {shown}", fontsize=11, x=0.01, ha="left")


def _title(facts: RegressionFacts) -> str:
    """Say what the picture is of, in a few words."""
    what = f"The {facts.taus[0]:.4g} quantile" if len(facts.taus) == 1 else "Quantiles"
    return f"{what}, {facts.people:,} people, ε {facts.epsilon:.3g}"

"""Pictures of regressions on real tables: ``python -m benchmarks.regression_tables_picture [FOLDER]``, by default docs.

One study of each table, on seeded dice, beside the exact fit in the open: coefficients with intervals, and coefficients
against the level.
"""

import math
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmarks.regression_tables import fit, measured
from benchmarks.regression_tables_data import Table, read_table, reason
from benchmarks.regression_tables_exact import errors, exact, hessian, open_covariance
from sottovoce.core.arrays import Floats

PRIVATE, OPEN, ZERO = "#1f5a94", "#c8551b", "#4d4d4d"
Z, SEED, FAR = 1.959964, 1, 3.0  # beyond so many spans of the open fit an interval is cut, and marked by an arrow
SIDE_BY_SIDE = (("flights", 0.75, 4.0), ("taxi", 0.75, 4.0), ("star", 0.5, 8.0))
PATHS, LEVELS, BUDGET = "flights", (0.1, 0.25, 0.5, 0.75, 0.9), 8.0
TITLES = {
    "flights": "Arrival delay of flights from New York",
    "taxi": "Length of New York taxi trips",
    "star": "Mathematics score of pupils",
}
# the change of a covariate that is drawn, and how it is called; of columns of 0 and 1, their name
STEPS: dict[str, dict[str, tuple[float, str]]] = {
    "flights": {
        "miles": (1.0, "1,000 miles farther"),
        "hour": (6.0, "6 hours later"),
        "summer": (1.0, "June to August"),
        "origin=LGA": (1.0, "from LaGuardia, not JFK"),
        "origin=EWR": (1.0, "from Newark, not JFK"),
    },
    "taxi": {
        "miles": (1.0, "1 mile farther"),
        "rush": (1.0, "rush hour"),
        "night": (1.0, "at night"),
        "weekend": (1.0, "at the weekend"),
        "airport": (1.0, "from or to an airport"),
        "pandemic": (1.0, "after 15 March 2020"),
    },
    "star": {
        "grade": (1.0, "one grade higher"),
        "experience": (10.0, "teacher 10 years longer"),
        "class=small": (1.0, "small class, not regular"),
        "class=regular+aide": (1.0, "with an aide, not without"),
        "lunch=free": (1.0, "free lunch"),
        "gender=female": (1.0, "girl, not boy"),
        "school=suburban": (1.0, "suburban, not rural"),
        "school=urban": (1.0, "urban, not rural"),
        "school=inner-city": (1.0, "inner city, not rural"),
    },
}


class Drawn(NamedTuple):
    """Estimates with the ends of their intervals, NaN where there is none."""

    value: Floats
    low: Floats
    high: Floats

    def times(self, steps: Floats) -> "Drawn":
        return Drawn(self.value * steps, self.low * steps, self.high * steps)


def in_the_open(table: Table, tau: float) -> Drawn:
    """Return the exact fit with its intervals."""
    x, y, weights = table.design()
    beta, to_raw = exact(x, y, weights, tau), table.columns.to_raw
    error = errors(open_covariance(x, weights, hessian(x, y, weights, beta, tau), tau), to_raw)
    return Drawn(to_raw @ beta, to_raw @ beta - Z * error, to_raw @ beta + Z * error)


def in_private(table: Table, tau: Any, epsilon: float) -> tuple[list[Drawn], int]:
    """Return what one study told, a level each, and of how many people."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result, _ = fit(table, tau, epsilon, SEED)
        found = [measured(result, level) for level in range(len(result.taus))]
    return [Drawn(*(np.array(each[name]) for name in ("coef", "low", "high"))) for each in found], result.people


def side_by_side(path: Path, cells: Sequence[tuple[str, float, float]] = SIDE_BY_SIDE) -> None:
    """Draw the coefficients of some tables, a panel each, private above open."""
    heights = [len(STEPS[name]) + 1.2 for name, _, _ in cells]
    figure = Figure(figsize=(8.2, 0.42 * sum(heights) + 0.5), dpi=100, layout="constrained")
    panels = figure.subplots(len(cells), 1, height_ratios=heights, squeeze=False)[:, 0]
    for axes, (name, tau, epsilon) in zip(panels, cells, strict=True):
        table = read_table(name)
        steps = np.array([step for step, _ in STEPS[name].values()])
        (told,), people = in_private(table, tau, epsilon)
        both = [Drawn(*(part[1:] for part in each)).times(steps) for each in (told, in_the_open(table, tau))]
        frame = _frame(*both)
        axes.axvline(0, color=ZERO, lw=0.9, zorder=0.9)
        for each, colour, shift in zip(both, (PRIVATE, OPEN), (-0.15, 0.17), strict=True):
            for place, ends in enumerate(zip(*each, strict=True)):
                _bar(axes, place + shift, ends, colour, frame)
        axes.set_xlim(*frame)
        axes.set_ylim(len(steps) - 0.5, -0.5)
        axes.set_yticks(range(len(steps)), [words for _, words in STEPS[name].values()], fontsize=9)
        whose = "pupils" if name == "star" else "trips" if name == "taxi" else "flights"
        axes.set_title(f"{TITLES[name]}: τ = {tau:g}, ε = {epsilon:g}, {people:,} {whose}", fontsize=10.5, loc="left")
        axes.set_xlabel(f"change of the quantile, {table.unit}", fontsize=9)
        _clean(axes, "x")
    _legend(figure, "one private study, 95 % interval", "exact fit in the open, 95 % interval")
    figure.savefig(path)


def _frame(told: Drawn, known: Drawn) -> tuple[float, float]:
    """Return what the axis shows: the open fit, the points, and intervals that are not far longer."""
    low, high = min(0.0, *known.low, *told.value), max(0.0, *known.high, *told.value)
    reach = FAR * (high - low)
    ends = [end for side in (told.low, told.high) for end in side if low - reach / 6 <= end <= high + reach / 6]
    low, high = min(low, *ends, low), max(high, *ends, high)
    room = 0.04 * (high - low)
    return low - room, high + room


def _bar(axes: Axes, place: float, ends: tuple[float, float, float], colour: str, frame: tuple[float, float]) -> None:
    """Draw an estimate with its interval: hollow without one, an arrow where it is cut."""
    value, low, high = ends
    there = not math.isnan(low)
    if there:
        axes.hlines(place, max(low, frame[0]), min(high, frame[1]), color=colour, lw=2.4, alpha=0.75)
        for edge, beyond, mark in ((frame[0], low < frame[0], "<"), (frame[1], high > frame[1], ">")):
            if beyond:
                axes.plot(edge, place, mark, color=colour, ms=6, clip_on=False)
    axes.plot(value, place, "o", color=colour, mfc=colour if there else "white", ms=5, zorder=3)


def against_tau(path: Path, name: str = PATHS, epsilon: float = BUDGET) -> None:
    """Draw each coefficient of a table against the level: one private study of all levels, and exact fits."""
    table, steps = read_table(name), STEPS[name]
    told, people = in_private(table, LEVELS, epsilon)
    grid = np.arange(0.1, 0.901, 0.05)
    known = [in_the_open(table, float(tau)) for tau in grid]
    figure = Figure(figsize=(9.0, 5.4), dpi=100, layout="constrained")
    panels = list(figure.subplots(2, 3, sharex=True).flat)
    for axes, (column, (step, words)) in zip(panels, _with_intercept(steps), strict=True):
        at = ["intercept", *table.columns.names].index(column)
        private, openly = (_path(group, at, step) for group in (told, known))
        axes.fill_between(grid, openly.low, openly.high, color=OPEN, alpha=0.25, lw=0)
        axes.plot(grid, openly.value, color=OPEN, lw=1.6)
        axes.fill_between(LEVELS, private.low, private.high, color=PRIVATE, alpha=0.16, lw=0)
        axes.vlines(LEVELS, private.low, private.high, color=PRIVATE, lw=1.2, alpha=0.7)
        axes.plot(LEVELS, private.value, color=PRIVATE, lw=1.0, alpha=0.6)
        for tau, value, low in zip(LEVELS, private.value, private.low, strict=True):
            axes.plot(tau, value, "o", color=PRIVATE, mfc="white" if math.isnan(low) else PRIVATE, ms=5, zorder=3)
        _limits(axes, private, openly)
        axes.axhline(0, color=ZERO, lw=0.9, zorder=0.9)
        axes.set_title(words, fontsize=9.5, loc="left")
        axes.set_xticks(LEVELS, [f"{tau:g}" for tau in LEVELS], fontsize=8.5)
        axes.tick_params(labelbottom=True)
        if axes in (panels[0], panels[3]):
            axes.set_ylabel(table.unit, fontsize=9)
        axes.set_xlabel("level τ", fontsize=9)
        _clean(axes, "y")
    figure.suptitle(
        f"{TITLES[name]} by level, ε = {epsilon:g}: {people:,} flights, each asked once for all levels",
        fontsize=10.5, x=0.01, ha="left",
    )  # fmt: skip
    _legend(figure, "one private study, 95 % intervals", "exact fits in the open, 95 % band")
    figure.savefig(path)


def _path(levels: Sequence[Drawn], coefficient: int, step: float) -> Drawn:
    """Return a coefficient at every level, for a step of its covariate."""
    return Drawn(*(step * np.array([[part[coefficient] for part in level] for level in levels]).T))


def _with_intercept(steps: dict[str, tuple[float, str]]) -> list[tuple[str, tuple[float, str]]]:
    return [("intercept", (1.0, "intercept")), *steps.items()]


def _limits(axes: Axes, told: Drawn, known: Drawn) -> None:
    """Show the lines in full, and of longer intervals what there is room for."""
    values = np.concatenate([known.low, known.high, told.value, [0.0]])
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    reach = FAR / 4 * (high - low)
    ends = [end for side in (told.low, told.high) for end in side if math.isfinite(end)]
    low, high = max(min([low, *ends]), low - reach), min(max([high, *ends]), high + reach)
    axes.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))


def _clean(axes: Axes, grid: Literal["x", "y"]) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8.5)
    axes.grid(axis=grid, color="#e4e4e4", lw=0.7)
    axes.set_axisbelow(True)


def _legend(figure: Figure, private: str, exact_words: str) -> None:
    marks = [
        Line2D([], [], color=PRIVATE, marker="o", lw=2.2, ms=5),
        Line2D([], [], color=OPEN, marker="o", lw=2.2, ms=5),
        Line2D([], [], color=PRIVATE, marker="o", mfc="white", lw=0, ms=5),
    ]
    words = [private, exact_words, "no interval"]
    figure.legend(marks, words, loc="outside lower left", ncols=3, frameon=False, fontsize=9)


def main(folder: Path) -> None:
    """Draw the pictures whose tables can be read."""
    needed = {name for name, _, _ in SIDE_BY_SIDE}
    if absent := [f"{name} ({why})" for name in needed if (why := reason(name))]:
        print(f"regression-tables-coefficients.png is left out: {', '.join(absent)}.")
    else:
        side_by_side(folder / "regression-tables-coefficients.png")
    if why := reason(PATHS):
        print(f"regression-tables-paths.png is left out: {why}.")
    else:
        against_tau(folder / "regression-tables-paths.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs"))

"""The picture of a plan: width against epsilon for several numbers of people, and what other models of trust cost."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sottovoce.planner.question import Budgets, Yardstick
from sottovoce.server.picture import INK, clear, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS, FEW_POINTS = 25, 9  # of a curve; where each point takes a design of its own
SPAN = (0.25, 8.0)  # of epsilon; scaled budgets of several sites are drawn as multiples
SHADES = ("#9ecae1", "#6baed6", INK, "#3182bd", "#08519c")  # from few people to many, the planned number in ink


class ForecastPicture(NamedTuple):
    """What a plan is drawn from: its numbers, and the width of its chief interval for people and a budget."""

    headline: str
    unit: str
    people: int
    others: Sequence[int]
    budgets: Budgets
    width: float
    wished: float
    bars: Sequence[tuple[str, float]]
    points: int
    widest: Callable[[int, Budgets], float]


def bars_of(yardsticks: Sequence[Yardstick], chief: int) -> list[tuple[str, float]]:
    """Return the models of trust and their widths of one interval."""
    return [(each.model, each.widths[chief]) for each in yardsticks]


def draw_forecast(found: ForecastPicture) -> Any:
    """Draw both panels."""
    figure = new_figure(10.2, 4.3)
    left, right = figure.subplots(1, 2, width_ratios=(1.75, 1))
    _curves(left, found)
    _bars(right, found)
    figure.suptitle(plain(found.headline[:1].upper() + found.headline[1:]), fontsize=10.5, x=0.01, ha="left")
    return figure


def _curves(axes: "Axes", found: ForecastPicture) -> None:
    """Draw the widest width against the budget, a curve for each number of people."""
    budgets, place = np.geomspace(*SPAN, found.points), _place(found.budgets)
    for colour, people in zip(SHADES[-len(found.others) :], found.others, strict=True):
        widths = np.array([found.widest(people, _paid(found.budgets, budget)) for budget in budgets])
        widths[~np.isfinite(widths)] = np.nan
        mine = people == found.people
        label = f"{people:,} people" + (" (planned)" if mine else "")
        axes.plot(budgets, widths, color=INK if mine else colour, lw=2.4 if mine else 1.6, label=label)
    if math.isfinite(found.width) and SPAN[0] <= place <= SPAN[1]:
        axes.plot(place, found.width, "D", color=INK, ms=6)
    if math.isfinite(found.wished):
        axes.axhline(found.wished, color="#b3382c", lw=1.2, ls="--", label=f"wished: {found.wished:g}")
    axes.set_xscale("log", base=2)
    if any(np.isfinite(np.asarray(line.get_ydata(), dtype=float)).any() for line in axes.lines):
        axes.set_yscale("log")
    ticks = [0.25, 0.5, 1, 2, 4, 8]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")
    axes.tick_params(labelsize=8.5, which="both")
    axes.set_xlabel("epsilon" if not isinstance(found.budgets, Mapping) else "epsilon, over the planned budgets")
    axes.set_ylabel(f"width of the interval, in {found.unit}")
    axes.legend(fontsize=8, frameon=False)
    clear(axes)


def _bars(axes: "Axes", found: ForecastPicture) -> None:
    """Draw the planned width beside those of other models of trust."""
    rows = [("this plan", found.width, INK), *((model, width, SHADES[1]) for model, width in found.bars)]
    known = [width for _, width, _ in rows if math.isfinite(width)]
    most = max(known, default=1.0)
    for place, (_, width, colour) in enumerate(rows):
        open_end = not math.isfinite(width)
        axes.barh(place, most if open_end else width, color="#eeeeee" if open_end else colour, height=0.6)
        axes.annotate(
            "open" if open_end else f"{width:.3g}", (0 if open_end else width, place), (4, 0),
            textcoords="offset points", va="center", fontsize=8.5, color="#333333",
        )  # fmt: skip
    axes.set_yticks(range(len(rows)), [plain(name) for name, _, _ in rows], fontsize=9)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, 1.2 * most)
    axes.tick_params(axis="x", labelsize=8.5)
    axes.set_xlabel("width of the same people's interval")
    axes.set_title("What local privacy costs", fontsize=10, loc="left")
    clear(axes)
    axes.grid(visible=False, axis="y")


def _paid(planned: Budgets, budget: float) -> Budgets:
    """Return the budgets at a place of the axis: itself, or that many times what sites were planned to pay."""
    return budget if not isinstance(planned, Mapping) else {site: budget * paid for site, paid in planned.items()}


def _place(planned: Budgets) -> float:
    """Return where the plan stands on the axis."""
    return 1.0 if isinstance(planned, Mapping) else planned

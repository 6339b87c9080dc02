"""One picture of all groups: their intervals in the order of their estimates, thin for all together, thick for each."""

import math
from typing import TYPE_CHECKING, Any

from sottovoce.core.unit import Unit
from sottovoce.server.axis import axis_name, value_axis
from sottovoce.server.description import of_column, percent
from sottovoce.server.picture import SOFT, WARM, Drawn, clear, draw_interval, new_figure, plain, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GroupsToDraw = Any  # a GroupQuantilesResult, which draws itself by this file
FAR = 4.0  # usual lengths beyond which the frame does not follow an interval
TALL, SMALL = 0.3, 0.17  # inches a group, where there are few and where there are many
MANY = 40


def draw(result: GroupsToDraw) -> "Figure":
    """Draw all groups as the table has them; certified ones have a colour of their own."""
    order = sorted(range(len(result.names)), key=lambda at: -result.table["shrunk"][at])
    columns, figure_rows = result.table, []
    roster = result.results[0].plan.roster
    within = float if roster.unit.censored is None else roster.unit.censored.within
    for at in order:
        colour = WARM if result.results[at].method == "certified" else SOFT
        name, point = columns["group"][at], within(columns["shrunk"][at])
        shown, own = (
            Drawn(name, point, within(columns[low][at]), within(columns[high][at]), colour)
            for low, high in (("low", "high"), ("low_individual", "high_individual"))
        )
        figure_rows.append((shown, own))
    each = TALL if len(order) <= MANY else SMALL
    figure = new_figure(8.6, 1.7 + each * len(order))
    axes = figure.subplots()
    frame = _frame([row for row, _ in figure_rows])
    for place, (shown, own) in enumerate(figure_rows):
        draw_interval(axes, place, shown, frame, 1.2 if result.simultaneous else 3.0)
        if result.simultaneous and not result.shrinkage:
            draw_interval(axes, place, own, frame, 3.2)
    if result.shrinkage:
        for place, at in enumerate(order):
            own = columns["estimate"][at]
            if frame[0] <= own <= frame[1]:
                axes.plot(own, place, "|", color="#555555", ms=7)
    if result.spread is not None and frame[0] <= result.spread.mean <= frame[1]:
        axes.axvline(result.spread.mean, color="#999999", lw=0.9, ls=":")
    for limit, _ in _limits(roster.unit):
        if frame[0] <= limit <= frame[1]:
            axes.axvline(limit, color="#777777", lw=1.0, ls="--")
    size = 9 if len(order) <= MANY else 7
    axes.set_yticks(range(len(order)), [short(row.name) for row, _ in figure_rows], fontsize=size)
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.set_xlim(*frame)
    clear(axes)
    axes.grid(visible=False, axis="y")
    value_axis(axes.xaxis, roster.unit)
    axes.set_xlabel(axis_name(roster.column, roster.unit))
    axes.set_title(
        plain(f"The {result.tau:.4g} quantile{of_column(roster.column)} by {result.by}"), fontsize=11, loc="left"
    )
    figure.legend(handles=_legend(result), fontsize=8, loc="outside lower center", ncols=5, frameon=False)
    return figure


def _legend(result: GroupsToDraw) -> list[Any]:
    """Say what is drawn."""
    from matplotlib.lines import Line2D

    level, found = percent(result.level), []
    if result.simultaneous:
        found.append(Line2D([], [], color=SOFT, lw=1.2, label=f"{level}, all together"))
        if not result.shrinkage:
            found.append(Line2D([], [], color=SOFT, lw=3.2, label=f"{level}, each"))
    else:
        held = "on average" if result.helped == "average" else "each"
        found.append(Line2D([], [], color=SOFT, lw=3.0, label=f"{level}, {held}"))
    if result.shrinkage:
        found.append(Line2D([], [], color=SOFT, marker="o", lw=0, label="helped by the others"))
        found.append(Line2D([], [], color="#555555", marker="|", lw=0, ms=8, label="own answers alone"))
    if result.spread is not None:
        found.append(Line2D([], [], color="#999999", lw=0.9, ls=":", label="mean of the groups"))
    for _, symbol in _limits(result.results[0].plan.roster.unit):
        found.append(Line2D([], [], color="#777777", lw=1.0, ls="--", label=f"limit of measurement: {plain(symbol)}"))
    if any(each.method == "certified" for each in result.results):
        found.append(Line2D([], [], color=WARM, lw=2.4, label="certified"))
    return found


def _limits(unit: Unit) -> list[tuple[float, str]]:
    """Return the limits of measurement, each with its symbol."""
    if unit.censored is None:
        return []
    both = (unit.censored.low, unit.censored.below), (unit.censored.high, unit.censored.above)
    return [(limit, symbol) for limit, symbol in both if symbol]


def _frame(rows: list[Drawn]) -> tuple[float, float]:
    """Return the part of the axis that holds the estimates, and intervals of usual length."""
    lengths = sorted(row.high - row.low for row in rows if math.isfinite(row.high - row.low))
    usual = lengths[len(lengths) // 2] if lengths else math.inf
    points = sorted(row.estimate for row in rows)
    # an estimate that lies out far with an endless interval is not followed
    near = [row for row in rows if math.isfinite(row.high - row.low) and row.high - row.low <= FAR * usual] or rows
    low, high = min(row.estimate for row in near), max(row.estimate for row in near)
    reach = FAR * usual if math.isfinite(usual) else max(high - low, abs(points[0]), 1.0)
    ends = [end for row in near for end in (row.low, row.high) if math.isfinite(end)]
    first, last = max(min([low, *ends]), low - reach), min(max([high, *ends]), high + reach)
    room = 0.06 * ((last - first) or abs(last) or 1.0)
    return first - room, last + room

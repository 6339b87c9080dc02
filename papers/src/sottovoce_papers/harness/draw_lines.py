"""Lines over x: one per series, two standard errors around each point, the print as hollow marks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sottovoce_papers.harness import panels
from sottovoce_papers.harness.cell import Row, plain
from sottovoce_papers.harness.compare import place
from sottovoce_papers.harness.item import Item
from sottovoce_papers.harness.layout import DEFAULT
from sottovoce_papers.harness.palette import PRINT, colours, marks
from sottovoce_papers.harness.study import Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

    from sottovoce_papers.harness.item import Figure

STYLES = ("-", (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
Points = tuple[list[Any], list[float], list[float]]


def draw(picture: "Picture", outcome: Outcome, wish: "Figure") -> None:
    """Draw a panel for every quantity and every combination of the panel keys."""
    item = outcome.item
    names = [name for name in wish.y or item.quantities if any(_has(row, name) for row in outcome.rows)]
    rows = [row for row in outcome.rows if any(_has(row, name) for name in names)]
    spots, series = panels.spots(rows, wish.panels), panels.all_series(rows, wish)
    readings = list(dict.fromkeys(_reading(row, item) for row in rows))
    readings.sort(key=lambda name: name != item.judged)
    colour, mark = colours(series), marks(series)
    axes_of = panels.grid(picture, names, spots)
    printed = False
    for (name, spot), axes in axes_of.items():
        inside = [row for row in rows if place(row.where, wish.panels) == spot and _has(row, name)]
        ticks = _categories(inside, wish.x)
        for one in series:
            for style, reading in zip(STYLES, readings, strict=False):
                mine = [
                    row for row in inside if panels.series_of(row.where, wish) == one and _reading(row, item) == reading
                ]
                look = {"color": colour[one], "ls": style, "zorder": 4 if one == DEFAULT else 3}
                _lines(axes, mine, wish.x, name, ticks, {**look, "marker": mark[one]})
        printed = _print(axes, outcome, wish, name, spot, ticks, colour) or printed
        panels.dress(axes, item, wish, name, spot, first=spot == spots[0])
        _axes(axes, item.labels.get(wish.x, wish.x), ticks, wish, log_y=wish.log_y and name not in wish.reference)
    if not any(name in row.measures for row in rows for name in names):
        mark = dict.fromkeys(series, "")
    panels.legend(picture, _handles(wish, series, colour, mark, readings, printed))


def _lines(axes: "Axes", rows: Sequence[Row], x: str, name: str, ticks: list[str], look: dict[str, Any]) -> None:
    """Draw the line of one series: through its measures, or along a curve of each row."""
    for row in rows:
        if name not in row.measures:
            along = row.curves.get(x) or range(1, len(row.curves[name]) + 1)
            axes.plot(list(along), row.curves[name], lw=1.3, color=look["color"], ls=look["ls"], zorder=look["zorder"])
    points = sorted(
        (_at(row, x, ticks), row.measures[name].value, 2 * row.measures[name].error)
        for row in rows
        if name in row.measures and x in row.where
    )
    if not points:
        return
    at, values, errors = zip(*points, strict=True)
    size = 7.5 if look["marker"] == "*" else 4
    if any(errors):
        axes.errorbar(at, values, yerr=errors, lw=1.4, ms=size, elinewidth=0.9, ecolor=(look["color"], 0.5), **look)
    else:
        axes.plot(at, values, lw=1.4, ms=size, **look)


def _print(
    axes: "Axes",
    outcome: Outcome,
    wish: "Figure",
    name: str,
    spot: panels.Spot,
    ticks: list[str],
    colour: dict[str, str],
) -> bool:
    """Mark the printed numbers of a panel, in the colours of their series; tell whether there are any."""
    known = [
        number
        for number in outcome.numbers
        if number.quantity == name and wish.x in number.where and place(number.where, wish.panels) == spot
        if not ticks or plain(number.where[wish.x]) in ticks
    ]
    for number in known:
        edge = colour.get(panels.series_of(number.where, wish), PRINT)
        at = _at(Row(number.where, {}), wish.x, ticks)
        axes.plot(at, number.printed, "o", mfc="none", mec=edge, ms=8, mew=1.1, zorder=5)
    return bool(known)


def _axes(axes: "Axes", label: str, ticks: list[str], wish: "Figure", log_y: bool) -> None:
    axes.set_xlabel(label, fontsize=9)
    if ticks:
        axes.set_xticks(range(len(ticks)), ticks, fontsize=8, rotation=30 if max(map(len, ticks)) > 7 else 0)
    elif wish.log_x:
        axes.set_xscale("log")
    if log_y:
        axes.set_yscale("log")


def _handles(
    wish: "Figure", series: list[str], colour: dict[str, str], mark: dict[str, str], readings: list[str], printed: bool
) -> list[Any]:
    from matplotlib.lines import Line2D

    found = [
        Line2D([], [], color=colour[one], marker=mark[one], ms=5, label=panels.short_line(one)) for one in series if one
    ]
    if len(readings) > 1:
        pairs = zip(STYLES, readings, strict=False)
        found += [Line2D([], [], color="#333333", ls=style, label=panels.short_line(name)) for style, name in pairs]
    if printed:
        found.append(Line2D([], [], ls="", marker="o", mfc="none", mec=PRINT, ms=7, label="print"))
    return found + panels.nominal(wish)


def _categories(rows: Sequence[Row], x: str) -> list[str]:
    """Return the values of x where they are words; empty where all are numbers."""
    values = list(dict.fromkeys(plain(row.where[x]) for row in rows if x in row.where))
    try:
        for value in values:
            float(value)
    except ValueError:
        return values
    return []


def _at(row: Row, x: str, ticks: list[str]) -> float:
    return float(ticks.index(plain(row.where[x]))) if ticks else float(row.where[x])


def _has(row: Row, name: str) -> bool:
    return name in row.measures or name in row.curves


def _reading(row: Row, item: Item) -> str:
    """Return a row's reading; where it names none it stands for the judged one."""
    return str(row.where.get("reading", item.judged))

"""Boxes by series: the median, the quartiles, whiskers, and the mean as a white circle."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sottovoce_papers.harness import panels
from sottovoce_papers.harness.cell import Row, plain
from sottovoce_papers.harness.compare import place
from sottovoce_papers.harness.palette import INK, colours
from sottovoce_papers.harness.study import Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

    from sottovoce_papers.harness.item import Figure


def draw(picture: "Picture", outcome: Outcome, wish: "Figure") -> None:
    """Draw a panel for every curve and every combination of the panel keys; boxes by x stand together."""
    item = outcome.item
    names = [name for name in wish.y if any(row.curves.get(name) for row in outcome.rows)]
    rows = [row for row in outcome.rows if any(row.curves.get(name) for name in names)]
    spots, series = panels.spots(rows, wish.panels), panels.all_series(rows, wish)
    several = len({row.where.get("reading") for row in rows}) > 1
    colour = colours(series)
    most = max((len({_group(row, wish, several) for row in rows}) * len(series), 1))
    axes_of = panels.grid(picture, names, spots, least=min(max(panels.WIDTH, 0.32 * most + 0.7), 9.0))
    for (name, spot), axes in axes_of.items():
        inside = [row for row in rows if place(row.where, wish.panels) == spot and row.curves.get(name)]
        groups = list(dict.fromkeys(_group(row, wish, several) for row in inside))
        present = [one for one in series if any(panels.series_of(row.where, wish) == one for row in inside)]
        for row in inside:
            one = panels.series_of(row.where, wish)
            at = groups.index(_group(row, wish, several)) * (len(present) + 0.8) + present.index(one)
            _box(axes, row.curves[name], at, colour[one])
        panels.dress(axes, item, wish, name, spot, first=spot == spots[0])
        _ticks(axes, groups, present)
        if wish.log_y and name not in wish.reference:
            axes.set_yscale("log")
        axes.set_xlabel(item.labels.get(wish.x, wish.x), fontsize=9)
        axes.grid(visible=False, axis="x")
    panels.legend(picture, _handles(series, colour, wish))


def _box(axes: "Axes", values: Sequence[float], at: float, colour: str) -> None:
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return
    axes.boxplot(
        [finite],
        positions=[at],
        widths=0.72,
        patch_artist=True,
        showmeans=True,
        manage_ticks=False,
        boxprops={"facecolor": colour, "alpha": 0.55, "edgecolor": colour},
        medianprops={"color": INK, "lw": 1.2},
        whiskerprops={"color": colour},
        capprops={"color": colour},
        flierprops={"marker": ".", "ms": 2.5, "mec": colour, "alpha": 0.6},
        meanprops={"marker": "o", "mfc": "white", "mec": INK, "ms": 4.2, "mew": 0.8},
    )


def _ticks(axes: "Axes", groups: Sequence[str], present: Sequence[str]) -> None:
    """Name the groups under their middles."""
    step = len(present) + 0.8
    if len(groups) < 2 and not any(groups):
        axes.set_xticks([])
        return
    turned = 30 if max(map(len, groups)) > 8 else 0
    middles = [i * step + (len(present) - 1) / 2 for i in range(len(groups))]
    axes.set_xticks(middles, [panels.short_line(group) for group in groups], fontsize=8, rotation=turned)


def _group(row: Row, wish: "Figure", several: bool) -> str:
    """Return which boxes stand together: those of one x, and of one reading where there are several."""
    parts = [plain(row.where[wish.x])] if wish.x in row.where else []
    return ", ".join(parts + ([str(row.where["reading"])] if several and "reading" in row.where else []))


def _handles(series: Sequence[str], colour: dict[str, str], wish: "Figure") -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    found: list[Any] = [
        Patch(facecolor=colour[one], alpha=0.55, edgecolor=colour[one], label=panels.short_line(one))
        for one in series
        if one
    ]
    found.append(Line2D([], [], ls="", marker="o", mfc="white", mec=INK, ms=4.5, label="mean"))
    return found + panels.nominal(wish)

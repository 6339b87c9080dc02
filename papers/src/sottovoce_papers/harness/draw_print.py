"""The print against ours: one point per number, the diagonal, the band of 5 per cent, and what lies off it marked."""

import math
from typing import TYPE_CHECKING, Any

from sottovoce.server.picture import clear
from sottovoce_papers.harness import panels
from sottovoce_papers.harness.compare import ALONE, PART, Number
from sottovoce_papers.harness.palette import COLOURS, NOMINAL, OURS
from sottovoce_papers.harness.study import Outcome
from sottovoce_papers.harness.words import KNOWN, OFF, mark

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

WIDE = 30.0  # numbers that differ by more than this factor are drawn on logarithmic axes
LOOKS: dict[str, dict[str, Any]] = {
    "": {"marker": "o", "mfc": COLOURS[0], "mec": COLOURS[0], "ms": 4, "label": "agrees"},
    KNOWN: {"marker": "s", "mfc": "none", "mec": COLOURS[4], "ms": 5, "label": "explained"},
    OFF: {"marker": "X", "mfc": OURS, "mec": OURS, "ms": 6.5, "label": "does not agree"},
}


def draw(picture: "Picture", outcome: Outcome) -> None:
    """Draw a panel for each printed quantity."""
    item = outcome.item
    judged = item.judged or ALONE
    known = [number for number in outcome.numbers if judged in number.found and math.isfinite(number.printed)]
    names = list(dict.fromkeys(number.quantity for number in known))
    spots: list[panels.Spot] = [(name,) for name in names]
    for (_, (name,)), axes in panels.grid(picture, [""], spots, least=3.2).items():
        _panel(axes, [number for number in known if number.quantity == name], judged)
        axes.set_title(panels.short_line(item.labels.get(name, name)), fontsize=9.5, loc="left")
    panels.legend(picture, _handles({mark(number) for number in known}))


def _panel(axes: "Axes", numbers: list[Number], judged: str) -> None:
    from matplotlib.ticker import NullFormatter

    values = [value for number in numbers for value in (number.printed, number.found[judged].value)]
    low, high = min(values), max(values)
    logarithmic = low > 0 and high / low > WIDE
    room = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    ends = (low / 1.3, high * 1.3) if logarithmic else (low - room, high + room)
    if logarithmic:
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_minor_formatter(NullFormatter())
    edges = [ends[0] + (ends[1] - ends[0]) * i / 64 for i in range(65)]
    band = [(edge - PART * abs(edge), edge + PART * abs(edge)) for edge in edges]
    low_edge, high_edge = zip(*band, strict=True)
    axes.fill_between(edges, low_edge, high_edge, color="#dddddd", alpha=0.6, lw=0)
    axes.plot(ends, ends, color=NOMINAL, lw=1)
    for sign, look in LOOKS.items():
        alike = [(number.printed, number.found[judged]) for number in numbers if mark(number) == sign]
        if alike:
            at, ours = zip(*alike, strict=True)
            lows, highs = [one.value - 2 * one.error for one in ours], [one.value + 2 * one.error for one in ours]
            axes.vlines(at, lows, highs, color=look["mec"], lw=0.8, alpha=0.35)
            axes.plot(at, [one.value for one in ours], ls="", **look)
    axes.set_xlim(*ends)
    axes.set_ylim(*ends)
    axes.set_xlabel("print", fontsize=9)
    axes.set_ylabel("ours", fontsize=9)
    axes.tick_params(labelsize=8)
    clear(axes)


def _handles(present: set[str]) -> list[object]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    found: list[object] = [Line2D([], [], ls="", **look) for sign, look in LOOKS.items() if sign in present]
    return [*found, Patch(color="#dddddd", alpha=0.6, label=f"{PART:.0%} of the print".replace("%", " %"))]

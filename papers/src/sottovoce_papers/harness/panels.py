"""The panels of a picture: rows of an item sorted into them, a grid of axes, and what every panel wears."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sottovoce.server.picture import clear, short
from sottovoce_papers.harness.cell import Row, Value, plain
from sottovoce_papers.harness.compare import place
from sottovoce_papers.harness.item import Item
from sottovoce_papers.harness.layout import DEFAULT
from sottovoce_papers.harness.palette import NOMINAL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

    from sottovoce_papers.harness.item import Figure

DASHES = (0, (5, 3))
ACROSS, WIDTH, HEIGHT = 4, 2.9, 2.5
Spot = tuple[str, ...]


def spots(rows: Iterable[Row], keys: Sequence[str]) -> list[Spot]:
    """Return the panels: every combination of the keys that is there, in the order of the rows."""
    return list(dict.fromkeys(place(row.where, keys) for row in rows))


def series_of(where: Mapping[str, Value], wish: "Figure") -> str:
    """Return the series of a row."""
    return plain(where[wish.series]) if wish.series in where else ""


def all_series(rows: Iterable[Row], wish: "Figure") -> list[str]:
    """Return the series, the default last."""
    return sorted(dict.fromkeys(series_of(row.where, wish) for row in rows), key=lambda name: name == DEFAULT)


def grid(picture: "Picture", names: Sequence[str], spots: Sequence[Spot], least: float = WIDTH) -> dict[Any, "Axes"]:
    """Return axes by quantity and panel: one row per quantity; of one quantity or panel, rows that are filled up."""
    wanted = [(name, spot) for name in names for spot in spots]
    across, down = len(spots), len(names)
    if 1 in (across, down):
        across = len(wanted)
        if across > ACROSS:
            across = min(range(3, ACROSS + 1), key=lambda n: (-len(wanted) % n, -n))
        down = -(-len(wanted) // across)
    wide = max(least * across, 5.2) + 0.4
    picture.set_size_inches(wide, HEIGHT * down + 0.9 if down > 1 or across > 1 else 3.6)
    flat = list(picture.subplots(down, across, squeeze=False).flat)
    for axes in flat[len(wanted) :]:
        axes.set_visible(False)
    return dict(zip(wanted, flat, strict=False))


def dress(axes: "Axes", item: Item, wish: "Figure", name: str, panel: Spot, first: bool) -> None:
    """Write what a panel is of, and what is nominal in it."""
    title = ", ".join(
        f"{item.labels.get(key, key)} {value}".strip() for key, value in zip(wish.panels, panel, strict=True) if value
    )
    axes.set_title(short_line(title), fontsize=9, loc="left")
    if first:
        axes.set_ylabel(short(item.labels.get(name, name)), fontsize=9)
    if name in wish.reference:
        axes.axhline(wish.reference[name], color=NOMINAL, lw=1.1, ls=DASHES, zorder=1)
    axes.tick_params(labelsize=8)
    clear(axes)


def nominal(wish: "Figure") -> list[Any]:
    """Return what the legend says of nominal values."""
    from matplotlib.lines import Line2D

    values = dict.fromkeys(wish.reference.values())
    return [Line2D([], [], color=NOMINAL, ls=DASHES, lw=1.1, label=f"nominal {value:g}") for value in values]


def short_line(text: str) -> str:
    """Shorten a panel's title to what fits over it, and take from it what matplotlib would read as mathematics."""
    return (text if len(text) <= 44 else text[:43] + "…").replace("$", r"\$")


def legend(picture: "Picture", handles: Sequence[Any]) -> None:
    """Write one legend under all panels."""
    if handles:
        across = max(1, min(len(handles), round(picture.get_size_inches()[0] / 1.35)))
        picture.legend(handles=handles, loc="outside lower center", ncols=across, fontsize=8.5, frameon=False)

"""What all pictures share: colours, where they may be written, how little is drawn that is not data, marks of ends."""

import io
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sottovoce.core.errors import BadInput

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")
INK, SOFT, BAND, WARM = "#1f4e79", "#5b7fa3", "#c9dcee", "#c4501b"


def check_path(path: str | os.PathLike[str], *, make_folder: bool = False) -> Path:
    """Refuse a path to which no plot can be written; to be called before anything is spent."""
    target = check_target(path, SUFFIXES, "plot", make_folder=make_folder)
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise BadInput("a plot needs matplotlib: install it with: pip install matplotlib") from None
    return target


def _writable(target: Path) -> bool:
    """Tell whether a file can be written, by opening it: rights alone do not tell, as in a folder without files."""
    fresh = not target.exists()
    try:
        target.open("ab").close()
    except OSError:
        return False
    if fresh:
        target.unlink(missing_ok=True)
    return True


def check_target(path: Any, suffixes: tuple[str, ...], what: str, *, make_folder: bool = False) -> Path:
    """Refuse a path to which a file of some kind cannot be written."""
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise BadInput(f"a {what} is written to a file that ends in {', '.join(suffixes)}; give its path.")
    target = Path(path).expanduser()
    if target.suffix.lower() not in suffixes:
        raise BadInput(f"a {what} is written to a file that ends in {', '.join(suffixes)}, not to {target}; rename it.")
    folder = target.parent
    try:
        if make_folder:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"the folder {folder} cannot be made ({error.strerror}); give another path.") from None
    try:
        there, able = folder.is_dir(), not target.is_dir() and _writable(target)
    except (OSError, ValueError):  # a name that is too long, or none at all
        raise BadInput(f"the {what} cannot be written to this path; give another one.") from None
    if not there:
        raise BadInput(f"there is no folder {folder} to write the {what} to; make it, or give another path.")
    if not able:
        raise BadInput(f"the {what} cannot be written to {target}; give another path.")
    return target


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure, of a size in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: "Figure", target: Path) -> Path:
    """Write a figure to its file and return the path, or say why that cannot be done."""
    try:
        figure.savefig(target, format=target.suffix[1:].lower())
    except OSError as error:
        raise BadInput(
            f"the plot cannot be written to {target} ({error.strerror or error}); give another path."
        ) from None
    return target


def as_png(figure: "Figure") -> bytes:
    """Return a figure as the bytes of a PNG file."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=130)
    return file.getvalue()


def clear(axes: "Axes") -> None:
    """Take away what is not data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e6e6e6", lw=0.7)
    axes.set_axisbelow(True)


def plain(text: str) -> str:
    """Take from a text what matplotlib would read as mathematics."""
    return text.replace("$", r"\$")


def short(name: str, most: int = 28) -> str:
    """Shorten a long name, and take from it what matplotlib would read as mathematics."""
    return plain(name if len(name) <= most else name[: most - 1] + "…")


class Drawn(NamedTuple):
    """An interval to draw; NaN for an estimate without one, infinite for an end that is not known."""

    name: str
    estimate: float
    low: float
    high: float
    colour: str = SOFT

    @property
    def bounded(self) -> bool:
        """Tell whether anything is known of an interval."""
        return math.isfinite(self.low) or math.isfinite(self.high)


def draw_interval(axes: "Axes", place: float, row: Drawn, frame: tuple[float, float], thick: float = 2.4) -> None:
    """Draw one interval; an arrow where it goes on beyond the frame, a hollow point where nothing is known of it."""
    left, right = frame
    low, high = max(row.low, left), min(row.high, right)
    if row.bounded and low < high:
        axes.hlines(place, low, high, color=row.colour, lw=thick, alpha=0.85)
    for edge, beyond, sign in ((left, row.low < left, "<"), (right, row.high > right, ">")):
        if row.bounded and beyond and (low < high or (row.estimate < left) == (sign == "<")):
            axes.plot(edge, place, sign, color=row.colour, ms=6, clip_on=False)
    if left <= row.estimate <= right:
        face = row.colour if row.bounded else "white"
        axes.plot(row.estimate, place, "D" if row.colour == INK else "o", color=row.colour, mfc=face, ms=6)
    elif not row.bounded:
        axes.plot(left if row.estimate < left else right, place, "o", color=row.colour, mfc="white", ms=6)


def frame_of(rows: Sequence[Drawn]) -> tuple[float, float]:
    """Return the part of the axis that holds all rows, with a little room."""
    ends = [end for row in rows for end in (row.low, row.estimate, row.high) if math.isfinite(end)]
    low, high = min(ends), max(ends)
    room = 0.08 * ((high - low) or abs(high) or 1.0)
    return low - room, high + room


def forest(
    title: str, rows: Sequence[Drawn], format_: Callable[[float], str], frame: tuple[float, float] | None = None
) -> "Figure":
    """Draw intervals one below the other, each with its numbers; what the axis is called is for the caller."""
    figure = new_figure(8.6, 1.5 + 0.42 * len(rows))
    axes = figure.subplots()
    frame = frame_of(rows) if frame is None else frame
    for place, row in enumerate(rows):
        draw_interval(axes, place, row, frame)
        ends = f"[{format_(row.low)}, {format_(row.high)}]" if row.bounded else "no interval"
        where = min(max(row.estimate, frame[0]), frame[1])
        part = (where - frame[0]) / (frame[1] - frame[0])
        axes.annotate(
            plain(f"{format_(row.estimate)} {ends}"), (where, place), (0, 7), textcoords="offset points",
            ha="left" if part < 0.25 else "right" if part > 0.75 else "center", fontsize=8, color="#333333",
        )  # fmt: skip
    axes.set_yticks(range(len(rows)), [short(row.name) for row in rows], fontsize=9)
    axes.set_ylim(len(rows) - 0.4, -0.75)
    axes.set_xlim(*frame)
    axes.set_title(plain(title), fontsize=11, loc="left")
    clear(axes)
    axes.grid(visible=False, axis="y")
    return figure

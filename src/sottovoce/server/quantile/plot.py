"""One picture of a run: how the interval closed in as reports came in, and which site makes it as wide as it is."""

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sottovoce.core.errors import BadInput

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sottovoce.server.quantile.result import QuantileResult

SUFFIXES = (".png", ".svg", ".pdf")
INK, SOFT, BAND, WARM = "#1f4e79", "#5b7fa3", "#c9dcee", "#c4501b"
BARS = 20  # more sites than a page has room for are drawn as one bar


def plot(
    result: "QuantileResult",
    path: str | os.PathLike[str],
    *,
    reference: tuple[str, float] | None = None,
    measure: str | None = None,
) -> Path:
    """Draw a result to a file and return its path.

    Parameters
    ----------
    result
        What `federated_quantile` returned.
    path
        A file that ends in .png, .svg or .pdf.
    reference
        A label and a value to draw beside the estimate, such as an answer without privacy.
    measure
        What the records measure, in words, for the axis.
    """
    target = check_path(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.5, 5.2), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=(1.45, 1))
    _trajectory(left, result, reference, measure)
    _noise(right, result)
    return save(figure, target)


def save(figure: "Figure", target: Path) -> Path:
    """Write a figure to its file and return the path, or say why that cannot be done."""
    try:
        figure.savefig(target, format=target.suffix[1:].lower())
    except OSError as error:
        raise BadInput(
            f"the plot cannot be written to {target} ({error.strerror or error}); give another path."
        ) from None
    return target


def check_path(path: str | os.PathLike[str], *, make_folder: bool = False) -> Path:
    """Refuse a path to which no plot can be written; to be called before anything is spent."""
    target = Path(path).expanduser()
    if target.suffix.lower() not in SUFFIXES:
        raise BadInput(f"a plot is written to a file that ends in {', '.join(SUFFIXES)}, not to {target}; rename it.")
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise BadInput("a plot needs matplotlib: pip install 'sottovoce[plot]'") from None
    folder = target.parent
    if make_folder:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"the folder {folder} cannot be made ({error.strerror}); give another path.") from None
    if not folder.is_dir():
        raise BadInput(f"there is no folder {folder} to write the plot to; make it, or give another path.")
    if target.is_dir() or not os.access(target if target.exists() else folder, os.W_OK):
        raise BadInput(f"the plot cannot be written to {target}; give another path.")
    return target


def _trajectory(
    axes: "Axes", result: "QuantileResult", reference: tuple[str, float] | None, measure: str | None
) -> None:
    """Draw the estimate and its interval against the reports so far."""
    from matplotlib.ticker import LogLocator, NullLocator

    rows = result.trajectory
    low, high = result.interval
    known = np.isfinite(rows["average"]) & (np.isfinite(rows["low"]) | np.isfinite(rows["high"]))
    reports, average = rows["reports"][known], rows["average"][known]
    bottom, top = _frame(result, average)
    lows, highs = np.clip(rows["low"][known], bottom, top), np.clip(rows["high"][known], bottom, top)
    shown = f"{result.level:.4g} interval"
    axes.axhspan(max(low, bottom), min(high, top), color=BAND, alpha=0.6, lw=0, label=f"{shown}, all reports")
    if len(reports) > 30:
        axes.fill_between(reports, lows, highs, color=SOFT, alpha=0.35, lw=0, label=f"{shown}, so far")
        axes.plot(reports, average, color=INK, lw=1.4, label="estimate so far")
    else:
        axes.vlines(reports, lows, highs, color=SOFT, lw=2.2, label=f"{shown}, so far")
        axes.plot(reports, average, "o", color=INK, ms=4.5, label="estimate so far")
    if reference is not None:
        axes.axhline(
            reference[1], color=WARM, lw=1.4, ls=(0, (5, 3)), label=f"{reference[0]}: {result.format(reference[1])}"
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(_count)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(bottom, top)
    axes.yaxis.set_major_formatter(lambda value, _: result.format(value))
    axes.set_xlabel("reports so far (one a record)")
    kind = result.panel.table.unit.kind
    axes.set_ylabel(measure or {"number": "value", "date": "date", "datetime": "date and time"}.get(kind, kind))
    axes.set_title(
        f"The {result.tau:.4g} quantile: {result.format(result.estimate)}, "
        f"{shown} [{result.format(low)}, {result.format(high)}]",
        fontsize=11,
        loc="left",
    )
    axes.legend(fontsize=8.5, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)
    clear(axes)


def _frame(result: "QuantileResult", average: Any) -> tuple[float, float]:
    """Return the part of the axis worth seeing: the last interval, and as much of the way to it as is not far off."""
    ends = [end for end in result.interval if math.isfinite(end)] + [result.estimate]
    width = max(max(ends) - min(ends), 4 * result.panel.resolution, 1e-9 * abs(result.estimate), 1e-300)
    near = average[np.abs(average - result.estimate) <= 3 * width]
    low, high = min([*ends, *near]), max([*ends, *near])
    return low - 0.8 * width, high + 0.8 * width


def _noise(axes: "Axes", result: "QuantileResult") -> None:
    """Draw what part of the noise variance each site causes, with its budget and size."""
    sizes = {name: records.size for name, records in zip(result.panel.names, result.panel.table.records, strict=True)}
    order = sorted(result.variance_shares, key=lambda name: -result.variance_shares[name])
    kept = order if len(order) <= BARS else order[: BARS - 1]
    others = order[len(kept) :]
    names = [short(name) for name in kept]
    parts = [100 * result.variance_shares[name] for name in kept]
    notes = [f"ε {result.epsilon[name]:.3g}, {sizes[name]:,}" for name in kept]
    if others:
        names.append(f"{len(others):,} other sites")
        parts.append(100 * sum(result.variance_shares[name] for name in others))
        notes.append(f"{sum(sizes[name] for name in others):,}")
    axes.barh(range(len(names)), parts, color=SOFT, height=0.72)
    for place, (part, note) in enumerate(zip(parts, notes, strict=True)):
        axes.text(part + 0.012 * max(parts), place, note, va="center", fontsize=7.5, color="#333333")
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(max(len(names), 5) - 0.4, -0.6)
    axes.set_xlim(0, 1.35 * max(parts))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} %")
    axes.set_xlabel("part of the noise variance")
    axes.set_title("Noise by site (ε, records)", fontsize=11, loc="left")
    clear(axes)
    axes.grid(visible=False, axis="y")


def clear(axes: "Axes") -> None:
    """Take away what is not data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e6e6e6", lw=0.7)
    axes.set_axisbelow(True)


def _count(value: float, _: float) -> str:
    """Write a number of reports briefly."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def short(name: str) -> str:
    """Shorten a long name, and take from it what matplotlib would read as mathematics."""
    text = name if len(name) <= 28 else name[:27] + "…"
    return text.replace("$", r"\$")

"""The picture of a regression: slopes in one unit, or every coefficient against the level of the quantile."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sottovoce.core.bounds import Bounds
from sottovoce.core.unit import NUMBER
from sottovoce.server.axis import value_axis
from sottovoce.server.description import percent
from sottovoce.server.picture import INK, SOFT, Drawn, clear, draw_interval, frame_of, new_figure, plain, short
from sottovoce.server.regression.summary import CoefficientRow, RegressionFacts, Table, row_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS = 3  # panels beside each other
FAR = 6.0  # times the middle interval, beyond which a long interval is cut and marked with an arrow


def draw(facts: RegressionFacts, bounds: Bounds, rows: Sequence[Table], level: float) -> "Figure":
    """Draw the coefficients with their intervals."""
    if len(rows) == 1:
        figure = new_figure(9.0, 1.9 + 0.42 * len(rows[0]))
        _side_by_side(figure.subplots(), facts, bounds, rows[0], level)
    else:
        figure = new_figure(3.7 * ACROSS, 0.6 + 2.8 * math.ceil(len(rows[0]) / ACROSS))
        _against_tau(figure, facts, rows, level)
    return figure


def _side_by_side(axes: "Axes", facts: RegressionFacts, bounds: Bounds, rows: Table, level: float) -> None:
    """Draw what each covariate does to the quantile from its lower bound to its upper one, in one unit."""
    # raw slopes have units of their own; over the bounds all are in the unit of the response, and those of 0 and 1 stay
    widths = dict(zip(bounds.names, (2 * bounds.half).tolist(), strict=True))
    drawn = [_drawn(name, rows[name], width) for name, width in widths.items()]
    known = [row for row in drawn if math.isfinite(row.estimate)]
    frame = frame_of([*known, Drawn("", 0.0, 0.0, 0.0)])
    axes.axvline(0, color="#999999", lw=0.8)
    for place, (row, width) in enumerate(zip(drawn, widths.values(), strict=True)):
        if row not in known:
            axes.annotate("not known", (0, place), (4, 4), textcoords="offset points", fontsize=7.5, color="#333333")
            continue
        draw_interval(axes, place, row, frame, thick=4.5)
        part = (row.estimate - frame[0]) / (frame[1] - frame[0])
        axes.annotate(
            plain(row_text(rows[row.name], width)), (row.estimate, place), (0, 8), textcoords="offset points",
            ha="left" if part < 0.25 else "right" if part > 0.75 else "center", fontsize=7.5, color="#333333",
        )  # fmt: skip
    axes.set_yticks(range(len(widths)), [short(name) for name in widths], fontsize=8.5)
    axes.set_ylim(len(widths) - 0.4, -0.75)
    axes.set_xlim(*frame)
    value_axis(axes.xaxis, NUMBER)
    what = short(facts.response, 40) if facts.response else "the response"
    axes.set_xlabel(f"change of the quantile of {what} from a covariate's lower bound to its upper one")
    hollow = any(not row.bounded for row in known)
    said = f"with {percent(level)} intervals" + (" (hollow: no interval)" if hollow else "")
    if not any(row.bounded for row in known):
        said = "without intervals (too few people)"
    axes.set_title(f"{_title(facts)}: effects {said}", fontsize=11, loc="left")
    clear(axes)
    axes.grid(visible=False, axis="y")


def _drawn(name: str, row: CoefficientRow, factor: float) -> Drawn:
    """Return a coefficient, times a factor, as it is drawn."""
    low, high = (-math.inf, math.inf) if row.interval is None else row.interval
    return Drawn(name, row.value * factor, low * factor, high * factor, INK if row.bounded else SOFT)


def _against_tau(figure: "Figure", facts: RegressionFacts, rows: Sequence[Table], level: float) -> None:
    """Draw each coefficient, in a panel of its own, against the quantile level."""
    names = list(rows[0])
    grid = figure.subplots(math.ceil(len(names) / ACROSS), ACROSS, squeeze=False, sharex=True)
    for axes, name in zip(grid.flat, names, strict=False):
        _panel(axes, facts.taus, [row[name] for row in rows])
        low, high = axes.get_ylim()
        if name != names[0] and low < 0 < high:
            axes.axhline(0, color="#999999", lw=0.8)
        value_axis(axes.yaxis, NUMBER)
        axes.set_title(short(name), fontsize=9.5, loc="left")
        axes.set_xlabel("tau")
        axes.tick_params(labelbottom=True)  # shared axes are labelled at the bottom alone, where a panel may be hidden
        clear(axes)
    for axes in list(grid.flat)[len(names) :]:
        axes.set_visible(False)
    known = [row.bounded for each in rows for row in each.values()]
    shown = (
        f"coefficients with {percent(level)} intervals" if any(known) else "coefficients, too few people for intervals"
    )
    if any(known) and not all(known):
        shown += " (hollow: no interval)"
    figure.suptitle(f"{_title(facts)}: {shown}", fontsize=11, x=0.01, ha="left")


def _panel(axes: "Axes", taus: Sequence[float], rows: Sequence[CoefficientRow]) -> None:
    """Draw one coefficient at every level: hollow where it is in doubt, an arrow where a long interval is cut."""
    ends = [row.interval for row in rows if row.interval is not None and row.bounded]
    values = [row.value for row in rows if math.isfinite(row.value)]
    # one without ends goes across the panel, with an arrow at each edge
    lengths = sorted(high - low for low, high in ends)
    reach = FAR * lengths[len(lengths) // 2] if lengths else math.inf
    bottom = max(min([*values, *(low for low, _ in ends)], default=0.0), min(values, default=0.0) - reach)
    top = min(max([*values, *(high for _, high in ends)], default=1.0), max(values, default=0.0) + reach)
    room = 0.08 * ((top - bottom) or abs(top) or 1.0)
    bottom, top = bottom - room, top + room
    axes.plot(taus, [row.value for row in rows], "-", color=INK, lw=0.8, alpha=0.5)
    for tau, row in zip(taus, rows, strict=True):
        if row.interval is not None:
            axes.vlines(tau, max(row.interval[0], bottom), min(row.interval[1], top), color=SOFT, lw=4, alpha=0.55)
            for edge, beyond, sign in ((bottom, row.interval[0] < bottom, "v"), (top, row.interval[1] > top, "^")):
                if beyond:
                    axes.plot(tau, edge, sign, color=SOFT, ms=6, clip_on=False)
        axes.plot(tau, row.value, "o", color=INK, mfc=INK if row.determined else "white", ms=4.5)
    axes.set_ylim(bottom, top)


def _title(facts: RegressionFacts) -> str:
    """Say what the picture is of, in a few words."""
    what = f"The {facts.taus[0]:.4g} quantile" if len(facts.taus) == 1 else "Quantiles"
    whose = f" of {short(facts.response)}" if facts.response else ""
    return f"{what}{whose}, {facts.people:,} people, ε {facts.epsilon:.3g}"

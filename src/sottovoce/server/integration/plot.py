"""Pictures of a target and its sources: what each knows alone and all know together, and what a bound would buy."""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sottovoce.core.errors import BadInput
from sottovoce.inference.integration.sensitivity import BEFOREHAND, SensitivityCurve
from sottovoce.server.axis import axis_name, value_axis
from sottovoce.server.description import percent
from sottovoce.server.integration.combine import KnownSite
from sottovoce.server.integration.integrated import Integrated
from sottovoce.server.integration.summary import against_own, curve_of, width_text
from sottovoce.server.picture import BAND, INK, SOFT, WARM, Drawn, clear, draw_interval, new_figure, plain, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROWS = 20  # more sources than a page has room for share the last row
FAR = 3.0  # lengths of the target's interval beyond which the frame does not follow a source
LONG = 50  # characters after which a title goes on in another line
GREY = "#8c8c8c"
NO_GAIN = 0.995  # of its own length, from which on nothing is gained
FEW = 12  # bounds that are drawn one by one


class ForestRow(NamedTuple):
    """One line of the forest; without an interval it is words only."""

    name: str
    estimate: float
    low: float
    high: float
    colour: str
    notes: tuple[str, str, str]


def draw(result: Integrated) -> "Figure":
    """Draw every site's interval beside the combined one, and the sensitivity curve."""
    rows, curve = _rows(result), _curve(result)
    if curve is not None and curve.refuted >= _end(curve):  # no bound that would buy anything agrees with the data
        curve = None
    high = 1.7 + 0.3 * len(rows)
    figure = new_figure(*((8.6, high) if curve is None else (13.4, max(4.9, high))))
    panels = figure.subplots(1, 2 if curve is None else 3, width_ratios=(5.4, 2.0, 5.0)[: 2 if curve is None else 3])
    places = _forest(panels[0], result, rows)
    _columns(panels[1], rows, places)
    if curve is not None:
        _draw_curve(panels[2], result, curve)
        panels[2].set_title("What a bound on all differences would buy", fontsize=11, loc="left")
        figure.supxlabel(BEFOREHAND, x=0.995, ha="right", fontsize=8.5, color="#333333")
    return figure


def draw_sensitivity(result: Integrated, curve: SensitivityCurve) -> "Figure":
    """Draw the interval, and below it its relative length, against the assumed bound."""
    figure = new_figure(8.2, 6.2)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(2.6, 1))
    _draw_curve(top, result, curve, bottom=False)
    _draw_lengths(bottom, result, curve)
    top.set_title(
        f"The {result.tau:.4g} quantile of {short(result.target.name)}: "
        f"{percent(result.level)} interval by assumed bound on all differences",
        fontsize=11,
        loc="left",
    )
    figure.supxlabel(BEFOREHAND, fontsize=8, color="#333333")
    return figure


def _curve(result: Integrated) -> SensitivityCurve | None:
    """Return the sensitivity curve where there is one."""
    try:
        return curve_of(result)
    except BadInput:
        return None


def _rows(result: Integrated) -> list[ForestRow]:
    """List target, sources, those that share a row, and the combination."""
    sources, weights = result.known[1:], result.weights
    heaviest = sorted(sources, key=lambda site: -weights[site.name])
    kept = heaviest if len(sources) <= ROWS else heaviest[: ROWS - 1]
    others, names = heaviest[len(kept) :], {site.name for site in kept}
    shown = [result.target, *(site for site in sources if site.name in names)]
    rows = [_row(result, site, weights[site.name]) for site in shown]
    if others:
        weight = sum(weights[site.name] for site in others)
        notes = (f"{sum(site.records or 0 for site in others):,}", "", f"{100 * weight:.1f} %")
        rows.append(ForestRow(f"and {len(others):,} more", math.nan, math.nan, math.nan, SOFT, notes))
    words = "with help" if result.sources else "without help"
    return [*rows, ForestRow(words, result.estimate, *result.interval, INK, ("", "", ""))]


def _row(result: Integrated, site: KnownSite, weight: float) -> ForestRow:
    is_target = site is result.target
    share = f"{100 * weight:.1f} %" if is_target or site.usable else "left out"
    budget = "summary" if site.epsilon is None else "open" if math.isinf(site.epsilon) else f"{site.epsilon:.3g}"
    return ForestRow(
        short(site.name) + (" (target)" if is_target and site.name != "target" else ""),
        result.rounded(site.measured.estimate),
        result.rounded(site.low),
        result.rounded(site.high),
        WARM if is_target else SOFT,
        ("" if site.records is None else f"{site.records:,}", budget, share),
    )


def _forest(axes: "Axes", result: Integrated, rows: list[ForestRow]) -> list[float]:
    """Draw the intervals below each other, the combined one as a band; return where each stands."""
    frame = _frame(rows)
    places = [*map(float, range(len(rows) - 1)), len(rows) - 0.6]
    low, high = result.interval
    axes.axvspan(max(low, frame[0]), min(high, frame[1]), color=BAND, alpha=0.6, lw=0)
    axes.axhline(places[-1] - 0.7, color="#999999", lw=0.8)
    for place, row in zip(places, rows, strict=True):
        if not math.isnan(row.estimate):
            thick = 3.2 if row is rows[0] or row is rows[-1] else 2.0
            draw_interval(axes, place, Drawn(*row[:5]), frame, thick)
        if math.isfinite(row.estimate) and not frame[0] <= row.estimate <= frame[1]:
            side = "right" if row.estimate > frame[1] else "left"
            axes.annotate(
                plain(f"estimate {result.format(row.estimate)}"), (frame[side == "right"], place),
                (-8 if side == "right" else 8, 0), textcoords="offset points", ha=side, va="center", fontsize=8,
            )  # fmt: skip
    axes.set_yticks(places, [row.name for row in rows], fontsize=8.5)
    for row, label in zip(rows, axes.get_yticklabels(), strict=True):
        label.set_color(row.colour if row.colour != SOFT else "#333333")
    axes.set_xlim(*frame)
    axes.set_ylim(places[-1] + 0.6, -0.6)
    value_axis(axes.xaxis, result.unit)
    name = axis_name(result.column, result.unit)
    hollow = " (hollow: no interval)" if _hollow(rows) else ""
    axes.set_xlabel(f"{name}, {percent(result.level)} intervals{hollow}")
    axes.set_title(_title(result), fontsize=11, loc="left", pad=20)
    clear(axes)
    axes.grid(visible=False, axis="y")
    return places


def _title(result: Integrated) -> str:
    """Say the estimate, its interval and what the sources did to its length."""
    low, high = result.interval
    name = short(result.target.name) if result.target.name != "target" else "the target"
    text = f"{percent(result.level)} interval [{result.format(low)}, {result.format(high)}]"
    if result.sources:
        text += f",{' ' if len(text) < LONG else chr(10)}{_gain(result)}"
    what = f" of {short(result.column)}" if result.column else ""
    return f"The {result.tau:.4g} quantile{what} of {name}: {plain(f'{result.format(result.estimate)}{chr(10)}{text}')}"


def _gain(result: Integrated) -> str:
    """Say what the sources did to the length of the interval, and plainly where they did nothing."""
    ratio = result.length_ratio
    if math.isnan(ratio) or ratio < NO_GAIN:
        return against_own(result)
    curve = _curve(result)
    differ = curve is not None and curve.refuted >= _end(curve)
    why = "the sources differ too much from the target" if differ else "the sources add next to nothing here"
    return f"no gain ({against_own(result)}):{chr(10)}{why}"


def _hollow(rows: list[ForestRow]) -> bool:
    """Tell whether a row has an estimate and no interval."""
    return any(math.isfinite(row.estimate) and math.isinf(row.low) and math.isinf(row.high) for row in rows)


def _columns(axes: "Axes", rows: list[ForestRow], places: list[float]) -> None:
    """Write beside each interval whose it is: records, budget, weight."""
    for where, title, texts in zip(
        (0.3, 0.66, 1.0), ("records", "ε", "weight"), zip(*(row.notes for row in rows), strict=True), strict=True
    ):
        axes.annotate(title, (where, -0.6), (0, 4), textcoords="offset points", ha="right", fontsize=8, color="#666666")
        for place, text in zip(places, texts, strict=True):
            axes.text(where, place, text, ha="right", va="center", fontsize=8)
    axes.set_xlim(0, 1)
    axes.set_ylim(places[-1] + 0.6, -0.6)
    axes.set_axis_off()


def _frame(rows: list[ForestRow]) -> tuple[float, float]:
    """Return the part of the axis worth seeing: the target, the combination, and the sources that are not far off."""
    anchors = [end for row in (rows[0], rows[-1]) for end in (row.low, row.estimate, row.high) if math.isfinite(end)]
    low, high = min(anchors), max(anchors)
    length = max(high - low, 1e-9 * abs(high), 1e-300)
    reach = (low - FAR * length, high + FAR * length)
    near = [end for row in rows for end in (row.low, row.estimate, row.high) if reach[0] <= end <= reach[1]]
    low, high = min(near), max(near)
    return low - 0.08 * (high - low or length), high + 0.08 * (high - low or length)


def _draw_curve(axes: "Axes", result: Integrated, curve: SensitivityCurve, bottom: bool = True) -> None:
    """Draw the interval against the bound, the target's own, and where the gain is lost; ``bottom``: name the axis."""
    end = _end(curve)
    shown = np.isfinite(curve.bound) & (curve.bound <= end)
    bounds, lows, highs = curve.bound[shown], curve.low[shown], curve.high[shown]
    split, words = int(np.sum(bounds < curve.refuted)), ("interval under a bound", _refuted(result, curve))
    if len(bounds) <= FEW:
        for part, colour, label in ((slice(split, None), INK, words[0]), (slice(split), GREY, words[1])):
            if bounds[part].size:
                axes.vlines(bounds[part], lows[part], highs[part], color=colour, lw=3, label=label)
    else:  # the two parts meet in a bound
        for part, colour, label in ((slice(split, None), SOFT, words[0]), (slice(split + 1), GREY, words[1])):
            if bounds[part].size > 1:
                axes.fill_between(bounds[part], lows[part], highs[part], color=colour, alpha=0.4, lw=0, label=label)
                axes.plot(bounds[part], np.column_stack([lows[part], highs[part]]), color=colour, lw=1.2)
    for edge, name in zip((result.target.low, result.target.high), ("target's own interval", None), strict=True):
        if math.isfinite(edge):
            axes.axhline(edge, color=WARM, lw=1.4, ls=(0, (5, 3)), label=name)
    _lost(axes, result, curve, end)
    room = 0.04 * end if len(bounds) <= FEW else 0.0
    axes.set_xlim(-room, end + room)
    axes.margins(y=0.08)
    value_axis(axes.yaxis, result.unit)
    if bottom:
        _bound_axis(axes, result)
    axes.set_ylabel(f"{axis_name(result.column, result.unit)}, {percent(result.level)} interval")
    # the gap is in letters, not in heights of the panel: tick labels and the axis' name stand in it
    gap = 5.0 if bottom else 1.2
    axes.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, 0), borderaxespad=gap, ncols=2)
    clear(axes)


def _draw_lengths(axes: "Axes", result: Integrated, curve: SensitivityCurve) -> None:
    """Draw the length, over that of the target's own interval, against the bound."""
    shown = np.isfinite(curve.bound)
    axes.plot(
        curve.bound[shown], curve.length_ratio[shown], "o-" if shown.sum() <= FEW else "-", color=INK, lw=1.4, ms=4
    )
    axes.axhline(1, color=WARM, lw=1.4, ls=(0, (5, 3)))
    if curve.refuted > 0:
        axes.axvspan(0, min(curve.refuted, _end(curve)), color=GREY, alpha=0.2, lw=0)
    _lost(axes, result, curve, _end(curve))
    axes.set_ylim(0, 1.12)
    axes.set_ylabel("length / own")
    _bound_axis(axes, result)
    clear(axes)


def _bound_axis(axes: "Axes", result: Integrated) -> None:
    """Name the axis of bounds, in words where they are times."""
    unit = result.unit
    value_axis(axes.xaxis, unit, widths=True)
    axes.set_xlabel("assumed bound on every source's difference" + (", days" if unit.kind == "date" else ""))


def _lost(axes: "Axes", result: Integrated, curve: SensitivityCurve, end: float) -> None:
    """Mark the bound from which on less than 5 % is gained."""
    if 0 < curve.lost <= end:
        words = f"gain below 5 % from {width_text(result.unit, _digits(curve.lost))} on"
        axes.axvline(curve.lost, color="#333333", lw=1.1, ls=":", label=words)


def _refuted(result: Integrated, curve: SensitivityCurve) -> str:
    return f"below {width_text(result.unit, _digits(curve.refuted))}: refuted by the data"


def _end(curve: SensitivityCurve) -> float:
    """Return where the axis of bounds ends: a bound refuted far beyond all others would squeeze the rest."""
    finite = curve.bound[np.isfinite(curve.bound)]
    inside = finite[finite != curve.refuted] if len(finite) > FEW else finite
    return float(inside.max(initial=0.0)) or 1.0


def _digits(value: float) -> float:
    return float(f"{value:.3g}")

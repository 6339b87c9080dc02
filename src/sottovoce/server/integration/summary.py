"""What a target helped by sources says of itself: the rows and the table to read, and the plain values for JSON.

So does its curve: the interval as a function of the bound that is assumed on the sources' differences.
"""

import math
import textwrap
from collections.abc import Sequence, Set
from numbers import Integral
from typing import Any

import numpy as np

from sottovoce.core.digits import span
from sottovoce.core.errors import BadInput
from sottovoce.core.unit import Unit
from sottovoce.inference.integration.sensitivity import BEFOREHAND, SensitivityCurve, curve
from sottovoce.inference.integration.weighted import METHODS as PAPER
from sottovoce.server.description import WIDTH, Description, Outside, finite, labelled, of_column, percent, protection
from sottovoce.server.integration.combine import KnownSite, common, effective
from sottovoce.server.integration.integrated import Integrated
from sottovoce.server.integration.plan import width_of

COVERS = "covers whatever the sources' differences"
HEAD = ("site", "kind", "records", "epsilon", "estimate", "own interval", "weight")
LEAST_NAME, MOST_NAME = 20, 28  # characters of a name; with less room the intervals stand on lines of their own


def headline(result: Integrated) -> str:
    """Return the result in one line."""
    low, high = result.interval
    paid = protection(result.epsilon.values(), result.private) if result.epsilon else "no record was read"
    name = f"{result.tau:.6g} quantile{of_column(result.column)} of {result.target.name}"
    ends = f"{result.format(result.estimate)} [{result.format(low)}, {result.format(high)}]"
    return f"{name}: {ends} ({percent(result.level)}), {against_own(result)}, {paid}"


def describe(result: Integrated) -> Description:
    """Return estimand, estimate, both intervals, what they rest on, every site with its weight, and the promise."""
    low, high = result.interval
    shown = f"[{result.format(low)}, {result.format(high)}]   ({against_own(result)})"
    rows = [
        ("Estimand", result.estimand),
        ("Estimate", result.format(result.estimate)),
        (f"{result.level:.4g} interval", shown),
        ("Target's own", _interval(result, *result.target_interval)),
        ("Method", f"{_method(result)}: {validity(result)}"),
    ]
    if result.settings.bound:
        rows.append(("Bound", _bounds(result)))
    if result.reports:
        rows.append(("Asked", f"{result.rounds:,} rounds, {result.reports:,} reports"))
    rows.append(("Private", _private(result)))
    if result.resolution:
        step = width_text(result.unit, result.resolution)
        rows.append(("Resolution", f"{step}; the interval covers the rounded value"))
    gone = [*(site.name for site in result.known[1:] if not site.usable), *result.absent]
    notes = [("Left out", f"{', '.join(gone)} ({len(gone):,} of {_sources(result)})")] if gone else []
    notes += labelled("Warning", (text for text in result.warnings if text != result.reason))  # the method has said it
    notes.append(("Promise", result.promise))
    title = f"One site {'helped by others' if result.sources else 'alone'}, tau = {result.tau:.6g}"
    weights = result.weights
    cells = [HEAD, *(_cells(result, site, weights[site.name]) for site in result.known)]
    return Description(title, rows, _table(cells), notes, _values(result), cells, _outside(result))


def _outside(result: Integrated) -> Outside:
    """Return what somebody outside the study asks."""
    low, high = result.interval
    answer = (
        f"{result.format(result.estimate)}; with {percent(result.level)} confidence between {result.format(low)} and "
        f"{result.format(high)}. The interval is {against_own(result)}: that is what the other sites add."
    )
    settings = [
        ("Column", result.column or "(without a name)"),
        ("Values", result.unit.plural),
        ("Level of the quantile", f"{result.tau:.6g}"),
        ("Level of confidence", f"{result.level:.6g}"),
        ("Target", result.target.name),
        ("Sources", _sources(result)),
        ("Unit of privacy", "the person" if result.per_person else "the record"),
    ]
    assumed = (
        f"{validity(result)[0].upper()}{validity(result)[1:]}.",
        "Sources share no people with the target.",
        "The target's own interval is asymptotic, unless its records are open; help does not repair it.",
    )
    return Outside(f"What is {result.estimand}?", answer, result.promise, assumed, tuple(settings))


def against_own(result: Integrated) -> str:
    """Say how the length compares with that of the target's own interval."""
    gain = 1 - result.length_ratio
    if math.isnan(gain):
        return f"its own {'is unbounded' if math.isinf(result.target.high - result.target.low) else 'has no length'}"
    if abs(gain) < 0.0005:
        return "as long as its own"
    return f"{100 * abs(gain):.1f} % {'shorter' if gain > 0 else 'longer'} than its own"


def validity(result: Integrated) -> str:
    """Say in one sentence, without its full stop, when the interval covers."""
    text = result.reason or (COVERS if result.method == "valid" else f"{COVERS}, and is never longer than its own")
    return (text[0].lower() + text[1:]).rstrip(".")


def width_text(unit: Unit, width: float) -> str:
    """Write a difference between two values, to a few digits.

    >>> width_text(Unit("number"), 0.5), width_text(Unit("date", "D"), 3.5), width_text(Unit("datetime", "s"), 5000.0)
    ('0.5', '3.5 days', '1 h 23 min 20 s')
    """
    return unit.format_width(width)


def _method(result: Integrated) -> str:
    """Name the method, with what the paper leaves open."""
    settings, how = result.settings, []
    if settings.method in PAPER:
        how = [f"{settings.variance} variance", settings.quantile]
    if settings.method == "conservative-paper":
        how.append(f"caution {settings.caution:g}")
    if settings.chains is not None and any(site.kind == "private" for site in result.known):
        how.append(f"{settings.chains.number:,} chains a site")
    return f"{settings.method} ({', '.join(how)})" if how else settings.method


def _bounds(result: Integrated) -> str:
    """Write the assumed bounds, once where all are the same."""
    given = result.settings.bound or {}
    if len(set(given.values())) == 1:
        return f"{width_text(result.unit, next(iter(given.values())))}, for every source"
    return ", ".join(f"{name} {width_text(result.unit, bound)}" for name, bound in given.items())


def _private(result: Integrated) -> str:
    if not result.epsilon:
        return "no record was read"
    return "yes" if result.private else "no (simulation, or no budget at some site)"


def _sources(result: Integrated) -> str:
    count = len(result.known) - 1 + len(result.absent)
    return f"{count:,} source{'' if count == 1 else 's'}"


def _table(cells: Sequence[Sequence[str]]) -> list[str]:
    """Lay out the sites, the target apart; columns are as wide as what stands in them."""
    cells = [cells[0], *((f"  {row[0]}", *row[1:]) for row in cells[1:])]
    wide = [max(len(row[i]) for row in cells) for i in range(len(HEAD))]
    room = WIDTH - sum(wide[1:]) - 2 * (len(HEAD) - 1)
    apart = room < min(wide[0], LEAST_NAME)
    if apart:
        room = WIDTH - sum(wide[1:5]) - wide[6] - 2 * (len(HEAD) - 2)
    room = min(room, MOST_NAME)
    laid = [_laid(row, room, wide, apart) for row in cells]
    lines = [*laid[0], "-" * WIDTH, "target", *laid[1]]
    return [*lines, "sources", *(line for row in laid[2:] for line in row)] if len(laid) > 2 else lines


def _cells(result: Integrated, site: KnownSite, weight: float) -> tuple[str, ...]:
    """Write one site, cell by cell."""
    low, place, high = map(result.rounded, (site.low, site.measured.estimate, site.high))
    shown = [result.unit.format(value, span(low, place, high), result.resolution) for value in (low, place, high)]
    return (
        site.name,
        site.kind,
        "" if site.records is None else f"{site.records:,}",
        "" if site.epsilon is None else f"{site.epsilon:.4g}",
        shown[1],
        "none" if math.isinf(low) and math.isinf(high) else f"[{shown[0]}, {shown[2]}]",
        f"{weight:.3f}" if site.usable or site is result.target else "left out",
    )


def _laid(cells: Sequence[str], room: int, wide: Sequence[int], apart: bool) -> list[str]:
    """Lay one site in a line, or in two where its interval has no room beside it."""
    name = cells[0] if len(cells[0]) <= room else cells[0][: room - 1] + "…"
    line = f"{name:<{room}}  {cells[1]:<{wide[1]}}"
    for place in (2, 3, 4, 6) if apart else (2, 3, 4, 5, 6):
        line += f"  {cells[place]:>{wide[place]}}"
    return [line, f"{cells[5]:>{len(line) - wide[6] - 2}}"] if apart else [line]


def _interval(result: Integrated, low: float, high: float) -> str:
    return "none" if low == -math.inf and high == math.inf else f"[{result.format(low)}, {result.format(high)}]"


def _values(result: Integrated) -> dict[str, Any]:
    """Return everything as plain values, ready for strict JSON: what is infinite is None."""
    low, high = result.interval
    own = result.target_interval
    return {
        "estimand": result.estimand,
        "column": result.column or None,
        "tau": result.tau,
        "method": result.method,
        "estimate": result.estimate,
        "interval": {"low": finite(low), "high": finite(high), "level": result.level},
        "target_interval": {"low": finite(own.low), "high": finite(own.high), "level": result.level},
        "length_ratio": finite(result.length_ratio),
        "uniformly_valid": result.uniformly_valid,
        "reason": result.reason,
        "bound": None if (limits := result.settings.bound) is None else {k: finite(v) for k, v in limits.items()},
        "unit": result.unit.kind,
        "text": {"estimate": result.format(result.estimate), "low": result.format(low), "high": result.format(high)},
        "weights": dict(result.weights),
        "sites": [_site(result, site) for site in result.known],
        "left_out": [site.name for site in result.known[1:] if not site.usable] + list(result.absent),
        "private": result.private,
        "epsilon": {name: finite(epsilon) for name, epsilon in result.epsilon.items()},
        "reports": result.reports,
        "rounds": result.rounds,
        "resolution": result.resolution or None,
        "warnings": list(result.warnings),
        "promise": result.promise,
    }


def _site(result: Integrated, site: KnownSite) -> dict[str, Any]:
    """Return one site as plain values."""
    return {
        "name": site.name,
        "role": "target" if site is result.target else "source",
        "kind": site.kind,
        "estimate": result.rounded(site.measured.estimate),
        "low": finite(result.rounded(site.low)),
        "high": finite(result.rounded(site.high)),
        "error": finite(site.measured.std_error),
        "df": finite(site.measured.df),
        "epsilon": None if site.epsilon is None else finite(site.epsilon),
        "records": site.records,
        "reports": site.reports,
        "weight": result.weights[site.name],
    }


def bounds_of(result: Integrated, bounds: Any) -> tuple[float, ...] | None:
    """Return the bounds to show, in order and in the unit of the records; None for those that are worth showing."""
    if bounds is None:
        return None
    if isinstance(bounds, np.ndarray):
        bounds = bounds.tolist()
    if not isinstance(bounds, Sequence | Set) or isinstance(bounds, str | bytes) or not bounds:
        raise BadInput(f"bounds must be a list of bounds, not {bounds!r}; give several numbers, or leave it out.")
    return tuple(sorted(width_of(value, "a bound", result.unit) for value in bounds))


def curve_of(result: Integrated, bounds: tuple[float, ...] | None = None) -> SensitivityCurve:
    """Compute the curve of a result; it needs a source with an error to be trusted."""
    sources = [site for site in result.sources if site.trusted]
    if not sources:
        raise BadInput("there is no source with a standard error to be trusted, so no bound helps; add a source.")
    if not math.isfinite(result.target.measured.std_error):
        raise BadInput("the target's own interval is unbounded, so there is nothing to compare with; add records.")
    measured = [site.measured for site in sources]
    return curve(effective(result.target, result.level), measured, result.level, bounds, None, common(sources))


def _curve_cells(result: Integrated, curve: SensitivityCurve, rows: int) -> list[tuple[str, str, str, str, str]]:
    """Write a few bounds, their intervals, lengths and what is wrong with them; the head first."""
    chosen = sorted({round(i) for i in np.linspace(0, len(curve.bound) - 1, min(rows, len(curve.bound)))})
    cells = [("bound", "low", "high", "length", "")]
    for i in chosen:
        ends = (result.format(float(curve.low[i])), result.format(float(curve.high[i])))
        mark = "  refuted by the data" if curve.bound[i] < curve.refuted else ""
        cells.append((width_text(result.unit, float(curve.bound[i])), *ends, f"{curve.length_ratio[i]:.3f}", mark))
    return cells


def curve_table(result: Integrated, curve: SensitivityCurve, rows: Any = 11) -> str:
    """Return the curve as text: a few bounds, their intervals and lengths."""
    if isinstance(rows, bool) or not isinstance(rows, Integral) or rows < 1:
        raise BadInput(f"rows must be a whole number of at least 1, not {rows!r}; correct it.")
    cells = _curve_cells(result, curve, int(rows))
    wide = [max(len(row[k]) for row in cells) for k in range(4)]
    lines = ["  ".join(f"{row[k]:>{wide[k]}}" for k in range(4)) + row[4] for row in cells]
    told = "Length is relative to the target's own interval. "
    told += f"Less than 5 % is gained from {width_text(result.unit, curve.lost)} on."
    if curve.refuted > 0:
        told += f" Bounds below {width_text(result.unit, curve.refuted)} are refuted by the data."
    return "\n".join([*lines, *textwrap.wrap(told, WIDTH), *textwrap.wrap(BEFOREHAND, WIDTH)])


def curve_headline(result: Integrated, curve: SensitivityCurve) -> str:
    """Return the curve in one line: its two ends."""
    ends = f"[{result.format(float(curve.low[0]))}, {result.format(float(curve.high[0]))}]"
    own = f"[{result.format(result.target_interval.low)}, {result.format(result.target_interval.high)}]"
    first = width_text(result.unit, float(curve.bound[0]))
    name = f"{result.tau:.6g} quantile{of_column(result.column)} of {result.target.name} by assumed bound"
    return f"{name}: {ends} at {first}, {own} without one ({percent(result.level)})"


def describe_curve(result: Integrated, curve: SensitivityCurve) -> Description:
    """Return what the curve says of itself."""
    rows = [("Estimand", result.estimand)]
    title = f"{result.level:.4g} interval by assumed bound on all differences"
    about = _outside(result)
    answer = (
        f"Less than 5 % is gained from a bound of {width_text(result.unit, curve.lost)} on; bounds below "
        f"{width_text(result.unit, curve.refuted)} are refuted by the data. {BEFOREHAND}"
    )
    question = "How does the interval depend on how much the sources are assumed to differ from the target at most?"
    about = about._replace(question=f"{question} {about.question}", answer=answer)
    table = curve_table(result, curve).splitlines()
    cells = [row[:4] for row in _curve_cells(result, curve, 11)]
    return Description(title, rows, table, (), curve_values(curve), cells, about)


def curve_values(curve: SensitivityCurve) -> dict[str, Any]:
    """Return the curve as plain values, ready for strict JSON."""
    return {
        "bound": [finite(float(value)) for value in curve.bound],
        "low": [finite(float(value)) for value in curve.low],
        "high": [finite(float(value)) for value in curve.high],
        "length_ratio": [float(value) for value in curve.length_ratio],
        "refuted": finite(curve.refuted),
        "lost": finite(curve.lost),
        "level": curve.level,
        "note": BEFOREHAND,
    }

"""The table under a result that sources helped with, in plain text."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sottovoce.core.unit import Unit
from sottovoce.inference.integration.weighted import METHODS as PAPER
from sottovoce.server.quantile.summary import WIDTH, wrapped

if TYPE_CHECKING:
    from sottovoce.api.integration.measure import KnownSite
    from sottovoce.server.integration.result import IntegratedResult

COVERS = "covers whatever the sources' differences"
HEAD = ("site", "kind", "records", "epsilon", "estimate", "own interval", "weight")
LEAST_NAME, MOST_NAME = 20, 28  # characters of a name; with less room the intervals stand on lines of their own


def summary(result: "IntegratedResult") -> str:
    """Return estimand, estimate, both intervals, what they rest on, every site with its weight, and the promise."""
    low, high = result.interval
    lines = [
        f" One site {'helped by others' if result.sources else 'alone'}, tau = {result.tau:.6g} ".center(WIDTH, "="),
        *wrapped("Estimand", result.estimand),
        *wrapped("Estimate", result.format(result.estimate)),
        *wrapped(
            f"{result.level:.4g} interval", f"[{result.format(low)}, {result.format(high)}]   ({against_own(result)})"
        ),
        *wrapped("Target's own", _interval(result, *result.target_interval)),
        *wrapped("Method", f"{_method(result)}: {validity(result)}"),
    ]
    if result.settings.bound:
        lines += wrapped("Bound", _bounds(result))
    if result.reports:
        lines += wrapped("Asked", f"{result.rounds:,} rounds, {result.reports:,} reports")
    lines += wrapped("Private", _private(result))
    if result.resolution:
        lines += wrapped("Resolution", f"{result.resolution:.6g}; the interval covers the rounded value")
    lines += ["-" * WIDTH, *_table(result), "-" * WIDTH]
    gone = [*(site.name for site in result.known[1:] if not site.usable), *result.absent]
    if gone:
        lines += wrapped("Left out", f"{', '.join(gone)} ({len(gone):,} of {_sources(result)})")
    for warning in result.warnings:
        if warning != result.reason:  # the method has said it
            lines += wrapped("Warning", warning)
    for hint in result.hints:
        lines += wrapped("Hint", hint)
    lines += wrapped("Promise", result.promise)
    return "\n".join([*lines, "=" * WIDTH])


def against_own(result: "IntegratedResult") -> str:
    """Say how the length compares with that of the target's own interval."""
    gain = 1 - result.length_ratio
    if math.isnan(gain):
        return f"its own {'is unbounded' if math.isinf(result.target.high - result.target.low) else 'has no length'}"
    if abs(gain) < 0.0005:
        return "as long as its own"
    return f"{100 * abs(gain):.1f} % {'shorter' if gain > 0 else 'longer'} than its own"


def validity(result: "IntegratedResult") -> str:
    """Say in one sentence, without its full stop, when the interval covers."""
    text = result.reason or (COVERS if result.method == "valid" else f"{COVERS}, and is never longer than its own")
    return (text[0].lower() + text[1:]).rstrip(".")


def width_text(unit: Unit, width: float) -> str:
    """Write a difference between two values.

    >>> width_text(Unit("number"), 0.5), width_text(Unit("date", "D"), 3.5), width_text(Unit("datetime", "s"), 5000.0)
    ('0.5', '3.5 days', '1:23:20')
    """
    if unit.kind == "number" or not math.isfinite(width):
        return f"{width:.6g}"
    return f"{width:.4g} day{'' if width == 1 else 's'}" if unit.kind == "date" else Unit("duration").format(width)


def _method(result: "IntegratedResult") -> str:
    """Name the method, with what the paper leaves open."""
    settings, how = result.settings, []
    if settings.method in PAPER:
        how = [f"{settings.variance} variance", settings.quantile]
    if settings.method == "conservative-paper":
        how.append(f"caution {settings.caution:g}")
    if settings.chains is not None and any(site.kind == "private" for site in result.known):
        how.append(f"{settings.chains.number:,} chains a site")
    return f"{settings.method} ({', '.join(how)})" if how else settings.method


def _bounds(result: "IntegratedResult") -> str:
    """Write the assumed bounds, once where all are the same."""
    given = result.settings.bound or {}
    if len(set(given.values())) == 1:
        return f"{width_text(result.unit, next(iter(given.values())))}, for every source"
    return ", ".join(f"{name} {width_text(result.unit, bound)}" for name, bound in given.items())


def _private(result: "IntegratedResult") -> str:
    if not result.epsilon:
        return "no record was read"
    return "yes" if result.private else "no (simulation, or no budget at some site)"


def _sources(result: "IntegratedResult") -> str:
    count = len(result.known) - 1 + len(result.absent)
    return f"{count:,} source{'' if count == 1 else 's'}"


def _table(result: "IntegratedResult") -> list[str]:
    """Lay out the sites, the target apart; columns are as wide as what stands in them."""
    weights = result.weights
    rows = [_cells(result, site, weights[site.name]) for site in result.known]
    wide = [max(len(row[i]) for row in [HEAD, *rows]) for i in range(len(HEAD))]
    room = WIDTH - sum(wide[1:]) - 2 * (len(HEAD) - 1)
    apart = room < min(wide[0], LEAST_NAME)
    if apart:
        room = WIDTH - sum(wide[1:5]) - wide[6] - 2 * (len(HEAD) - 2)
    room = min(room, MOST_NAME)
    laid = [_laid(row, room, wide, apart) for row in [HEAD, *rows]]
    lines = [*laid[0], "-" * WIDTH, "target", *laid[1]]
    return [*lines, "sources", *(line for row in laid[2:] for line in row)] if len(laid) > 2 else lines


def _cells(result: "IntegratedResult", site: "KnownSite", weight: float) -> tuple[str, ...]:
    """Write one site, cell by cell."""
    return (
        f"  {site.name}",
        site.kind,
        "" if site.records is None else f"{site.records:,}",
        "" if site.epsilon is None else f"{site.epsilon:.4g}",
        result.format(result.rounded(site.measured.estimate)),
        _interval(result, result.rounded(site.low), result.rounded(site.high)),
        f"{weight:.3f}" if site.usable or site is result.target else "left out",
    )


def _laid(cells: Sequence[str], room: int, wide: Sequence[int], apart: bool) -> list[str]:
    """Lay one site in a line, or in two where its interval has no room beside it."""
    name = cells[0] if len(cells[0]) <= room else cells[0][: room - 1] + "…"
    line = f"{name:<{room}}  {cells[1]:<{wide[1]}}"
    for place in (2, 3, 4, 6) if apart else (2, 3, 4, 5, 6):
        line += f"  {cells[place]:>{wide[place]}}"
    return [line, f"{cells[5]:>{len(line) - wide[6] - 2}}"] if apart else [line]


def _interval(result: "IntegratedResult", low: float, high: float) -> str:
    return "none" if low == -math.inf and high == math.inf else f"[{result.format(low)}, {result.format(high)}]"

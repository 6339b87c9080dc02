"""What a quantile says of itself: one line, the rows and the table to read, plain values, and a page for outsiders."""

from collections.abc import Sequence
from typing import Any

from sottovoce.core.digits import number_text
from sottovoce.core.roster import Roster
from sottovoce.core.unit import Unit
from sottovoce.server.description import (
    WIDTH,
    Description,
    Outside,
    finite,
    labelled,
    of_column,
    percent,
    protection,
)

# what is guaranteed, and not only measured
HOLDS = {"certified": "for every distribution", "sequence": "at every time, for every distribution"}
HEAD = ("site", "records", "share", "epsilon", "of the noise")
ORDER = "Records answer in an order drawn by the operating system, each at most once; no site fails on the way."
SMOOTH = (
    "The interval is asymptotic: it takes the density of the records to be smooth around the quantile. The answers are "
    "looked at for signs that it is not, and the interval is then certified, and says so."
)
ANY = "Nothing is assumed of the distribution of the records."

# A result describes itself by these functions, so that they cannot name its class without a circle of imports.
ResultToDescribe = Any  # a QuantileResult


def holds(method: str, level: float) -> str:
    """Return what the interval of a method promises, in words."""
    return f"at least {100 * level:.6g} % {HOLDS[method]}" if method in HOLDS else "sampling and privacy noise"


def estimate_text(result: ResultToDescribe) -> str:
    """Return estimate and interval."""
    low, high = result.interval
    return f"{result.format(result.estimate)} [{result.format(low)}, {result.format(high)}]"


def headline(result: ResultToDescribe) -> str:
    """Return the result in one line."""
    paid = protection(result.epsilon.values(), result.private)
    name = f"{result.tau:.6g} quantile{of_column(result.plan.roster.column)}"
    return f"{name}: {estimate_text(result)} ({percent(result.level)}), {paid}"


def describe(result: ResultToDescribe) -> Description:
    """Return estimand, estimate, interval, reports, rounds, budgets and promise."""
    plan, roster, (low, high) = result.plan, result.plan.roster, result.interval
    rows = [
        ("Estimand", result.estimand),
        ("Estimate", result.format(result.estimate)),
        (f"{result.level:.4g} interval", f"[{result.format(low)}, {result.format(high)}]   ({result.guarantee})"),
        ("Method", f"{result.method}, {result.rounds:,} rounds, {result.reports:,} reports"),
        ("Private", "yes" if result.private else "no (simulation, or no budget at some site)"),
    ]
    if plan.resolution:
        step = roster.unit.format_width(plan.resolution) if roster.unit.timed else number_text(plan.resolution)
        taken = f"{step}, {plan.step_source}" if plan.step_source else step
        rows.append(("Resolution", f"{taken}; the interval covers the rounded value"))
    rows += limits_row(roster.unit)
    if roster.weighted:
        rows.append(("Weights", weights_text(plan)))
    rows += rows_left_out([roster])
    notes = [*labelled("Warning", result.warnings), *_beyond(result), ("Promise", result.promise)]
    worst = max(result.variance_shares, key=lambda name: result.variance_shares[name])
    if len(plan.by_site) > 1:
        notes.insert(
            0, ("Width", f"driven most by {worst} ({result.variance_shares[worst]:.0%} of the noise variance)")
        )
    cells = [HEAD, *_sites(result)]
    table = [_row(*HEAD), "-" * WIDTH, *(_row(*site) for site in cells[1:])]
    title = f"Private quantile{of_column(roster.column)}, tau = {result.tau:.6g}"
    return Description(title, rows, table, notes, _values(result), cells, outside(result))


def limits_row(unit: Unit) -> list[tuple[str, str]]:
    """Return a row that says which values are symbols, where some are."""
    return [] if unit.censored is None else [("Limits", f"{unit.censored.words}, so intervals are certified")]


def _beyond(result: ResultToDescribe) -> list[tuple[str, str]]:
    """Say that the quantile itself lies beyond a limit, where it is known to, or may."""
    censored, (low, high) = result.plan.roster.unit.censored, result.interval
    if censored is None:
        return []
    sides = [(-1, censored.below, "below"), (1, censored.above, "above")]
    for side, symbol, word in sides:
        where = f"{word} the limit of measurement"
        if censored.side(low) == side == censored.side(high):
            return [("Limit", f"the quantile is {symbol}: it lies {where}, and no more can be known of it")]
    touched = [f"{symbol}, {word}" for side, symbol, word in sides if censored.side((low, high)[side > 0]) == side]
    return [("Limit", f"the quantile may be {' or '.join(touched)} the limit of measurement")] if touched else []


def rows_left_out(rosters: Sequence[Roster]) -> list[tuple[str, str]]:
    """Return rows that say what was left out when the records were read."""
    first, rows = rosters[0], []
    dropped = sum(sum(roster.dropped.values()) for roster in rosters)
    if dropped or first.unplaced:
        nowhere = "a site" if first.strata is None else "a site, group or weight"
        rows.append(("Left out", f"{dropped:,} missing values, {first.unplaced:,} rows without {nowhere}"))
    if first.per_person:
        rows.append(("Person", f"one record each, drawn at random; {first.left_out:,} further rows left out"))
    return rows


def weights_text(plan: Any) -> str:
    """Say how records are weighted, and what that costs."""
    weights, total = plan.roster.weights, sum(plan.roster.sizes)
    return (
        f"public, from {min(weights):.4g} to {max(weights):.4g}; {total:,} records tell as much as "
        f"{plan.effective:,.0f} of equal weight"
    )


def outside(result: ResultToDescribe) -> Outside:
    """Return what somebody outside the study asks."""
    (low, high), plan, roster = result.interval, result.plan, result.plan.roster
    who = "persons" if roster.per_person else "records"
    total = sum(roster.sizes)
    answer = (
        f"{result.format(result.estimate)}; with {percent(result.level)} confidence between {result.format(low)} and "
        f"{result.format(high)} ({result.guarantee})."
    )
    settings = [
        ("Column", roster.column or "(without a name)"),
        ("Values", roster.unit.plural),
        *([("Limits of measurement", str(censored))] if (censored := roster.unit.censored) else []),
        ("Level of the quantile", f"{result.tau:.6g}"),
        ("Level of confidence", f"{result.level:.6g}"),
        ("Sites count", plan.shares_name),
        *([("Weights", weights_text(plan))] if roster.weighted else []),
        ("Public bounds", "none" if plan.bounds is None else " to ".join(map(roster.unit.format, plan.bounds))),
        ("Public scale", "none" if plan.scale is None else roster.unit.format_width(plan.scale)),
        ("Unit of privacy", "the person" if roster.per_person else "the record"),
    ]
    sites = len(set(roster.places))
    question = f"What is {result.estimand}? {total:,} {who} at {sites:,} site{'' if sites == 1 else 's'} were asked."
    assumed = (ORDER, ANY if result.method in HOLDS else SMOOTH)
    return Outside(question, answer, result.promise, assumed, tuple(settings))


def _sites(result: ResultToDescribe) -> list[tuple[str, str, str, str, str]]:
    """Write every site, cell by cell."""
    return [
        (site, f"{count.records:,}", f"{count.share:.4f}", f"{count.epsilon:.4g}", f"{count.noise:.1%}")
        for site, count in result.plan.by_site.items()
    ]


def _row(name: str, *cells: str) -> str:
    """Lay one line of the table of sites."""
    shown = name if len(name) <= 28 else name[:27] + "…"
    return f"{shown:<28}" + "".join(f"{cell:>12}" for cell in cells[:-1]) + f"{cells[-1]:>14}"


def _values(result: ResultToDescribe) -> dict[str, Any]:
    """Return everything as plain values, ready for strict JSON: what is infinite is None."""
    roster, (low, high) = result.plan.roster, result.interval
    texts = {"estimate": result.estimate, "low": low, "high": high}
    return {
        "estimand": result.estimand,
        "column": roster.column or None,
        "tau": result.tau,
        "method": result.method,
        "estimate": result.plan.plain(result.estimate),
        "interval": {"low": result.plan.plain(low), "high": result.plan.plain(high), "level": result.level},
        "guarantee": result.guarantee,
        "unit": roster.unit.kind,
        "text": {name: result.format(value) for name, value in texts.items()},
        "private": result.private,
        "epsilon": {name: finite(epsilon) for name, epsilon in result.epsilon.items()},
        "shares": dict(result.shares),
        "drivers": dict(result.variance_shares),
        "records": {site: count.records for site, count in result.plan.by_site.items()},
        "dropped": {site: count.dropped for site, count in result.plan.by_site.items()},
        "left_out": roster.left_out,
        "unplaced": roster.unplaced,
        "sites_left_out": list(result.plan.left_out),
        "reports": result.reports,
        "rounds": result.rounds,
        "support": result.plan.support.ratio,
        "resolution": result.plan.resolution or None,
        "resolution_source": result.plan.step_source or None,
        "kind": result.plan.kind,
        "censored": None if roster.unit.censored is None else str(roster.unit.censored),
        "warnings": list(result.warnings),
        "promise": result.promise,
    }

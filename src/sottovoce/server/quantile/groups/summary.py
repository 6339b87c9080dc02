"""What quantiles of groups say of themselves: one line, the table, who differs, plain values, a page for outsiders."""

import math
from collections.abc import Sequence
from typing import Any

from sottovoce.server.description import (
    Description,
    Outside,
    finite,
    labelled,
    of_column,
    percent,
    protection,
)
from sottovoce.server.quantile.groups.plan import FEW_FOR_AVERAGE, named
from sottovoce.server.quantile.summary import HOLDS, limits_row, outside, rows_left_out

# The result describes itself by these functions, so that they cannot name its class without a circle of imports.
GroupsToDescribe = Any  # a GroupQuantilesResult

MOST_SHOWN = 60  # groups in a table
MOST_COMPARED = 100  # groups that are compared unasked: of more it takes a minute
FEW = 3  # groups in one line
PUBLIC = (
    "Which group a record belongs to is public: groups, their names and sizes are used and printed, and whoever sees "
    "an answer may know the group of the record."
)
HOW = {
    "each": "every group keeps its own level, whatever the groups are; the others' answers only divide the error "
    "between the two sides (frequentist, assisted by Bayes)",
    "average": "on average over the groups, not for every single one (robust empirical Bayes)",
}


def warnings(result: GroupsToDescribe) -> tuple[str, ...]:
    """Return what was said before, and what the answers of groups showed, each text once."""
    shown: dict[str, list[str]] = {}
    for name, each in result.groups.items():
        for text in each.warnings:
            shown.setdefault(text, []).append(name)
    many = len(result.names)
    told = [f"{'all groups' if len(names) == many else named(names)}: {text}" for text, names in shown.items()]
    few = [] if result.helped == result.shrinkage or not result.helped else [FEW_FOR_AVERAGE]
    return tuple(dict.fromkeys((*result.said, *told, *few, *_unmoved(result))))


def _unmoved(result: GroupsToDescribe) -> list[str]:
    """Say which groups are not shrunk although that was asked for."""
    still = [name for name, row in zip(result.names, result.moved, strict=True) if row is None]
    if not result.shrinkage or not still:
        return []
    if len(still) == len(result.names):
        return ["no group is shrunk: it takes four groups with smooth intervals at least; the intervals are their own"]
    return [f"{named(still)} not shrunk: the interval is certified, or the answers contradicted a smooth density"]


def guarantee(result: GroupsToDescribe) -> str:
    """Return what the intervals promise, in words."""
    exact = all(each.method in HOLDS for each in result.results)
    base = "for every distribution" if exact else "sampling and privacy noise"
    level = f"{percent(result.level)} {'all together' if result.simultaneous else 'each'}, {base}"
    if not result.shrinkage or all(row is None for row in result.moved):
        return level
    if result.helped == "average":
        return f"{percent(result.level)} {HOW['average']}, {base}"
    return f"{level}; {HOW['each']}"


def headline(result: GroupsToDescribe) -> str:
    """Return the results in one line: the ends of the ranking, and whether all are equal."""
    estimates, intervals = result.shrunk_estimates, result.intervals
    ranked = sorted(result.names, key=lambda name: estimates[name])
    ends = dict.fromkeys([*ranked[:1], *ranked[-1:]])
    parts = []
    for name in ends:
        low, high = map(result.format, intervals[name])
        parts.append(f"{name} {result.format(estimates[name])} [{low}, {high}]")
    column = of_column(result.results[0].plan.roster.column)
    paid = protection(result.epsilon.values(), result.private)
    told = "all together" if result.simultaneous else "each"
    return (
        f"{result.tau:.6g} quantile{column} of {len(result.names)} groups: {' to '.join(parts)} "
        f"({percent(result.level)} {told}), {paid}"
    )


def describe(result: GroupsToDescribe) -> Description:
    """Return the groups with their intervals, the test that all are equal, who differs, and the promise."""
    first, tested = result.results[0], 1 < len(result.names) <= MOST_COMPARED
    unit = first.plan.roster.unit
    others = result.compare() if tested and unit.censored is None else None
    by = f"by {result.by}, which is public"
    rows = [
        ("Estimand", f"the {result.tau:.6g} quantile{of_column(first.plan.roster.column)} of every group, {by}"),
        ("Intervals", result.guarantee),
    ]
    if tested:
        rows.append(("All equal", f"p = {result.equal.pvalue:.3g} ({result.equal.by})"))
    if others is not None:
        differ = others.differing
        said = f"{named(differ)}, by Holm's rule" if differ else "no group, by Holm's rule"
        rows.append(("Differ", f"{said}, from the mean of the others"))
    if result.spread is not None:
        mean, deviation = result.spread.mean, math.sqrt(result.spread.variance)
        rows.append(("Between", f"mean of the groups {result.format(mean)}, standard deviation about "
                                f"{result.format_width(deviation)}"))  # fmt: skip
    rows.append(("Asked", f"{result.reports:,} records, each once, in {result.rounds:,} rounds"))
    if first.plan.roster.weighted:
        rows.append(("Weights", "public; every group counts its records by them"))
    rows += limits_row(unit)
    rows += rows_left_out([each.plan.roster for each in result.results])
    if result.left_out:
        gone = ", ".join(f"{group.name} ({group.records:,})" for group in result.left_out[:MOST_SHOWN])
        rows.append(("Not asked", f"{gone}: too few records"))
    rows.append(("Private", "yes" if result.private else "no (simulation, or no budget at some site)"))
    cells = _cells(result)
    notes = [*labelled("Warning", result.warnings), ("Groups", PUBLIC), ("Promise", first.promise)]
    title = f"Private quantiles by {result.by}{of_column(first.plan.roster.column)}, tau = {result.tau:.6g}"
    return Description(title, rows, _table(cells), notes, _values(result, tested, others), cells, _outside(result))


def _cells(result: GroupsToDescribe) -> list[tuple[str, ...]]:
    """Write every group, cell by cell, the head first."""
    moved = any(row is not None for row in result.moved)
    head = ("group", "records", "estimate", *(("shrunk",) if moved else ()), "low", "high", "epsilon", "method")
    columns, cells = result.table, [head]
    for at, name in enumerate(result.names):
        shrunk = (result.format(columns["shrunk"][at]),) if moved else ()
        cells.append(
            (
                name,
                f"{columns['records'][at]:,}",
                result.format(columns["estimate"][at]),
                *shrunk,
                *(result.format(columns[end][at]) for end in ("low", "high")),
                f"{columns['epsilon'][at]:.4g}",
                columns["method"][at],
            )
        )
    return cells


def _table(cells: Sequence[tuple[str, ...]]) -> list[str]:
    """Lay the table out in lines."""
    shown = [(row[0] if len(row[0]) <= 24 else f"{row[0][:23]}…", *row[1:]) for row in cells[: MOST_SHOWN + 1]]
    wide = [max(len(row[i]) for row in shown) for i in range(len(shown[0]))]
    last = len(wide) - 1
    lines = [
        "  ".join(f"{cell:<{width}}" if i in (0, last) else f"{cell:>{width}}"
                  for i, (cell, width) in enumerate(zip(row, wide, strict=True))).rstrip()
        for row in shown
    ]  # fmt: skip
    more = len(cells) - 1 - MOST_SHOWN
    return [*lines, f"and {more:,} more groups"] if more > 0 else lines


def _values(result: GroupsToDescribe, tested: bool, others: Any) -> dict[str, Any]:
    """Return everything as plain values, ready for strict JSON."""
    columns, plain = result.table, result.results[0].plan.plain
    rows = [
        {name: plain(value) if isinstance(value, float) else value for name, value in zip(columns, row, strict=True)}
        for row in zip(*columns.values(), strict=True)
    ]
    return {
        "tau": result.tau,
        "column": result.results[0].plan.roster.column or None,
        "by": result.by,
        "level": result.level,
        "simultaneous": result.simultaneous,
        "shrinkage": result.shrinkage or None,
        "guarantee": result.guarantee,
        "groups": rows,
        "equal": result.equal._asdict() if tested else None,
        "compared": others.to_dict() if others is not None else None,
        "left_out": [group._asdict() for group in result.left_out],
        "private": result.private,
        "epsilon": {site: finite(paid) for site, paid in result.epsilon.items()},
        "reports": result.reports,
        "rounds": result.rounds,
        "warnings": list(result.warnings),
        "results": {name: dict(each.describe().values) for name, each in result.groups.items()},
    }


def _outside(result: GroupsToDescribe) -> Outside:
    """Return what somebody outside the study asks."""
    about = outside(result.results[0])
    estimates, intervals = result.shrunk_estimates, result.intervals
    ranked = sorted(result.names, key=lambda name: estimates[name])
    shown = ranked if len(ranked) <= 2 * FEW else [*ranked[:FEW], *ranked[-FEW:]]
    said = "; ".join(
        f"{name}: {result.format(estimates[name])}, between {' and '.join(map(result.format, intervals[name]))}"
        for name in shown
    )
    more = "" if len(shown) == len(ranked) else f" The lowest and the highest {FEW} of {len(ranked)} groups."
    who = "persons" if result.results[0].plan.roster.per_person else "records"
    total = sum(result.table["records"])
    question = (
        f"What is the {result.tau:.6g} quantile{of_column(result.results[0].plan.roster.column)} of every group, by "
        f"{result.by}? {total:,} {who} in {len(result.names)} groups were asked."
    )
    answer = f"{said} ({result.guarantee}).{more}"
    settings = [pair for pair in about.settings if pair[0] != "Level of confidence"]
    settings += [("Level of confidence", f"{result.level:.6g}"), ("Groups by", result.by)]
    settings.append(("Shrinkage", result.shrinkage or "none"))
    assumed = dict.fromkeys([PUBLIC, *(text for each in result.results for text in outside(each).assumptions)])
    return about._replace(question=question, answer=answer, assumptions=tuple(assumed), settings=tuple(settings))

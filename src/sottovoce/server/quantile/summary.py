"""The table under a result, in plain text."""

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sottovoce.server.quantile.result import QuantileResult

WIDTH = 78


def summary(result: "QuantileResult") -> str:
    """Return estimand, estimate, interval, reports, rounds, budgets and promise."""
    low, high = result.interval
    table = result.panel.table
    lines = [
        f" Private quantile, tau = {result.tau:.6g} ".center(WIDTH, "="),
        *wrapped("Estimand", result.estimand),
        *wrapped("Estimate", result.format(result.estimate)),
        *wrapped(
            f"{result.level:.4g} interval",
            f"[{result.format(low)}, {result.format(high)}]   (sampling and privacy noise)",
        ),
        *wrapped("Method", f"{result.method}, {result.rounds:,} rounds, {result.reports:,} reports"),
        *wrapped("Private", "yes" if result.private else "no (simulation, or no budget at some site)"),
    ]
    if result.panel.resolution:
        lines += wrapped("Resolution", f"{result.panel.resolution:.6g}; the interval covers the rounded value")
    dropped = sum(table.dropped.values())
    if dropped or table.unplaced:
        lines += wrapped("Left out", f"{dropped:,} missing values, {table.unplaced:,} rows without a site")
    if table.per_person:
        lines += wrapped("Person", f"one record each, drawn at random; {table.left_out:,} further rows left out")
    lines += ["-" * WIDTH, _row("site", "records", "share", "epsilon", "of the noise"), "-" * WIDTH]
    for name, records in zip(result.panel.names, table.records, strict=True):
        lines.append(
            _row(
                name,
                f"{records.size:,}",
                f"{result.shares[name]:.4f}",
                f"{result.epsilon[name]:.4g}",
                f"{result.variance_shares[name]:.1%}",
            )
        )
    worst = max(result.variance_shares, key=lambda name: result.variance_shares[name])
    lines.append("-" * WIDTH)
    if len(result.panel.names) > 1:
        lines += wrapped("Width", f"driven most by {worst} ({result.variance_shares[worst]:.0%} of the noise variance)")
    for warning in result.warnings:
        lines += wrapped("Warning", warning)
    for hint in result.hints:
        lines += wrapped("Hint", hint)
    lines += wrapped("Promise", result.promise)
    return "\n".join([*lines, "=" * WIDTH])


def _row(name: str, *cells: str) -> str:
    """Lay one line of the table of sites."""
    shown = name if len(name) <= 28 else name[:27] + "…"
    return f"{shown:<28}" + "".join(f"{cell:>12}" for cell in cells[:-1]) + f"{cells[-1]:>14}"


def wrapped(title: str, text: str) -> list[str]:
    """Set a text beside its title."""
    return textwrap.wrap(text, WIDTH, initial_indent=f"{title + ':':<15}", subsequent_indent=" " * 15)

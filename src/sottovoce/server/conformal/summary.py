"""What a report on coverage says of itself: the rows and the table to read, plain values, and a page for outsiders."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from sottovoce.core.digits import number_text
from sottovoce.inference.conformal import SiteCoverage
from sottovoce.server.description import WIDTH, Description, Outside, finite, percent

FLATTERED = "Scores that made the threshold flatter it; fresh ones judge it fairly."
ROWS = 40  # of the worst sites; the others share a line
WEIGHTS = {"sites": "sites count alike", "records": "sites count by size", "given": "given weights"}

# A report describes itself by these functions, so that they cannot name its class without a circle of imports.
ReportToDescribe = Any  # a CoverageReport


def describe(report: ReportToDescribe) -> Description:
    """Return what the report says of itself: mixture, promise, expectation, every site worst first, caveats."""
    mixture, worst = report.mixture, report.worst
    within = f"[{mixture.low:.4f}, {mixture.high:.4f}]"
    rows = [
        ("Threshold", number_text(report.value) if report.values is None else "of each site its own"),
        (
            "Mixture",
            f"{mixture.estimate:.4f} {within}   ({WEIGHTS[mixture.weights]}; {report.level:.4g} guaranteed)",
        ),
    ]
    if report.homogeneous is not None:
        least = "at least " if report.private_threshold else ""
        said = f"{least}{report.homogeneous:.4f}, on average over calibrations, if all sites had one distribution"
        rows.append(("Promised", said))
    if report.predicted is not None:
        rows.append(
            ("Expected", f"{report.predicted.mixture:.4f}, likewise, under the distributions the sites do have")
        )
    elif report.homogeneous is not None:
        rows.append(("Expected", f"not known under the sites' own distributions: {report.unpredicted}"))
    rows.append(("Worst", f"{worst.name}: {worst.coverage:.4f} [{worst.low:.4f}, {worst.high:.4f}]"))
    rows.append(("Below", _verdict(report)))
    if (own := report.spread) is not None:
        ends = f"{number_text(own.least)} to {number_text(own.largest)}"
        rows.append((f"Own {report.target:.4g}", f"quantiles from {ends}, median {number_text(own.median)}"))
    if report.dropped:
        rows.append(("Left out", f"{report.dropped:,} missing values"))
    statement = ("Caution" if report.epsilon is None else "Protected", report.privacy_statement)
    title = f"Coverage by site, target {report.target:.6g}"
    notes = [("Caution", FLATTERED), statement]
    values, cells = _plain_values(report), _cells(report, report.sites)
    return Description(title, rows, _table(report), notes, values, cells, _outside(report))


def _outside(report: ReportToDescribe) -> Outside:
    """Return what somebody outside the study asks."""
    mixture, worst = report.mixture, report.worst
    answer = (
        f"On average {mixture.estimate:.4f} of the scores, with {percent(report.level)} confidence between "
        f"{mixture.low:.4f} and {mixture.high:.4f}; at {worst.name}, the worst, {worst.coverage:.4f}. In all, "
        f"{_verdict(report)}."
    )
    which = f"the threshold {number_text(report.value)}" if report.values is None else "its own threshold"
    question = f"What part of its scores does {which} cover at each site?"
    assumed = (FLATTERED, "The scores of a site are independent draws of what it will meet.")
    settings = (("Coverage wanted", f"{report.target:.6g}"), ("Level of confidence", f"{report.level:.6g}"))
    return Outside(question, answer, report.privacy_statement, assumed, settings)


def _plain_values(report: ReportToDescribe) -> dict[str, Any]:
    """Return everything as plain values, ready for strict JSON: what is infinite is None."""
    predicted, own = report.predicted, report.spread
    return {
        "threshold": finite(report.value),
        "alpha": report.alpha,
        "target": report.target,
        "level": report.level,
        "sites": [
            asdict(site)
            | {
                "weight": report.weights[site.name],
                "threshold": finite(report.value if report.values is None else report.values[site.name]),
                "predicted": None if predicted is None else predicted.sites[site.name],
                "quantile": None if own is None else own.sites[site.name],
            }
            for site in report.sites
        ],
        "mixture": report.mixture._asdict(),
        "worst": report.worst.name,
        "below": list(report.below),
        "error": report.error,
        "homogeneous": report.homogeneous,
        "predicted": None if predicted is None else predicted.mixture,
        "unpredicted": report.unpredicted,
        "spread": None if own is None else {"least": own.least, "median": own.median, "largest": own.largest},
        "private": report.private,
        "epsilon": None if report.epsilon is None else dict(report.epsilon),
        "dropped": report.dropped,
        "caveats": list(report.caveats),
    }


def _verdict(report: ReportToDescribe) -> str:
    """Say how many sites fail the target beyond chance."""
    count, number = len(report.below), len(report.sites)
    if not count:
        return f"no site is below {report.target:.6g} beyond chance"
    return (
        f"{count:,} of {number:,} site{'' if number == 1 else 's'} (marked *) {'is' if count == 1 else 'are'} below "
        f"{report.target:.6g} beyond chance: one or more wrongly so with probability {report.error:.3g} at most (Holm)"
    )


def _cells(report: ReportToDescribe, shown: Sequence[SiteCoverage]) -> list[tuple[str, ...]]:
    """Write sites cell by cell, the head first; what is not known has no column."""
    columns = {} if report.values is None else {"threshold": [f"{report.values[s.name]:.4g}" for s in shown]}
    columns |= {
        "scores": [f"{site.n:,}" for site in shown],
        "covered": [f"{site.covered:,}" for site in shown],
        "coverage": [f"{site.coverage:.4f}{'*' if site.below else ' '}" for site in shown],
        f"{report.level:.4g} interval": [f"[{site.low:.4f}, {site.high:.4f}]" for site in shown],
    }
    if (predicted := report.predicted) is not None:
        columns["expected"] = [f"{predicted.sites[site.name]:.4f}" for site in shown]
    if (own := report.spread) is not None:
        columns[f"own {report.target:.3g}"] = [number_text(float(f"{own.sites[s.name]:.4g}")) for s in shown]
    if report.epsilon is not None:
        columns["epsilon"] = [f"{report.epsilon[site.name]:.3g}" for site in shown]
    return [("site", *columns), *zip([site.name for site in shown], *columns.values(), strict=True)]


def _table(report: ReportToDescribe) -> list[str]:
    """Lay out the sites, worst first."""
    shown = report.sites if len(report.sites) <= ROWS else report.sites[: ROWS - 1]
    cells = _cells(report, shown)
    wide = [max(len(row[i]) for row in cells) for i in range(1, len(cells[0]))]
    room = WIDTH - sum(wide) - 2 * len(wide)
    lines = [_line(row[0], room, zip(row[1:], wide, strict=True)) for row in cells]
    lines.insert(1, "-" * WIDTH)
    rest = report.sites[len(shown) :]
    if rest:
        lines.append(f"and {len(rest):,} more, coverage {rest[0].coverage:.4f} to {rest[-1].coverage:.4f}")
    return lines


def _line(name: str, room: int, cells: Iterable[tuple[str, int]]) -> str:
    """Lay one line of the table."""
    shown = name if len(name) <= room else name[: room - 1] + "…"
    return f"{shown:<{room}}" + "".join(f"  {text:>{width}}" for text, width in cells)

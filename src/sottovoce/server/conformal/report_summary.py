"""The table of a coverage report, in plain text."""

import math
from typing import TYPE_CHECKING

from sottovoce.server.conformal.report_result import FLATTERED
from sottovoce.server.description import WIDTH, wrapped

if TYPE_CHECKING:
    from sottovoce.server.conformal.report_result import CoverageReport, SiteCoverage

ROWS = 40  # of the worst sites; the others share a line
WEIGHTS = {"sites": "sites count alike", "records": "sites count by size", "given": "given weights"}


def summary(report: "CoverageReport") -> str:
    """Return threshold, mixture, promise and expectation, every site worst first, and the caveats."""
    mixture, worst = report.mixture, report.worst
    lines = [
        f" Coverage by site, target {report.target:.6g} ".center(WIDTH, "="),
        *wrapped("Threshold", f"{report.value:.6g}"),
        *wrapped(
            "Mixture",
            f"{mixture.estimate:.4f} [{mixture.low:.4f}, {mixture.high:.4f}]   "
            f"({WEIGHTS[mixture.weights]}; {report.level:.4g} guaranteed)",
        ),
    ]
    if report.homogeneous is not None:
        least = "at least " if report.private_threshold else ""
        words = f"{least}{report.homogeneous:.4f}, on average over calibrations, if all sites had one law"
        lines += wrapped("Promised", words)
    if report.predicted is not None:
        lines += wrapped("Expected", f"{report.predicted.mixture:.4f}, likewise, under the laws the sites do have")
    elif report.homogeneous is not None:
        lines += wrapped("Expected", f"not known under the sites' own laws: {report.unpredicted}")
    lines += wrapped("Worst", f"{worst.name}: {worst.coverage:.4f} [{worst.low:.4f}, {worst.high:.4f}]")
    lines += wrapped("Below", verdict(report))
    if (spread := report.spread) is not None:
        lines += wrapped(
            f"Own {report.target:.4g}",
            f"quantiles from {spread.least:.6g} to {spread.largest:.6g}, median {spread.median:.6g}",
        )
    if report.dropped:
        lines += wrapped("Left out", f"{report.dropped:,} missing values")
    lines += ["-" * WIDTH, *_table(report), "-" * WIDTH]
    lines += wrapped("Caution", FLATTERED)
    lines += wrapped("Caution" if report.epsilon is None else "Protected", report.promise)
    return "\n".join([*lines, "=" * WIDTH])


def verdict(report: "CoverageReport") -> str:
    """Say how many sites fail the target beyond chance."""
    count, number = len(report.below), len(report.sites)
    if not count:
        return f"no site is below {report.target:.6g} beyond chance"
    return (
        f"{count:,} of {number:,} site{'' if number == 1 else 's'} (marked *) {'is' if count == 1 else 'are'} below "
        f"{report.target:.6g} beyond chance: one or more wrongly so with probability {report.error:.3g} at most (Holm)"
    )


def promise(report: "CoverageReport") -> str:
    """Say what a private report protects."""
    worst = max((report.epsilon or {}).values())
    unit = "person" if report.per_person else "record"
    text = (
        "Each site sent one number, how many of its scores are covered, with two-sided geometric noise; whoever sees "
        f"it can shift the odds between any two values of a {unit} by at most a factor {math.exp(worst):.3g} (epsilon "
        f"{worst:.3g}, computed from the integer of the noise). "
    )
    if report.seeded:
        text += "This run used seeded dice, which anybody can throw again: it is a simulation and protects nobody. "
    return text + (
        "Not protected: which sites took part and how many scores each has; and where the same scores made the "
        "threshold, the epsilons of both rounds add up."
    )


def _table(report: "CoverageReport") -> list[str]:
    """Lay out the sites, worst first; what is not known has no column."""
    shown = report.sites if len(report.sites) <= ROWS else report.sites[: ROWS - 1]
    columns = {
        "scores": [f"{site.n:,}" for site in shown],
        "covered": [f"{site.covered:,}" for site in shown],
        "coverage": [f"{site.coverage:.4f}{'*' if site.below else ' '}" for site in shown],
        f"{report.level:.4g} interval": [f"[{site.low:.4f}, {site.high:.4f}]" for site in shown],
    }
    if (predicted := report.predicted) is not None:
        columns["expected"] = [f"{predicted.sites[site.name]:.4f}" for site in shown]
    if (spread := report.spread) is not None:
        columns[f"own {report.target:.3g}"] = [f"{spread.sites[site.name]:.4g}" for site in shown]
    if report.epsilon is not None:
        columns["epsilon"] = [f"{report.epsilon[site.name]:.3g}" for site in shown]
    wide = {title: max(map(len, [title, *cells])) for title, cells in columns.items()}
    room = WIDTH - sum(wide.values()) - 2 * len(wide)
    lines = [_line("site", room, {title: (title, width) for title, width in wide.items()}), "-" * WIDTH]
    for place, site in enumerate(shown):
        lines.append(_line(site.name, room, {title: (columns[title][place], width) for title, width in wide.items()}))
    rest = report.sites[len(shown) :]
    return [*lines, _others(rest)] if rest else lines


def _line(name: str, room: int, cells: dict[str, tuple[str, int]]) -> str:
    """Lay one line of the table."""
    shown = name if len(name) <= room else name[: room - 1] + "…"
    return f"{shown:<{room}}" + "".join(f"  {text:>{width}}" for text, width in cells.values())


def _others(rest: "tuple[SiteCoverage, ...]") -> str:
    """Say what is not shown."""
    return f"and {len(rest):,} more, coverage {rest[0].coverage:.4f} to {rest[-1].coverage:.4f}"

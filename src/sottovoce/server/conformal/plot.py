"""Pictures of coverage: every site with its interval, worst first; and the promised distribution of the coverage."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.inference.conformal import SiteCoverage
from sottovoce.server.picture import BAND, INK, SOFT, WARM, clear, new_figure, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROWS = 100  # more sites than a page has room for share the last row
GREY = "#333333"
TAIL = 1e-4  # of a distribution, beyond which it is not drawn
FINE = 400  # points of a curve


# A result draws itself by these functions, so that they cannot name its class without a circle of imports.
ReportToDraw = Any  # a CoverageReport
ThresholdToDraw = Any  # a Threshold


def draw(report: ReportToDraw) -> "Figure":
    """Draw the coverage of every site, worst first."""
    shown = report.sites if len(report.sites) <= ROWS else report.sites[: ROWS - 1]
    rest = report.sites[len(shown) :]
    number = len(shown) + bool(rest)
    row = max(0.14, min(0.3, 9 / number))  # inches
    figure = new_figure(9.2, 2.2 + row * (number + 1.4))
    left, right = figure.subplots(1, 2, width_ratios=(5.6, 1.3))
    size = max(5.5, min(8.5, 29 * row))
    _sites(left, report, shown, rest, size)
    _columns(right, report, shown, rest, size)
    figure.legend(*left.get_legend_handles_labels(), fontsize=8, frameon=False, loc="outside lower center", ncols=2)
    return figure


def _sites(
    axes: "Axes",
    report: ReportToDraw,
    shown: tuple[SiteCoverage, ...],
    rest: tuple[SiteCoverage, ...],
    size: float,
) -> None:
    """Draw dots with intervals, and the lines to compare them with."""
    thick = size / 4.2
    mixture, foot = report.mixture, len(shown) + bool(rest) + 0.4
    axes.axvspan(mixture.low, mixture.high, color=BAND, lw=0)
    axes.axvline(report.target, color=GREY, lw=1.2, label=f"target {report.target:.4g}")
    if report.homogeneous is not None:
        least = "at least " if report.private_threshold else ""
        words = f"promised {least}{report.homogeneous:.4f}, if sites were alike"
        axes.axvline(report.homogeneous, color=GREY, lw=1.2, ls=":", label=words)
    for colour, flag, words in ((SOFT, False, "site"), (WARM, True, "site below target, beyond chance")):
        places = [place for place, site in enumerate(shown) if site.below is flag]
        if places:
            sites = [shown[place] for place in places]
            axes.hlines(places, [s.low for s in sites], [s.high for s in sites], color=colour, lw=thick, alpha=0.6)
            axes.plot(
                [s.coverage for s in sites], places, "o", color=colour, ms=0.62 * size,
                label=f"{words}, with {report.level:.4g} interval",
            )  # fmt: skip
    if report.predicted is not None:
        expected = [report.predicted.sites[site.name] for site in shown]
        axes.plot(
            [*expected, report.predicted.mixture], [*range(len(shown)), foot], "|", color="black", ms=1.15 * size,
            mew=1.2, label="to be expected of a new calibration",
        )  # fmt: skip
    if rest:
        axes.hlines(len(shown), rest[0].coverage, rest[-1].coverage, color=SOFT, lw=thick, ls=":")
    axes.axhline(foot - 0.7, color="#999999", lw=0.8)
    axes.hlines(foot, mixture.low, mixture.high, color=INK, lw=2 * thick)
    axes.plot(mixture.estimate, foot, "D", color=INK, ms=0.75 * size, label=f"mixture {mixture.estimate:.4f}")
    names = [short(site.name) for site in shown] + ([f"and {len(rest):,} more"] if rest else [])
    axes.set_yticks([*range(len(names)), foot], [*names, "mixture"], fontsize=size)
    for site, label in zip([*shown, *rest[:1], None], axes.get_yticklabels(), strict=True):
        label.set_color(INK if site is None else WARM if site.below else GREY)
    axes.set_ylim(foot + 0.8, -0.8)
    axes.set_xlim(*_frame(report, shown, rest))
    axes.set_xlabel("coverage")
    axes.set_title(_title(report), fontsize=11, loc="left", pad=18)
    clear(axes)
    axes.grid(visible=False, axis="y")


def _title(report: ReportToDraw) -> str:
    """Say the mixture and the worst site in one line, how many fail in another."""
    worst, count = report.worst, len(report.below)
    said = f"{count:,} of {len(report.sites):,} sites {'is' if count == 1 else 'are'}" if count else "no site is"
    first = f"Coverage {report.mixture.estimate:.3f} on average, {worst.coverage:.3f} at {short(worst.name)}"
    return f"{first}\n{said} below {report.target:.4g} beyond chance"


def _frame(
    report: ReportToDraw, shown: tuple[SiteCoverage, ...], rest: tuple[SiteCoverage, ...]
) -> tuple[float, float]:
    """Return the part of the axis that holds everything, with a little room."""
    ends = [report.target, report.mixture.low, report.mixture.high]
    ends += [end for site in (*shown, *rest[-1:]) for end in (site.low, site.high)]
    ends += [] if report.homogeneous is None else [report.homogeneous]
    ends += [] if report.predicted is None else list(report.predicted.sites.values())
    low, high = min(ends), max(ends)
    room = max(0.04 * (high - low), 1e-3)
    return low - room, high + room


def _columns(
    axes: "Axes",
    report: ReportToDraw,
    shown: tuple[SiteCoverage, ...],
    rest: tuple[SiteCoverage, ...],
    size: float,
) -> None:
    """Write beside each site its scores and its coverage, and the sum of both below."""
    foot = len(shown) + bool(rest) + 0.4
    cells = [(float(place), f"{site.n:,}", f"{site.coverage:.4f}") for place, site in enumerate(shown)]
    if rest:
        cells.append((float(len(shown)), f"{sum(site.n for site in rest):,}", ""))
    cells.append((foot, f"{sum(site.n for site in report.sites):,}", f"{report.mixture.estimate:.4f}"))
    for where, title, column in ((0.52, "scores", 1), (1.0, "coverage", 2)):
        axes.annotate(title, (where, -0.8), (0, 4), textcoords="offset points", ha="right", fontsize=8, color="#666666")
        for cell in cells:
            axes.text(where, cell[0], str(cell[column]), ha="right", va="center", fontsize=size)
    axes.set_xlim(0, 1)
    axes.set_ylim(foot + 0.8, -0.8)
    axes.set_axis_off()


def draw_distribution(threshold: ThresholdToDraw) -> "Figure":
    """Draw the exact distribution of the coverage over calibrations, with the target and the mean."""
    wanted, least = 1 - threshold.alpha, "at least " if threshold.epsilon is not None else ""
    fine, height = distribution_density(*threshold.distribution)
    levels = np.sort(np.append(fine, min(max(wanted, fine[0]), fine[-1])))  # so that both parts meet at the target
    density = np.interp(levels, fine, height)
    figure = new_figure(7.6, 4.2)
    axes = figure.subplots()
    for part, colour, chance in (
        (levels >= wanted, SOFT, threshold.confidence),
        (levels <= wanted, WARM, 1 - threshold.confidence),
    ):
        sign = "≥" if colour == SOFT else "<"
        bound = least if colour == SOFT else "at most " if least else ""
        words = f"coverage {sign} {wanted:.4g}: probability {bound}{chance:.3f}"
        axes.fill_between(levels, density, where=part, color=colour, alpha=0.45, lw=0, label=words)
    axes.plot(levels, density, color=INK, lw=1.5)
    axes.axvline(wanted, color=GREY, lw=1.2, label=f"target {wanted:.4g}")
    axes.axvline(
        threshold.coverage, color=GREY, lw=1.2, ls=":", label=f"promised on average: {least}{threshold.coverage:.4f}"
    )
    if threshold.infinite_chance > TAIL:
        axes.plot([], [], " ", label=f"and an infinite set, by noise alone: {threshold.infinite_chance:.3g}")
    axes.set_ylim(0, 1.06 * float(density.max()))
    axes.set_xlim(float(levels[0]), float(levels[-1]))
    axes.set_yticks([])
    number, scores = len(threshold.sizes), sum(threshold.sizes.values())
    axes.set_xlabel("coverage of one calibration, if sites are alike")
    axes.set_title(
        f"Coverage {least}{threshold.coverage:.4f} on average, standard deviation {threshold.sd:.4f}\n"
        f"over calibrations of {number:,} site{'' if number == 1 else 's'} with {scores:,} scores",
        fontsize=11,
        loc="left",
    )
    figure.legend(fontsize=8, frameon=False, loc="outside lower center", ncols=2)
    clear(axes)
    return figure


def distribution_density(levels: Floats, at_least: Floats) -> tuple[Floats, Floats]:
    """Return a density on a fine grid from the probabilities of at least each level.

    Their normal quantile is nearly a line in the logit of the level, so a spline through it is smooth and close.

    >>> from scipy.integrate import trapezoid
    >>> from scipy.special import ndtr
    >>> logit = np.linspace(1, 3, 15)
    >>> fine, density = distribution_density(1 / (1 + np.exp(-logit)), ndtr((2 - logit) / 0.2))
    >>> float(fine[density.argmax()].round(2)), float(trapezoid(density, fine).round(3))
    (0.88, 1.0)
    """
    from scipy.interpolate import CubicSpline
    from scipy.special import expit, logit, ndtri

    finite = 1 - at_least[-1]  # a set may be infinite, and nearly all may be
    kept = (at_least > TAIL / 100) & (at_least < 1 - TAIL / 100 * finite) & (levels < 1 - 1e-12)
    places, normal = logit(levels[kept]), ndtri(at_least[kept])
    seen = places[(at_least[kept] > at_least[-1] + TAIL * finite) & (at_least[kept] < 1 - TAIL * finite)]
    fine = np.linspace(seen[0], seen[-1], FINE)
    curve = CubicSpline(places, normal)
    shape = expit(fine)
    rate = -curve(fine, 1) / (shape * (1 - shape))
    return shape, np.maximum(np.exp(-(curve(fine) ** 2) / 2) / math.sqrt(2 * math.pi) * rate, 0.0)

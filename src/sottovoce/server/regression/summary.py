"""What a private quantile regression says of itself: a table in plain text and as values, its promise, a picture."""

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sottovoce.core.bounds import Bounds
from sottovoce.server.description import WIDTH, Description, finite, labelled
from sottovoce.server.picture import INK, SOFT, check_path, clear, save, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METHODS = {
    "dithered": "dithered regression root",
    "self-normalised": "self-normalised trajectory",
    "groups": "divide-and-conquer groups",
    "higrad": "HiGrad tree",
}


class RegressionFacts(NamedTuple):
    """How a regression was run: all public, and no record."""

    taus: tuple[float, ...]
    several: bool  # whether levels were given as a sequence
    inference: str
    epsilon: float  # realised, computed from the channels
    private: bool
    people: int
    channel: str
    why: str  # this channel
    letters: int  # of the largest alphabet; 0: exact scores
    split: bool  # whether each person answered for one level only
    level: float = 0.95  # of the intervals, unless another is asked for
    response: str = ""  # the name of the response, if it has one


class CoefficientRow(NamedTuple):
    """A line of the table: a coefficient, its standard error and interval, or why they are missing."""

    value: float
    error: float | None
    interval: tuple[float, float] | None
    reason: str | None


Table = Mapping[str, CoefficientRow]


def describe(
    facts: RegressionFacts, tables: Sequence[Table], warnings: Sequence[str], level: float, clipped: int = 0
) -> Description:
    """Say how the regression was run, a table of coefficients for each level, warnings and promise."""
    rows = [("Response", facts.response)] if facts.response else []
    rows += [
        ("People", f"{facts.people:,}, one report each"),
        ("Epsilon", f"{facts.epsilon:.6g}, computed from the channel"),
        ("Channel", channel_words(facts)),
        ("Inference", METHODS[facts.inference]),
        ("Private", "yes" if facts.private else "no (simulation, or no budget)"),
    ]
    if clipped:
        rows.append(("Clipped", f"{clipped:,} {'row was' if clipped == 1 else 'rows were'} moved to the bounds"))
    if facts.split:
        rows.append(("Levels", "each person answered for one level, drawn at random"))
    lines, reasons = _table(facts, tables, level)
    every = len(facts.taus) * len(tables[0])
    notes = []
    for reason, missing in reasons.items():
        whom = "" if len(missing) == every else f" for {', '.join(missing)}"
        notes.append(("No interval", f"not enough information{whom}: {reason}"))
    notes += [*labelled("Warning", warnings), ("Promise", promise(facts))]
    title = f"Private quantile regression, tau = {', '.join(f'{tau:.6g}' for tau in facts.taus)}"
    return Description(title, rows, lines, notes, _values(facts, tables, warnings, level, clipped))


def _table(facts: RegressionFacts, tables: Sequence[Table], level: float) -> tuple[list[str], dict[str, list[str]]]:
    """Lay the table of coefficients; return why intervals are missing, and whose."""
    tail = (1 - level) / 2
    lines = [_line("", "coef", "std err", f"[{tail:.4g}", f"{1 - tail:.4g}]")]
    reasons: dict[str, list[str]] = {}
    several = len(facts.taus) > 1
    for tau, rows in zip(facts.taus, tables, strict=True):
        lines.append(f" tau = {tau:.6g} ".center(WIDTH, "-") if several else "-" * WIDTH)
        for name, row in rows.items():
            ends = ("-", "-") if row.interval is None else tuple(_number(end) for end in row.interval)
            lines.append(_line(name, _number(row.value), "-" if row.error is None else _number(row.error), *ends))
            if row.reason is not None:
                reasons.setdefault(row.reason, []).append(_where(name, tau, several=several))
    return lines, reasons


def _values(
    facts: RegressionFacts, tables: Sequence[Table], warnings: Sequence[str], level: float, clipped: int
) -> dict[str, Any]:
    """Return everything as plain values, ready for strict JSON: what is infinite is None."""
    levels = [
        {
            "tau": tau,
            "coefficients": [
                {
                    "name": name,
                    "estimate": finite(row.value),
                    "error": row.error,
                    "low": None if row.interval is None else finite(row.interval[0]),
                    "high": None if row.interval is None else finite(row.interval[1]),
                    "reason": row.reason,
                }
                for name, row in rows.items()
            ],
        }
        for tau, rows in zip(facts.taus, tables, strict=True)
    ]
    return {
        **({"response": facts.response} if facts.response else {}),
        "levels": levels,
        "level": level,
        "people": facts.people,
        "clipped": clipped,
        "epsilon": finite(facts.epsilon),
        "private": facts.private,
        "channel": facts.channel,
        "split": facts.split,
        "inference": facts.inference,
        "warnings": list(warnings),
        "promise": promise(facts),
    }


def sentence_of_missing(refused: list[tuple[float, dict[str, str]]]) -> str:
    """Name the coefficients without an interval, those with the same reason together; empty if there are none."""
    missing: dict[str, list[str]] = {}
    for tau, reasons in refused:
        for name, reason in reasons.items():
            missing.setdefault(reason, []).append(_where(name, tau, several=len(refused) > 1))
    return " ".join(f"no interval for {', '.join(names)}: {reason}" for reason, names in missing.items())


def _where(name: str, tau: float, *, several: bool) -> str:
    """Name a coefficient, with its level if there are several."""
    return f"{name!r} at tau {tau:.6g}" if several else repr(name)


def channel_words(facts: RegressionFacts) -> str:
    """Describe the channel in a line."""
    answer = f"one of {facts.letters:,} letters" if facts.letters else "the exact score"
    return f"{facts.channel} ({facts.why}); a report is {answer}"


def promise(facts: RegressionFacts) -> str:
    """Return the paragraph that belongs under every private coefficient."""
    if math.isinf(facts.epsilon):
        return "No privacy: epsilon is infinite, so every score was sent as it is."
    text = (
        "Each person answered once, with one letter that was drawn at random before it left them; whoever sees that "
        "letter can shift the odds between any two records, covariates and response, by at most a factor "
        f"{math.exp(facts.epsilon):.3g} (epsilon {facts.epsilon:.3g}, computed from the integers of the channel). "
    )
    if not facts.private:
        text += "This run used seeded dice, which anybody can throw again: it is a simulation and protects nobody. "
    return text + (
        "Not protected: how many people took part, how many rows were clipped, and, where one individual gave several "
        "rows or several studies ask the same person, the sum of their epsilons."
    )


def _line(name: str, *cells: str) -> str:
    """Lay one line of the table."""
    shown = name if len(name) <= 26 else name[:25] + "…"
    return f"{shown:<26}" + "".join(f"{cell:>13}" for cell in cells)


def _number(value: float) -> str:
    """Write a number to five digits."""
    return f"{value:.5g}"


ACROSS = 3  # panels beside each other


def plot(
    facts: RegressionFacts, bounds: Bounds, rows: Sequence[Table], path: str | os.PathLike[str], level: float
) -> Path:
    """Draw the coefficients with their intervals to a .png, .svg or .pdf file and return its path."""
    target = check_path(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if len(rows) == 1:
        figure = Figure(figsize=(9.0, 1.9 + 0.42 * len(rows[0])), dpi=150, layout="constrained")
        _side_by_side(figure.subplots(), facts, bounds, rows[0], level)
    else:
        deep = math.ceil(len(rows[0]) / ACROSS)
        figure = Figure(figsize=(3.7 * ACROSS, 0.6 + 2.8 * deep), dpi=150, layout="constrained")
        _against_tau(figure, facts, rows, level)
    FigureCanvasAgg(figure)
    return save(figure, target)


def _side_by_side(axes: "Axes", facts: RegressionFacts, bounds: Bounds, rows: Table, level: float) -> None:
    """Draw what each covariate does to the quantile from the middle of its bounds to the upper one."""
    # raw slopes have units of their own; over half the bounds all of them are in the unit of the response
    halves = dict(zip(bounds.names, bounds.half.tolist(), strict=True))
    for place, (name, half) in enumerate(halves.items()):
        row = rows[name]
        if row.interval is not None:
            axes.hlines(place, row.interval[0] * half, row.interval[1] * half, color=SOFT, lw=5, alpha=0.55)
        axes.plot(row.value * half, place, "o", color=INK, ms=6)
        ends = "no interval" if row.interval is None else f"[{row.interval[0]:.4g}, {row.interval[1]:.4g}]"
        axes.annotate(
            f"{row.value:.4g} {ends}", (row.value * half, place), (0, 8), textcoords="offset points", ha="center",
            fontsize=7.5, color="#333333",
        )  # fmt: skip
    axes.axvline(0, color="#999999", lw=0.8)
    axes.set_yticks(range(len(halves)), [short(name) for name in halves], fontsize=8.5)
    axes.set_ylim(len(halves) - 0.4, -0.75)
    axes.margins(x=0.15)
    axes.set_xlabel("change of the quantile from the middle of a covariate's bounds to the upper one")
    axes.set_title(f"{_title(facts)}: slopes with {level:.4g} intervals", fontsize=11, loc="left")
    clear(axes)
    axes.grid(visible=False, axis="y")


def _against_tau(figure: "Figure", facts: RegressionFacts, rows: Sequence[Table], level: float) -> None:
    """Draw each coefficient, in a panel of its own, against the quantile level."""
    names = list(rows[0])
    grid = figure.subplots(math.ceil(len(names) / ACROSS), ACROSS, squeeze=False, sharex=True)
    for axes, name in zip(grid.flat, names, strict=False):
        for tau, row in zip(facts.taus, rows, strict=True):
            interval = row[name].interval
            if interval is not None:
                axes.vlines(tau, *interval, color=SOFT, lw=4, alpha=0.55)
        axes.plot(facts.taus, [row[name].value for row in rows], "o-", color=INK, ms=4.5, lw=1.2)
        low, high = axes.get_ylim()
        if name != names[0] and low < 0 < high:
            axes.axhline(0, color="#999999", lw=0.8)
        axes.set_title(short(name), fontsize=9.5, loc="left")
        axes.set_xlabel("tau")
        axes.tick_params(labelbottom=True)  # shared axes are labelled at the bottom alone, where a panel may be hidden
        clear(axes)
    for axes in list(grid.flat)[len(names) :]:
        axes.set_visible(False)
    known = any(row.interval is not None for each in rows for row in each.values())
    shown = f"coefficients with {level:.4g} intervals" if known else "coefficients, too few people for intervals"
    figure.suptitle(f"{_title(facts)}: {shown}", fontsize=11, x=0.01, ha="left")


def _title(facts: RegressionFacts) -> str:
    """Say what the picture is of, in a few words."""
    what = f"The {facts.taus[0]:.4g} quantile" if len(facts.taus) == 1 else "Quantiles"
    return f"{what}, {facts.people:,} people, ε {facts.epsilon:.3g}"

"""What a private quantile regression says of itself: the table in plain text, the same as values, and its promise."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sottovoce.server.description import WIDTH, Description, finite, labelled

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

"""The table under a private quantile regression in plain text, the same as plain values, and its promise."""

import math
from typing import TYPE_CHECKING, Any

from sottovoce.server.description import WIDTH, finite, wrapped
from sottovoce.server.regression.answers import Row

if TYPE_CHECKING:
    from sottovoce.api.regression.stream import Stream

METHODS = {
    "dithered": "dithered regression root",
    "self-normalised": "self-normalised trajectory",
    "groups": "divide-and-conquer groups",
    "higrad": "HiGrad tree",
}


def summary(stream: "Stream", level: float) -> str:
    """Return how the regression was run, a table of coefficients for each level, warnings and promise."""
    taus, design = stream.answers.taus, stream.design
    lines = [
        f" Private quantile regression, tau = {', '.join(f'{tau:.6g}' for tau in taus)} ".center(WIDTH, "="),
        *wrapped("People", f"{stream.people:,}, one report each"),
        *wrapped("Epsilon", f"{stream.epsilon:.6g}, computed from the channel"),
        *wrapped("Channel", channel_words(stream)),
        *wrapped("Inference", METHODS[stream.settings.inference]),
        *wrapped("Private", "yes" if stream.private else "no (simulation, or no budget)"),
    ]
    if stream.clipped:
        lines += wrapped("Clipped", f"{stream.clipped:,} {_rows(stream.clipped)} moved to the bounds")
    if design.split:
        lines += wrapped("Levels", "each person answered for one level, drawn at random")
    tail = (1 - level) / 2
    header = _line("", "coef", "std err", f"[{tail:.4g}", f"{1 - tail:.4g}]")
    lines += ["-" * WIDTH, header]
    reasons: dict[str, list[str]] = {}
    for tau, rows in zip(taus, tables(stream, level), strict=True):
        lines.append(f" tau = {tau:.6g} ".center(WIDTH, "-") if len(taus) > 1 else "-" * WIDTH)
        for name, row in rows.items():
            ends = ("-", "-") if row.interval is None else tuple(_number(end) for end in row.interval)
            lines.append(_line(name, _number(row.value), "-" if row.error is None else _number(row.error), *ends))
            if row.reason is not None:
                reasons.setdefault(row.reason, []).append(_where(name, tau, several=len(taus) > 1))
    lines.append("-" * WIDTH)
    for reason, missing in reasons.items():
        whom = "" if len(missing) == len(taus) * len(stream.answers.names) else f" for {', '.join(missing)}"
        lines += wrapped("No interval", f"not enough information{whom}: {reason}")
    for warning in stream.answers.warnings:
        lines += wrapped("Warning", warning)
    lines += wrapped("Promise", promise(stream))
    return "\n".join([*lines, "=" * WIDTH])


def to_dict(stream: "Stream", level: float) -> dict[str, Any]:
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
        for tau, rows in zip(stream.answers.taus, tables(stream, level), strict=True)
    ]
    return {
        "levels": levels,
        "level": level,
        "people": stream.people,
        "clipped": stream.clipped,
        "epsilon": finite(stream.epsilon),
        "private": stream.private,
        "channel": stream.design.name,
        "split": stream.design.split,
        "inference": stream.settings.inference,
        "warnings": list(stream.answers.warnings),
        "promise": promise(stream),
    }


def tables(stream: "Stream", level: float) -> list[dict[str, Row]]:
    """Return the rows of each level by name, the intercept first."""
    answers = stream.answers
    return [
        {name: answers.row(at, j, level) for j, name in enumerate(answers.names)} for at in range(len(answers.taus))
    ]


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


def channel_words(stream: "Stream") -> str:
    """Describe the channel in a line."""
    design, letters = stream.design, max(channel.letters for channel in stream.design.channels)
    answer = f"one of {letters:,} letters" if letters else "the exact score"
    return f"{design.name} ({design.why}); a report is {answer}"


def promise(stream: "Stream") -> str:
    """Return the paragraph that belongs under every private coefficient."""
    if math.isinf(stream.epsilon):
        return "No privacy: epsilon is infinite, so every score was sent as it is."
    text = (
        "Each person answered once, with one letter that was drawn at random before it left them; whoever sees that "
        "letter can shift the odds between any two records, covariates and response, by at most a factor "
        f"{math.exp(stream.epsilon):.3g} (epsilon {stream.epsilon:.3g}, computed from the integers of the channel). "
    )
    if not stream.private:
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


def _rows(count: int) -> str:
    return "row was" if count == 1 else "rows were"

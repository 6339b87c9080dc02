"""What a private quantile regression says of itself: one line, a table in plain text and as values, its promise."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sottovoce.core.arrays import Bools
from sottovoce.core.digits import number_text, span
from sottovoce.server.description import (
    SIMULATION,
    WIDTH,
    Description,
    Outside,
    finite,
    labelled,
    of_column,
    percent,
    protection,
)

MOST_SHOWN = 3  # coefficients in one line
NAME, SPACE = 26, 13  # characters of a name and of a cell in the table, where no number is longer

METHODS = {
    "dithered": "dithered regression root",
    "self-normalised": "self-normalised trajectory",
    "groups": "divide-and-conquer groups",
    "higrad": "HiGrad tree",
}


DOUBTFUL = " ?"  # behind the name of a coefficient that is not determined
OF_SITES = "the mean of the sites' own, each weighed by its people"


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
    sites: int = 1  # whose people answered, each site's in a loop of its own


class CoefficientRow(NamedTuple):
    """A line of the table: a coefficient, its standard error and interval, or why they are missing or have no ends."""

    value: float
    error: float | None
    interval: tuple[float, float] | None
    reason: str | None
    determined: bool = True  # whether the reports tell enough of it to rely on the estimate

    @property
    def bounded(self) -> bool:
        """Tell whether its interval has ends."""
        return self.interval is not None and all(map(math.isfinite, self.interval))


Table = Mapping[str, CoefficientRow]


def headline(facts: RegressionFacts, table: Table, level: float) -> str:
    """Return a regression in one line: the slopes of its first level, the intercept last, as many as fit."""
    names = [*list(table)[1:], *list(table)[:1]]
    said = [f"{name} {row_text(table[name])}" for name in names[:MOST_SHOWN]]
    if len(names) > MOST_SHOWN:
        said.append(f"and {len(names) - MOST_SHOWN} more")
    if len(facts.taus) > 1:
        said.append(f"and {len(facts.taus) - 1} more level{'' if len(facts.taus) == 2 else 's'}")
    name = f"{facts.taus[0]:.6g} quantile{of_column(facts.response)} by regression"
    return f"{name}: {', '.join(said)} ({percent(level)}), {protection([facts.epsilon], facts.private)}"


def row_text(row: CoefficientRow, factor: float = 1.0) -> str:
    """Return a coefficient, times a factor, with its interval."""
    if row.interval is None or not row.bounded:
        return f"{_rough(row.value * factor)} (no interval)" if math.isfinite(row.value) else "not known"
    low, high = row.interval[0] * factor, row.interval[1] * factor
    width = span(low, row.value * factor, high)
    return f"{number_text(row.value * factor, width)} [{number_text(low, width)}, {number_text(high, width)}]"


def _rough(value: float) -> str:
    """Write a number of which nobody knows how good it is: to three digits."""
    return number_text(float(f"{value:.3g}"))


def describe(facts: RegressionFacts, tables: Sequence[Table], warnings: Sequence[str], level: float) -> Description:
    """Say how the regression was run, a table of coefficients for each level, warnings and promise."""
    rows = [("Response", facts.response)] if facts.response else []
    rows += [
        ("People", f"{facts.people:,}, one report each"),
        ("Epsilon", f"{facts.epsilon:.6g}, computed from the channel"),
        ("Channel", channel_words(facts)),
        ("Inference", METHODS[facts.inference]),
        ("Private", "yes" if facts.private else "no (simulation, or no budget)"),
    ]
    if facts.split:
        rows.append(("Levels", "each person answered for one level, drawn at random"))
    if facts.sites > 1:
        rows.append(("Sites", f"{facts.sites:,}; a coefficient is {OF_SITES}"))
    cells, reasons = _cells(facts, tables, level)
    every = len(facts.taus) * len(tables[0])
    notes = []
    for reason, missing in reasons.items():
        whom = "" if len(missing) == every else f" for {', '.join(missing)}"
        notes.append(("No interval", f"not enough information{whom}: {reason}"))
    notes += [*labelled("Warning", warnings), ("Promise", promise(facts))]
    title = f"Private quantile regression, tau = {', '.join(f'{tau:.6g}' for tau in facts.taus)}"
    values = _values(facts, tables, warnings, level)
    lines = _lines(facts, cells, len(tables[0]))
    return Description(title, rows, lines, notes, values, cells, _outside(facts, tables, level))


def _cells(
    facts: RegressionFacts, tables: Sequence[Table], level: float
) -> tuple[list[tuple[str, ...]], dict[str, list[str]]]:
    """Write the table of coefficients, the head first; return why intervals are missing, and whose."""
    tail, several = (1 - level) / 2, len(facts.taus) > 1
    cells: list[tuple[str, ...]] = [("", "coef", "std err", f"[{tail:.4g}", f"{1 - tail:.4g}]")]
    reasons: dict[str, list[str]] = {}
    for tau, rows in zip(facts.taus, tables, strict=True):
        for name, row in rows.items():
            shown = f"{name} at {tau:.6g}" if several else name
            shown += "" if row.determined or row.interval is None else DOUBTFUL
            if row.interval is not None and not row.bounded:
                cells.append((shown, _rough(row.value), "-", *map(number_text, row.interval)))
            elif row.interval is None or row.error is None:
                cells.append((shown, _rough(row.value), "-", "-", "-"))
            else:
                width = span(row.interval[0], row.value, row.interval[1])
                texts = (number_text(value, width) for value in (row.value, *row.interval))
                value, low, high = texts
                cells.append((shown, value, number_text(row.error, row.error), low, high))
            if row.reason is not None:
                reasons.setdefault(row.reason, []).append(_where(name, tau, several=several))
    return cells, reasons


def _lines(facts: RegressionFacts, cells: Sequence[Sequence[str]], rows: int) -> list[str]:
    """Lay the table of coefficients, level by level."""
    space = max(SPACE, *(2 + len(cell) for row in cells for cell in row[1:]))
    room = max(min(NAME, 2 + max(len(row[0]) for row in cells)), WIDTH - 4 * space)
    lines, several = [_line(room, space, *cells[0])], len(facts.taus) > 1
    for place, row in enumerate(cells[1:]):
        tau = facts.taus[place // rows]
        if place % rows == 0:
            lines.append(f" tau = {tau:.6g} ".center(WIDTH, "-") if several else "-" * WIDTH)
        lines.append(_line(room, space, row[0].replace(f" at {tau:.6g}", "") if several else row[0], *row[1:]))
    return lines


def _outside(facts: RegressionFacts, tables: Sequence[Table], level: float) -> Outside:
    """Return what somebody outside the study asks."""
    response, names = facts.response or "the response", list(tables[0])
    taus = ", ".join(f"{tau:.6g}" for tau in facts.taus)
    several = len(facts.taus) > 1
    question = (
        f"How does the {taus} quantile of {response} change with {', '.join(names[1:])}? {facts.people:,} people were "
        "asked."
    )
    said = "; ".join(
        f"{_where(name, tau, several=several)} {row_text(row)}"
        for tau, rows in zip(facts.taus, tables, strict=True)
        for name, row in list(rows.items())[1:]
    )
    assumed = (
        "The quantile is a linear function of the covariates, within their public bounds.",
        "People answer in random order, each once; no answer is missing.",
        "Intervals are asymptotic, and have no ends where people tell too little.",
        *((f"Where sites differ, a coefficient is {OF_SITES}.",) if facts.sites > 1 else ()),
    )
    settings = (
        ("Level of the quantile", taus),
        ("Level of confidence", f"{level:.6g}"),
        ("Covariates", ", ".join(names[1:])),
    )
    answer = f"Change of the quantile for one unit more: {said} ({percent(level)} confidence each)."
    return Outside(question, answer, promise(facts), assumed, settings)


def _values(facts: RegressionFacts, tables: Sequence[Table], warnings: Sequence[str], level: float) -> dict[str, Any]:
    """Return everything as plain values, ready for strict JSON: what is infinite is None."""
    levels = [
        {
            "tau": tau,
            "coefficients": [
                {
                    "name": name,
                    "estimate": finite(row.value),
                    "error": None if row.error is None else finite(row.error),
                    "low": None if row.interval is None else finite(row.interval[0]),
                    "high": None if row.interval is None else finite(row.interval[1]),
                    "reason": row.reason,
                    "determined": row.determined,
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
        **({"sites": facts.sites} if facts.sites > 1 else {}),
        "epsilon": finite(facts.epsilon),
        "private": facts.private,
        "channel": facts.channel,
        "split": facts.split,
        "inference": facts.inference,
        "warnings": list(warnings),
        "promise": promise(facts),
    }


def sentence_of_missing(refused: list[tuple[float, dict[str, str]]]) -> str:
    """Name the coefficients without an interval, or with one without ends, those with the same reason together."""
    missing: dict[str, list[str]] = {}
    for tau, reasons in refused:
        for name, reason in reasons.items():
            missing.setdefault(reason, []).append(_where(name, tau, several=len(refused) > 1))
    return " ".join(f"no interval for {', '.join(names)}: {reason}" for reason, names in missing.items())


def sentence_of_doubt(
    facts: RegressionFacts, names: Sequence[str], determined: Bools, needed: int | None = None
) -> list[str]:
    """Name the coefficients that the reports do not determine, in one sentence; none if there are none."""
    several = len(facts.taus) > 1
    doubtful = [
        _where(name, tau, several=several)
        for tau, row in zip(facts.taus, determined, strict=True)
        for name, sure in zip(names, row, strict=True)
        if not sure
    ]
    if not doubtful:
        return []
    more = "more people" if needed is None else f"about {needed:,} people (studies alike differ by up to a factor 2)"
    return [
        f"the reports do not determine {', '.join(doubtful)}: do not rely on the estimate alone; ask {more}, or allow "
        "a larger epsilon."
    ]


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
        text += SIMULATION
    return text + (
        "Not protected: how many people took part, and, where one individual gave several rows or several studies ask "
        "the same person, the sum of their epsilons."
    )


def _line(room: int, space: int, name: str, *cells: str) -> str:
    """Lay one line of the table, with room for a name and space for each cell."""
    shown = name if len(name) <= room else name[: room - 1] + "…"
    return f"{shown:<{room}}" + "".join(f"{cell:>{space}}" for cell in cells)

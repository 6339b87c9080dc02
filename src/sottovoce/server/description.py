"""What every result gives back: one description, an interval with the test that agrees with it, a privacy promise.

A method says once what is worth saying: rows of a label and a text with the plain values they stand for, a table, and
the paragraphs under it. `text` sets that as a table to read, and `values` is what JSON gets.
"""

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sottovoce.core.shown import escaped

WIDTH = 78
INDENT = 15
ALTERNATIVES = ("two-sided", "greater", "less")


@dataclass(frozen=True)
class Description:
    """What a result says of itself.

    >>> about = Description("Private quantile", [("Estimate", "3.5")], notes=[("Warning", "few records")])
    >>> print(about.text().splitlines()[1])
    Estimate:      3.5
    """

    title: str
    rows: Sequence[tuple[str, str]]
    table: Sequence[str] = ()
    notes: Sequence[tuple[str, str]] = ()
    values: Mapping[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """Return the summary that a statistician reads at a glance."""
        lines = [f" {self.title} ".center(WIDTH, "=")]
        lines += [line for label, text in self.rows for line in wrapped(label, text)]
        if self.table:
            lines += ["-" * WIDTH, *self.table, "-" * WIDTH]
        lines += [line for label, text in self.notes for line in wrapped(label, text)]
        return escaped("\n".join([*lines, "=" * WIDTH]))


def wrapped(title: str, text: str) -> list[str]:
    """Set a text beside its title."""
    return textwrap.wrap(text, WIDTH, initial_indent=f"{title + ':':<{INDENT}}", subsequent_indent=" " * INDENT)


def labelled(label: str, texts: Iterable[str]) -> list[tuple[str, str]]:
    """Give several texts one label each."""
    return [(label, text) for text in texts]


def finite(value: float) -> float | None:
    """Return a value as strict JSON can hold it: None if it is infinite."""
    return value if math.isfinite(value) else None


class Interval(NamedTuple):
    """An interval of confidence."""

    low: float
    high: float


class Test(NamedTuple):
    """A test of a supposed quantile."""

    value: float
    alternative: str
    pvalue: float


def promise(epsilons: Mapping[str, float], private: bool, per_person: bool, seeded: bool | None = None) -> str:
    """Return what a finished study protects and what not, in words; ``seeded`` where it is not plain from the rest."""
    unit = "person" if per_person else "record"
    again = "" if per_person else "one individual gave several records or "
    exposed = [name for name, epsilon in epsilons.items() if math.isinf(epsilon)]
    finite = [epsilon for epsilon in epsilons.values() if math.isfinite(epsilon)]
    if not finite:
        return "No privacy: epsilon is infinite, so every answer was sent as it is."
    worst = max(finite)
    text = (
        f"Each {unit} answered at most once, with one bit that was randomised before it left its site; "
        f"whoever sees that bit can shift the odds between any two values of the {unit} by at most a factor "
        f"{math.exp(worst):.3g} (epsilon {worst:.3g}, computed from the integers of the channel). "
    )
    if exposed:
        text += f"Not so at {', '.join(exposed)}, where epsilon is infinite. "
    if (not private and not exposed) if seeded is None else seeded:
        text += "This run used seeded dice, which anybody can throw again: it is a simulation and protects nobody. "
    text += (
        "Not protected: which sites took part, how many records and missing values each holds, and, where "
        f"{again}several studies ask the same {unit}, the sum of their epsilons."
    )
    return text

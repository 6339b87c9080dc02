"""One description of a result, from which its summary and its JSON derive.

A method says once what is worth saying: rows of a label and a text with the plain values they stand for, a table, and
the paragraphs under it. `text` sets that as a table to read; `values` is what JSON gets.
"""

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

WIDTH = 78
INDENT = 15


@dataclass(frozen=True)
class Description:
    """What a result says of itself.

    Examples
    --------
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
        return "\n".join([*lines, "=" * WIDTH])


def wrapped(title: str, text: str) -> list[str]:
    """Set a text beside its title."""
    return textwrap.wrap(text, WIDTH, initial_indent=f"{title + ':':<{INDENT}}", subsequent_indent=" " * INDENT)


def labelled(label: str, texts: Iterable[str]) -> list[tuple[str, str]]:
    """Give several texts one label each."""
    return [(label, text) for text in texts]


def finite(value: float) -> float | None:
    """Return a value as strict JSON can hold it: None if it is infinite."""
    return value if math.isfinite(value) else None

"""What a study would do, told before anybody is asked: its questions, its privacy, and how wide the answer will be.

Everything here follows from public numbers: sizes, budgets, levels, bounds and guesses. No record is asked.
"""

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, NamedTuple

from sottovoce.server.description import Description, finite, labelled

LEVELS, VALUES = "levels", "values"
_TENSES = {  # from what a result says of its run to what a plan says of one to come
    " answered at most once": " answers at most once",
    "that was randomised before it left": "that is randomised before it leaves",
    "every answer was sent": "every answer would be sent",
    "which sites took part": "which sites take part",
    "Each site sent": "Each site sends",
    "sites sent scores": "sites send scores",
    "scores were sent": "scores are sent",
    "This run used": "This run would use",
    "Here the sum was taken": "Here the sum is taken",
    "No record was read": "No record is read",
}


class ExpectedWidth(NamedTuple):
    """How wide one interval will be: in values of the answer where a public scale is known, else in levels.

    ``low`` and ``high`` are the quantiles from which and to which it will reach, where they are known.
    """

    of: str
    value: float
    unit: str
    low: float | None = None
    high: float | None = None

    @property
    def text(self) -> str:
        """Return the width in words."""
        parts = []
        if self.low is not None and self.high is not None:
            parts.append(f"from about the {_level(self.low)} to the {_level(self.high)} quantile")
        if self.unit == VALUES:
            parts.append(f"about {self.value:.3g} wide" if math.isfinite(self.value) else "with an end open or far out")
        elif not parts:
            parts.append(f"about {self.value:.3g} wide, in levels")
        return f"{self.of}: {', '.join(parts)}" if self.of else ", ".join(parts)


@dataclass(frozen=True, repr=False)
class Explanation:
    """What a study would ask, protect and tell; print it for a table."""

    title: str
    asked: Sequence[tuple[str, str]]
    privacy: str
    widths: Sequence[ExpectedWidth]
    assumption: str
    warnings: Sequence[str] = ()
    table: Sequence[str] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    hints: Sequence[str] = ()  # what the records show: for their holder, so never part of `to_dict`
    in_table: bool = False  # whether the table has the widths, so that they need no rows

    @property
    def width(self) -> Any:
        """Return the expected width of the interval; of several, a mapping from each to its width."""
        if len(self.widths) == 1:
            return self.widths[0].value
        return {each.of: each.value for each in self.widths}

    def __str__(self) -> str:
        widths = () if self.in_table else self.widths
        rows = [*self.asked, *(("Expected", each.text) for each in widths), ("Assuming", self.assumption)]
        notes = [*labelled("Warning", self.warnings), *labelled("Hint", self.hints)]
        notes += [("Privacy", in_future(self.privacy)), ("Asked", "nobody so far")]
        return Description(self.title, rows, self.table, notes).text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for strict JSON."""
        return {
            **self.values,
            "plan": True,
            "asked": {label.lower(): text for label, text in self.asked},
            "expected": [{**each._asdict(), "value": finite(each.value)} for each in self.widths],
            "assumption": self.assumption,
            "privacy": in_future(self.privacy),
            "warnings": list(self.warnings),
        }


def in_future(text: str) -> str:
    """Say of a run to come what results say of one that is over."""
    for past, future in _TENSES.items():
        text = text.replace(past, future)
    return text


def reaching(of: str, low: float, high: float, scale: float | None) -> ExpectedWidth:
    """Return the width of an interval between two levels; with a scale, as normal values of that deviation have it.

    >>> reaching("", 0.4, 0.6, None).text, round(reaching("", 0.4, 0.6, 10.0).value, 2)
    ('from about the 0.4 to the 0.6 quantile', 5.07)
    """
    if scale is None:
        return ExpectedWidth(of, high - low, LEVELS, low, high)
    normal = NormalDist(0.0, scale)
    value = normal.inv_cdf(high) - normal.inv_cdf(low) if low > 0 and high < 1 else math.inf
    return ExpectedWidth(of, value, VALUES, low, high)


def _level(level: float) -> str:
    """Write a level with as many digits as tell it from the ends."""
    if level <= 0 or level >= 1:
        return "lowest" if level <= 0 else "highest"
    return f"{level:.3f}".rstrip("0") if 0.002 < level < 0.998 else f"{level:.6f}".rstrip("0")

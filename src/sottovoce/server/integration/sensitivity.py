"""The interval as a function of the bound that is assumed on the sources' differences: what each assumption buys."""

import math
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce.inference.integration.sensitivity import BEFOREHAND, SensitivityCurve, curve
from sottovoce.server.description import WIDTH, finite
from sottovoce.server.integration.combine import common, effective
from sottovoce.server.integration.settings import width_of
from sottovoce.server.integration.summary import width_text
from sottovoce.server.quantile.solutions import Interval

if TYPE_CHECKING:
    from sottovoce.server.integration.result import IntegratedResult


@dataclass(frozen=True)
class Sensitivity:
    """Intervals by assumed bound; print it for a table."""

    result: "IntegratedResult" = field(repr=False)
    curve: SensitivityCurve = field(repr=False)

    @property
    def bound(self) -> Floats:
        """Return the assumed bounds."""
        return self.curve.bound

    @property
    def low(self) -> Floats:
        """Return the lower edges."""
        return self.curve.low

    @property
    def high(self) -> Floats:
        """Return the upper edges."""
        return self.curve.high

    @property
    def length_ratio(self) -> Floats:
        """Return the lengths over that of the target's own interval."""
        return self.curve.length_ratio

    @property
    def columns(self) -> Mapping[str, Floats]:
        """Return the columns bound, low, high and length_ratio, ready for a data frame."""
        return {"bound": self.bound, "low": self.low, "high": self.high, "length_ratio": self.length_ratio}

    @property
    def refuted(self) -> float:
        """Return the bound below which the data contradict the assumption."""
        return self.curve.refuted

    @property
    def lost(self) -> float:
        """Return the bound from which on the gain is less than 5 %."""
        return self.curve.lost

    @property
    def note(self) -> str:
        """Return the sentence that belongs under every curve."""
        return BEFOREHAND

    def interval_at(self, bound: Any) -> Interval:
        """Return the interval under one bound."""
        found = self.curve.at(width_of(bound, "a bound", self.result.unit))
        return Interval(self.result.rounded(found.low), self.result.rounded(found.high))

    def table(self, rows: int = 11) -> str:
        """Return the curve as text: a few bounds, their intervals and lengths."""
        chosen = sorted({round(i) for i in np.linspace(0, len(self.bound) - 1, min(rows, len(self.bound)))})
        digits, unit = self.result.format, self.result.unit
        cells = [("bound", "low", "high", "length")]
        for i in chosen:
            ends = (digits(float(self.low[i])), digits(float(self.high[i])))
            cells.append((width_text(unit, float(self.bound[i])), *ends, f"{self.length_ratio[i]:.3f}"))
        wide = [max(len(row[k]) for row in cells) for k in range(4)]
        marks = ["", *("  refuted by the data" if self.bound[i] < self.refuted else "" for i in chosen)]
        lines = [
            "  ".join(f"{cell:>{width}}" for cell, width in zip(row, wide, strict=True)) + mark
            for row, mark in zip(cells, marks, strict=True)
        ]
        told = "Length is relative to the target's own interval. "
        told += f"Less than 5 % is gained from {width_text(unit, self.lost)} on."
        if self.refuted > 0:
            told += f" Bounds below {width_text(unit, self.refuted)} are refuted by the data."
        return "\n".join([*lines, *textwrap.wrap(told, WIDTH), *textwrap.wrap(self.note, WIDTH)])

    def plot(self, path: str | Path) -> Path:
        """Draw the curve to a file; bounds refuted by the data are grey."""
        from sottovoce.server.integration.plot import plot_sensitivity

        return plot_sensitivity(self, path)

    def to_dict(self) -> dict[str, Any]:
        """Return the curve as plain values."""
        return {
            "bound": [finite(float(value)) for value in self.bound],
            "low": [finite(float(value)) for value in self.low],
            "high": [finite(float(value)) for value in self.high],
            "length_ratio": [float(value) for value in self.length_ratio],
            "refuted": finite(self.refuted),
            "lost": finite(self.lost),
            "level": self.result.level,
            "note": self.note,
        }

    def __str__(self) -> str:
        return self.table()


def sensitivity(result: "IntegratedResult", bounds: Any = None) -> Sensitivity:
    """Compute the curve of a result; it needs a source with an error to be trusted."""
    sources = [site for site in result.sources if site.trusted]
    if not sources:
        raise BadInput("there is no source with a standard error to be trusted, so no bound helps; add a source.")
    if not math.isfinite(result.target.measured.std_error):
        raise BadInput("the target's own interval is unbounded, so there is nothing to compare with; add records.")
    shared = common(sources)
    if bounds is not None and (not isinstance(bounds, Iterable) or isinstance(bounds, str | bytes)):
        raise BadInput(f"bounds must be a list of bounds, not {bounds!r}; give several numbers, or leave it out.")
    chosen = None if bounds is None else sorted(width_of(value, "a bound", result.unit) for value in bounds)
    return Sensitivity(
        result,
        curve(
            effective(result.target, result.level),
            [site.measured for site in sources],
            result.level,
            chosen,
            None,
            shared,
        ),
    )

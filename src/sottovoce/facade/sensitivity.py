"""The interval as a function of the bound that is assumed on the sources' differences: what each assumption buys."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sottovoce.errors import BadInput
from sottovoce.facade.integration_combine import common
from sottovoce.facade.integration_settings import width_of
from sottovoce.facade.result import finite
from sottovoce.facade.solutions import Interval
from sottovoce.inference.sensitivity import BEFOREHAND, Curve, curve

if TYPE_CHECKING:
    from sottovoce.facade.integrated_result import IntegratedResult

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sensitivity:
    """Intervals by assumed bound; print it for a table."""

    result: "IntegratedResult" = field(repr=False)
    curve: Curve = field(repr=False)

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

    def interval_at(self, bound: float) -> Interval:
        """Return the interval under one bound."""
        found = self.curve.at(float(bound))
        return Interval(found.low, found.high)

    def table(self, rows: int = 11) -> str:
        """Return the curve as text: a few bounds, their intervals and lengths."""
        chosen = sorted({round(i) for i in np.linspace(0, len(self.bound) - 1, min(rows, len(self.bound)))})
        digits = self.result.format
        lines = [f"{'bound':>14}  {'low':>14}  {'high':>14}  {'length':>7}"]
        for i in chosen:
            mark = "  refuted by the data" if self.bound[i] < self.refuted else ""
            lines.append(
                f"{self.bound[i]:>14.6g}  {digits(float(self.low[i])):>14}  {digits(float(self.high[i])):>14}  "
                f"{self.length_ratio[i]:>7.3f}{mark}"
            )
        lines.append(
            f"Length is relative to the target's own interval. Less than 5 % is gained from {self.lost:.6g} on."
        )
        if self.refuted > 0:
            lines.append(f"Bounds below {self.refuted:.6g} are refuted by the data.")
        return "\n".join([*lines, self.note])

    def plot(self, path: str | Path) -> Path:
        """Draw the curve to a file; bounds refuted by the data are grey."""
        from sottovoce.facade.integrated_plot import plot_sensitivity

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


def sensitivity(result: "IntegratedResult", bounds: Sequence[float] | None = None) -> Sensitivity:
    """Compute the curve of a result; it needs a source with an error to be trusted."""
    sources = [site for site in result.sources if site.trusted]
    if not sources:
        raise BadInput("there is no source with a standard error to be trusted, so no bound helps; add a source.")
    if not math.isfinite(result.target.measured.error):
        raise BadInput("the target's own interval is unbounded, so there is nothing to compare with; add records.")
    shared = common(result.target, sources)
    chosen = None if bounds is None else sorted(width_of(value, "a bound", result.unit) for value in bounds)
    return Sensitivity(
        result,
        curve(result.target.measured, [site.measured for site in sources], result.level, chosen, None, shared),
    )

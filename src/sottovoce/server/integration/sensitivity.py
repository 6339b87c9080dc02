"""The interval as a function of the bound that is assumed on the sources' differences: what each assumption buys."""

import math
import textwrap
from collections.abc import Iterable
from typing import Any

import numpy as np

from sottovoce.core.errors import BadInput
from sottovoce.inference.integration.sensitivity import BEFOREHAND, SensitivityCurve, curve
from sottovoce.server.description import WIDTH, finite
from sottovoce.server.integration.combine import common, effective
from sottovoce.server.integration.integrated import Integrated
from sottovoce.server.integration.settings import width_of
from sottovoce.server.integration.summary import width_text


def bounds_of(result: Integrated, bounds: Any) -> tuple[float, ...] | None:
    """Return the bounds to show, in order and in the unit of the records; None for those that are worth showing."""
    if bounds is None:
        return None
    if not isinstance(bounds, Iterable) or isinstance(bounds, str | bytes):
        raise BadInput(f"bounds must be a list of bounds, not {bounds!r}; give several numbers, or leave it out.")
    return tuple(sorted(width_of(value, "a bound", result.unit) for value in bounds))


def curve_of(result: Integrated, bounds: tuple[float, ...] | None = None) -> SensitivityCurve:
    """Compute the curve of a result; it needs a source with an error to be trusted."""
    sources = [site for site in result.sources if site.trusted]
    if not sources:
        raise BadInput("there is no source with a standard error to be trusted, so no bound helps; add a source.")
    if not math.isfinite(result.target.measured.std_error):
        raise BadInput("the target's own interval is unbounded, so there is nothing to compare with; add records.")
    measured = [site.measured for site in sources]
    return curve(effective(result.target, result.level), measured, result.level, bounds, None, common(sources))


def curve_table(result: Integrated, curve: SensitivityCurve, rows: int = 11) -> str:
    """Return the curve as text: a few bounds, their intervals and lengths."""
    chosen = sorted({round(i) for i in np.linspace(0, len(curve.bound) - 1, min(rows, len(curve.bound)))})
    cells = [("bound", "low", "high", "length")]
    for i in chosen:
        ends = (result.format(float(curve.low[i])), result.format(float(curve.high[i])))
        cells.append((width_text(result.unit, float(curve.bound[i])), *ends, f"{curve.length_ratio[i]:.3f}"))
    wide = [max(len(row[k]) for row in cells) for k in range(4)]
    marks = ["", *("  refuted by the data" if curve.bound[i] < curve.refuted else "" for i in chosen)]
    lines = [
        "  ".join(f"{cell:>{width}}" for cell, width in zip(row, wide, strict=True)) + mark
        for row, mark in zip(cells, marks, strict=True)
    ]
    told = "Length is relative to the target's own interval. "
    told += f"Less than 5 % is gained from {width_text(result.unit, curve.lost)} on."
    if curve.refuted > 0:
        told += f" Bounds below {width_text(result.unit, curve.refuted)} are refuted by the data."
    return "\n".join([*lines, *textwrap.wrap(told, WIDTH), *textwrap.wrap(BEFOREHAND, WIDTH)])


def curve_values(curve: SensitivityCurve) -> dict[str, Any]:
    """Return the curve as plain values, ready for strict JSON."""
    return {
        "bound": [finite(float(value)) for value in curve.bound],
        "low": [finite(float(value)) for value in curve.low],
        "high": [finite(float(value)) for value in curve.high],
        "length_ratio": [float(value) for value in curve.length_ratio],
        "refuted": finite(curve.refuted),
        "lost": finite(curve.lost),
        "level": curve.level,
        "note": BEFOREHAND,
    }

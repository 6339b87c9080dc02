"""Axes of values in the unit of the records: few ticks, at round numbers or times, with the digits they need."""

import math
from typing import TYPE_CHECKING

import numpy as np

from sottovoce.core.digits import HUGE, number_text
from sottovoce.core.unit import Unit
from sottovoce.server.picture import plain, short

if TYPE_CHECKING:
    from matplotlib.axis import Axis

TICKS = {"number": 6, "duration": 5, "date": 5, "datetime": 4, "category": 8}
STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(60, 120, 300, 600, 900, 1800),
    *(3600, 7200, 10800, 21600, 43200),
    *(86400, 172800, 432000, 864000),
)  # seconds


def axis_name(column: str, unit: Unit) -> str:
    """Name an axis by the column of the records, or by what they are."""
    if not column:
        return unit.words
    return short(column, 40) if unit.kind in ("number", "category") else f"{short(column, 40)} ({unit.words})"


def value_axis(axis: "Axis", unit: Unit, *, widths: bool = False) -> None:
    """Write the ticks of an axis of values, or of ``widths`` between them, in their unit and few enough to stand apart.

    To be called when the limits of the axis are set.
    """
    from matplotlib.ticker import MaxNLocator

    kind, (low, high) = unit.kind, axis.get_view_interval()
    reach = abs(float(high - low))
    if kind in ("duration", "datetime"):
        _clock(axis, TICKS[kind])
    else:
        whole = kind in ("date", "category") and not widths
        axis.set_major_locator(MaxNLocator(TICKS[kind], integer=whole))
    gap = "\n" if kind == "datetime" and not widths and axis is axis.axes.xaxis else " "

    def text(value: float, _: object) -> str:
        if widths and kind in ("duration", "datetime"):
            return unit.format_width(value, reach / 10)
        if kind == "number" or widths:
            return tick_text(value, axis.get_majorticklocs())
        if kind == "category" and not 0 <= round(value) < len(unit.categories):
            return ""
        return plain(unit.format(value, reach / 10).replace(" ", gap if kind == "datetime" else " "))

    axis.set_major_formatter(text)
    axis.set_tick_params(labelsize=8.5)


def tick_text(value: float, ticks: object) -> str:
    """Write a tick with as many places as all of them need to differ.

    >>> tick_text(16.5, [16.0, 16.5, 17.0]), tick_text(120e6, [119e6, 120e6]), tick_text(5.0, [5.0, 5.000001])
    ('16.5', '120,000,000', '5.000000')
    """
    places = np.unique(np.asarray(ticks, dtype=np.float64))
    apart = float(np.diff(places).min()) if places.size > 1 else abs(value) or 1.0
    if abs(value) >= HUGE or apart < 1e-12:
        return number_text(value, 10 * apart)
    shown = next(
        (d for d in range(13) if np.all(np.abs(np.round(places, d) - places) < 1e-4 * apart)),
        max(1 - math.floor(math.log10(apart)), 0),
    )
    return f"{value if abs(value) > 1e-9 * apart else 0.0:,.{shown}f}"


def _clock(axis: "Axis", ticks: int) -> None:
    """Set the ticks at round times: whole minutes, hours, days; where all is within seconds, as for numbers."""
    from matplotlib.ticker import MaxNLocator, MultipleLocator

    low, high = axis.get_view_interval()
    steps = [step for step in STEPS if (high - low) / step <= ticks]
    inside = STEPS[0] <= (high - low) / 2 and steps
    axis.set_major_locator(MultipleLocator(steps[0]) if inside else MaxNLocator(ticks))

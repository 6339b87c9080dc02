"""What the numbers of a study measure: numbers, durations, dates, moments or ordered categories, all held as float64.

A category is held as its place in the declared order, from 0; a duration in seconds, a date in days since 1970-01-01, a
moment ("datetime") in seconds since 1970-01-01 00:00 (UTC where a time zone is known). A double holds seconds of this
century to a quarter of a microsecond.
"""

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sottovoce.core import digits, time_text
from sottovoce.core.censoring import Censoring
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import quoted

Kind = Literal["number", "duration", "date", "datetime", "category"]

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_SECONDS = {"D": 86400, "h": 3600, "m": 60, "s": 1}
_COARSE = {"1": "numbers", "D": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_NAMES = {"number": "", "duration": "seconds", "date": "days since 1970-01-01", "datetime": "seconds since 1970-01-01"}
_NAMES["category"] = ""
_PLURALS = {"number": "numbers", "duration": "durations", "date": "dates", "datetime": "dates with a time"}
_PLURALS["category"] = "categories"
_ADVICE = {
    "number": "a number: give a finite number",
    "duration": "a duration: give seconds, or text such as '90min' or '1:30:00'",
    "date": "a date: give text such as '2013-05-01'",
    "datetime": "a date with a time: give text such as '2013-05-01 14:00:00'",
    "category": "one of the declared categories: give the name of one",
}


@dataclass(frozen=True)
class Unit:
    """Name what a column of float64 measures, and translate between the numbers and text.

    ``kind`` is "number", "duration", "date", "datetime" or "category"; ``resolution`` the step in which the source
    stores the values by their type: "D", "h", "m", "s", "ms", "us" or "ns" for time, "1" for whole numbers and
    categories, empty for other numbers; ``zone`` the time zone in which a datetime is shown, such as "Europe/Berlin" or
    "+02:00", empty when the source has none; ``categories`` their declared names, in order; ``censored`` the declared
    limits beyond which numbers are symbols, such as `<5`.

    >>> Unit("date").format(15826.0)
    '2013-05-01'
    >>> Unit("duration", "s").parse("90min")
    5400.0
    >>> Unit("duration", "s").format(5000.0)
    '1 h 23 min 20 s'
    """

    kind: Kind
    resolution: str = ""
    zone: str = ""
    categories: tuple[str, ...] = ()
    censored: Censoring | None = None

    def __post_init__(self) -> None:
        if self.zone:
            time_text.zone_of(self.zone)  # refused here rather than when a result is written

    @property
    def name(self) -> str:
        """The measure of the float64 values, in words; empty for plain numbers."""
        return _NAMES[self.kind]

    @property
    def plural(self) -> str:
        """The kind, in words: "numbers", "durations", "dates", "dates with a time" or "categories"."""
        return _PLURALS[self.kind]

    @property
    def resolution_in_unit(self) -> float | None:
        """The step in which the source stores the values, as a float64 of this unit; None where there is none."""
        if not self.resolution:
            return None
        if self.kind not in ("duration", "datetime"):
            return 1.0
        return _SECONDS.get(self.resolution, 1) / _PER_SECOND.get(self.resolution, 1)

    @property
    def step(self) -> float:
        """The step of which the type alone says that all values are multiples, where it is a second or coarser, or 0.

        A source that stores fractions of a second says nothing of how time was measured.
        """
        return self.resolution_in_unit or 0.0 if self.resolution in _COARSE else 0.0

    @property
    def step_words(self) -> str:
        """What the type says, in words: "whole numbers by type", "whole days by type"; empty where it says nothing."""
        if not self.step:
            return ""
        return "ordered categories" if self.kind == "category" else f"whole {_COARSE[self.resolution]} by type"

    @property
    def timed(self) -> bool:
        """Tell whether a difference of two values is a duration."""
        return self.kind in ("duration", "date", "datetime")

    def to_float(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Turn whole counts of the resolution into float64 of this unit."""
        if self.kind not in ("duration", "datetime"):
            return counts.astype(np.float64)
        per_second = _PER_SECOND.get(self.resolution, 1)
        if per_second == 1:
            return counts.astype(np.float64) * _SECONDS[self.resolution]
        # Nanoseconds since 1970 exceed 2^53: splitting first keeps the seconds exact; splitting towards zero, as fmod
        # does, keeps a small negative duration from cancelling.
        part = np.fmod(counts, per_second)
        seconds: npt.NDArray[np.float64] = (counts - part) // per_second + part / per_second
        return seconds

    def format(self, value: float, width: float = math.nan, step: float = 0.0) -> str:
        """Write a value as text a person reads, with the digits that an interval of a width deserves."""
        value = float(value)
        if self.censored is not None and (symbol := self.censored.shown(value)):
            return symbol
        if not math.isfinite(value):
            return f"{value}"
        if self.kind == "duration":
            return time_text.format_duration(value, digits.places(width, step))
        if self.kind == "date":
            return time_text.format_date(value)
        if self.kind == "datetime":
            return time_text.format_moment(value, self.zone, digits.places(width, step) or 0)
        if self.kind == "category":
            return self.categories[min(max(round(value), 0), len(self.categories) - 1)]
        return digits.number_text(value, width, step)

    def format_width(self, value: float, width: float = math.nan, step: float = 0.0) -> str:
        """Write a difference between two values: dates differ by days, moments by durations.

        >>> Unit("number").format_width(0.5), Unit("date", "D").format_width(3.5), Unit("datetime").format_width(5000.0)
        ('0.5', '3.5 days', '1 h 23 min 20 s')
        """
        if not math.isfinite(value):
            return f"{value}"
        if self.kind in ("duration", "datetime"):
            return time_text.format_duration(value, digits.places(width, step))
        text = digits.number_text(value, width, step)
        nouns = {"date": ("day", "days"), "category": ("category", "categories")}.get(self.kind)
        return text if nouns is None else f"{text} {nouns[abs(value) != 1]}"

    def value(self, number: float) -> Any:
        """Return a number as what it stands for: timedelta64, datetime64 (in UTC), a category, a symbol, or itself.

        >>> Unit("duration").value(90.0), Unit("date").value(15826.0), Unit("number").value(1.5)
        (np.timedelta64(90000000,'us'), np.datetime64('2013-05-01'), 1.5)
        """
        if self.kind == "category":
            return self.format(number) if math.isfinite(number) else None
        if not self.timed:
            return (self.censored and self.censored.shown(number)) or number
        count, step = (number, "D") if self.kind == "date" else (number * 1e6, "us")
        made: Any = np.timedelta64 if self.kind == "duration" else np.datetime64
        return made(round(count), step) if abs(count) < 2.0**62 else made("NaT")

    def width_value(self, number: float) -> Any:
        """Return a difference between two values as what it stands for: timedelta64 of times, else itself."""
        if not self.timed:
            return number
        return Unit("duration").value(number * (86400 if self.kind == "date" else 1))

    @property
    def words(self) -> str:
        """What an axis or a row calls a value: "value", "duration", "date", "date and time" or "category"."""
        return {"number": "value", "datetime": "date and time"}.get(self.kind, self.kind)

    def parse(self, value: object, *, where: str = "the value") -> float:
        """Read a public parameter, given as text, number or time object, into this unit."""
        number: float | None
        if isinstance(value, np.datetime64 | np.timedelta64):
            value = None if np.isnat(value) else value.astype(value.dtype.kind + "8[us]").item()
        if self.kind == "category" and isinstance(value, str):
            number = float(self.categories.index(value)) if value in self.categories else None
        elif isinstance(value, bool | np.bool_):
            number = float(value) if self == TRUTH else None
        elif isinstance(value, numbers.Real | Decimal):
            number = _finite(value)
        elif self.kind == "duration":
            number = time_text.parse_duration(value)
        elif self.kind == "date":
            number = time_text.parse_date(value)
        elif self.kind == "datetime":
            number = time_text.parse_moment(value, self.zone)
        else:
            number = _finite(value) if isinstance(value, str) else None
        if number is None or not math.isfinite(number):
            raise BadInput(f"{where} is {quoted(value)}, which is not {_ADVICE[self.kind]}")
        return number

    def parse_width(self, value: str, *, where: str) -> float:
        """Read the text of a difference between two values of this unit: of dates and moments, a duration."""
        seconds = Unit("duration").parse(value, where=where)
        return seconds / 86400 if self.kind == "date" else seconds


NUMBER, WHOLE = Unit("number"), Unit("number", "1")
TRUTH = Unit("category", "1", categories=("False", "True"))


def _finite(value: "numbers.Real | Decimal | str") -> float | None:
    """Turn a number, or the text of one, into a finite float; None when it is not one."""
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def common_unit(units: Mapping[str, Unit], noun: str = "site") -> Unit:
    """Find the one unit in which all sites can be compared; refuse when there is none.

    >>> common_unit({"north": Unit("date", "D"), "south": Unit("date", "D")}).kind
    'date'
    """
    (first, unit), *others = units.items()
    for site, other in others:
        if other.kind != unit.kind:
            raise BadInput(
                f"{noun} {quoted(first, 200)} holds {unit.plural} and {noun} {quoted(site, 200)} holds {other.plural}: "
                f"give every {noun} the same kind of values"
            )
        if other.categories != unit.categories:
            raise BadInput(
                f"{noun} {first!r} and {noun} {site!r} declare different categories: "
                f"give every {noun} the same categories in the same order"
            )
        if other.censored != unit.censored:
            raise BadInput(
                f"{noun} {quoted(first, 200)} and {noun} {quoted(site, 200)} are read with different limits: read all "
                "with the same censored="
            )
        if bool(other.zone) != bool(unit.zone):
            with_zone, without = (first, site) if unit.zone else (site, first)
            raise BadInput(
                f"{noun} {with_zone!r} holds times with a time zone and {noun} {without!r} times without one: "
                f"give every {noun} a time zone, or none"
            )
        if other.zone != unit.zone:
            unit = replace(unit, zone="UTC")
        if (other.resolution_in_unit or 0.0) < (unit.resolution_in_unit or 0.0):
            unit = replace(unit, resolution=other.resolution)
    return unit


def uncensored(unit: Unit, what: str) -> None:
    """Refuse records beyond limits where an answer would need numbers for them."""
    if unit.censored is not None:
        raise BadInput(
            f"{what} needs a number for every record, and {unit.censored.words}: ask for a quantile, or read the "
            "records without censored="
        )

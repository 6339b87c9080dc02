"""Columns of Python objects: numbers of every sort, decimals, dates, moments and durations, one by one."""

import datetime as dt
import numbers
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from sottovoce.client.reading.column import RECORDS, Accepts, Column, from_numpy
from sottovoce.core import time_text
from sottovoce.core.arrays import Floats
from sottovoce.core.checks import bad_row, kind_of
from sottovoce.core.unit import NUMBER, Kind, Unit

_LONG = 2.0**53


def from_objects(objects: Sequence[Any], where: str, accepts: Accepts) -> Column:
    """Read a sequence of Python objects; None, NaN, NaT and NA are missing."""
    if not accepts.times:
        _refuse_other_than_numbers(objects, where, accepts)
    if accepts.truth and not {bool, np.bool_}.isdisjoint(map(type, objects)):
        objects = [int(value) if isinstance(value, bool | np.bool_) else value for value in objects]
    types = set(map(type, objects))
    if types <= {int, float, type(None)}:
        return Column(NUMBER, len(objects), lambda start, stop: _plain(objects, where, start, stop, int in types))
    (only, *more) = types
    if not more and issubclass(only, np.generic) and only is not np.object_:
        return from_numpy(np.array(objects), where, accepts)
    unit = NUMBER
    for row, value in enumerate(objects):
        if not is_missing(value):
            unit = _unit_of(value, where, row)
            break
    if unit.zone and unit.zone != "UTC" and len({_zone(v) for v in objects if not is_missing(v)}) > 1:
        unit = Unit(unit.kind, unit.resolution, "UTC")

    def read(start: int, stop: int) -> Floats:
        return np.array([_float(objects[row], unit, where, row) for row in range(start, stop)], dtype=np.float64)

    return Column(unit, len(objects), read)


def is_missing(value: object) -> bool:
    """Tell whether a Python object stands for a missing value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    if isinstance(value, np.ma.core.MaskedConstant):
        return True
    return isinstance(value, float | np.floating) and bool(value != value)


def _refuse_other_than_numbers(objects: Sequence[Any], where: str, accepts: Accepts) -> None:
    """Refuse the first object that is neither a number, nor a truth value, nor missing."""
    others = {kind for kind in set(map(type, objects)) if not _numeric(kind)}
    if others:
        for row, value in enumerate(objects):
            if type(value) in others and not is_missing(value):
                raise accepts.refusal(where, row, kind_of(value))


def _numeric(kind: type) -> bool:
    """Tell whether values of a type are numbers or truth values."""
    # numpy's durations call themselves signed integers
    return issubclass(kind, numbers.Real | Decimal | np.bool_) and not issubclass(kind, np.timedelta64)


def _plain(objects: Sequence[Any], where: str, start: int, stop: int, whole: bool) -> Floats:
    """Read floats, ints and None at the speed of numpy, refusing an int that float64 would change."""
    piece = objects[start:stop]
    try:
        floats = np.array(piece, dtype=np.float64)
    except OverflowError:
        rows = range(start, stop)
        return np.array([_float(objects[row], NUMBER, where, row) for row in rows], dtype=np.float64)
    if whole:
        for row in map(int, np.flatnonzero(np.abs(floats) >= _LONG)):
            _number(piece[row], where, start + row)
    return floats


def _number(value: Any, where: str, row: int) -> float:
    """Turn one number into a float, refusing an int that float64 would change."""
    advice = "subtract a constant, or count in a coarser unit"
    try:
        number = float(value)
    except (OverflowError, ValueError):
        raise bad_row(where, row, "a number too long for float64", advice) from None
    if isinstance(value, numbers.Integral) and abs(number) >= _LONG and int(number) != int(value):
        raise bad_row(where, row, "a whole number too long for float64", advice)
    return number


def _kind(value: Any) -> Kind | None:
    """Tell which kind of unit a value belongs to; None when it belongs to none."""
    if isinstance(value, np.datetime64):
        return "date" if np.datetime_data(value.dtype)[0] in ("Y", "M", "W", "D") else "datetime"
    if isinstance(value, np.timedelta64) and np.datetime_data(value.dtype)[0] in ("generic", "Y", "M"):
        return None
    if isinstance(value, dt.timedelta | dt.time | np.timedelta64):
        return "duration"
    if isinstance(value, dt.datetime):
        return "datetime"
    if isinstance(value, dt.date):
        return "date"
    return "number" if isinstance(value, numbers.Real | Decimal) and not isinstance(value, bool) else None


def _zone(value: Any) -> str:
    """Name the time zone of a moment; empty when it has none."""
    zone = value.tzinfo if isinstance(value, dt.datetime) else None
    return "" if zone is None else time_text.text_of_zone(zone, value)


def _unit_of(value: Any, where: str, row: int) -> Unit:
    """Find the unit that one value announces for its column."""
    kind = _kind(value)
    if kind is None:
        raise RECORDS.refusal(where, row, kind_of(value))
    return Unit(kind, {"number": "", "date": "D"}.get(kind, "us"), _zone(value))


def _float(value: Any, unit: Unit, where: str, row: int) -> float:
    """Turn one object into a float of the unit of its column."""
    if is_missing(value):
        return float("nan")
    kind = _kind(value)
    if kind is None:
        raise RECORDS.refusal(where, row, kind_of(value))
    if kind != unit.kind:
        other = "a date with a time" if kind == "datetime" else f"a {kind}"
        raise bad_row(where, row, other, f"the rows before it hold {unit.plural}")
    if kind == "datetime" and bool(_zone(value)) != bool(unit.zone):
        advice = "give every row a time zone, or none"
        raise bad_row(where, row, f"a time with{'' if _zone(value) else 'out'} a time zone, unlike others", advice)
    if isinstance(value, np.datetime64 | np.timedelta64):
        value = value.astype(f"{value.dtype.kind}8[us]").item()
        if isinstance(value, int):  # a year that Python's dates do not have, in microseconds
            return value / (86_400e6 if kind == "date" else 1e6)
    if kind == "date":
        return time_text.days_of(value)
    if kind == "datetime":
        return time_text.seconds_of(value)
    return time_text.duration_of(value) if kind == "duration" else _number(value, where, row)

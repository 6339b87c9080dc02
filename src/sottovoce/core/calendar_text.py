"""Dates and moments as people write them, to and from days or seconds since 1970-01-01."""

import datetime as dt
import re
from zoneinfo import ZoneInfo

from sottovoce.core.errors import BadInput

_EPOCH_DAY = dt.date(1970, 1, 1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})")


def zone_of(text: str) -> dt.tzinfo:
    """Find the time zone a text such as "Europe/Berlin", "UTC" or "+02:00" names; no text counts as UTC."""
    if text in ("", "UTC", "Z"):
        return dt.UTC
    if offset := _OFFSET.fullmatch(text):
        size = dt.timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return dt.timezone(-size if offset[1] == "-" else size)
    try:
        return ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        raise BadInput(f"the time zone {text!r} is not known here: convert the times to UTC") from None


def text_of_zone(zone: dt.tzinfo, at: dt.datetime) -> str:
    """Name a time zone such that `zone_of` finds it again."""
    key = getattr(zone, "key", None) or getattr(zone, "zone", None)
    if isinstance(key, str):
        return key
    offset = zone.utcoffset(at) or dt.timedelta()
    minutes = round(offset / dt.timedelta(minutes=1))
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}" if minutes else "UTC"


def days_of(value: dt.date) -> float:
    """Count the days from 1970-01-01 to a date."""
    return float(value.toordinal() - _EPOCH_DAY.toordinal())


def seconds_of(value: dt.datetime, zone: str = "") -> float:
    """Count the seconds from 1970-01-01 to a moment; one without a time zone is in `zone`."""
    aware = value if value.tzinfo else value.replace(tzinfo=zone_of(zone))
    return (aware - _EPOCH) / dt.timedelta(seconds=1)


def format_date(days: float) -> str:
    """Write days since 1970-01-01 as the nearest date.

    Examples
    --------
    >>> format_date(15826.2)
    '2013-05-01'
    """
    try:
        return (_EPOCH_DAY + dt.timedelta(days=round(days))).isoformat()
    except OverflowError:
        return f"day {days:.6g} since 1970-01-01"


def format_moment(seconds: float, zone: str = "") -> str:
    """Write seconds since 1970-01-01 as the nearest second, with its offset when a time zone is known.

    Examples
    --------
    >>> format_moment(1367416999.8), format_moment(1367416999.8, "+02:00")
    ('2013-05-01 14:03:20', '2013-05-01 16:03:20+02:00')
    """
    try:
        moment = (_EPOCH + dt.timedelta(seconds=round(seconds))).astimezone(zone_of(zone))
    except (OverflowError, ValueError):
        return f"second {seconds:.6g} since 1970-01-01"
    return moment.isoformat(sep=" ") if zone else moment.replace(tzinfo=None).isoformat(sep=" ")


def parse_date(value: object) -> float | None:
    """Read a date, or text of one, as days since 1970-01-01; None when it is not a date."""
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if isinstance(value, dt.datetime):
        return days_of(value.date()) if value.time() == dt.time() and value.tzinfo is None else None
    return days_of(value) if isinstance(value, dt.date) else None


def parse_moment(value: object, zone: str = "") -> float | None:
    """Read a moment, a date or text as seconds since 1970-01-01; None when it is not a moment."""
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if isinstance(value, dt.datetime):
        # An offset cannot be compared with times whose own zone nobody wrote down.
        return seconds_of(value, zone) if zone or value.tzinfo is None else None
    return days_of(value) * 86400.0 if isinstance(value, dt.date) and not zone else _midnight(value, zone)


def _midnight(value: object, zone: str) -> float | None:
    """Read a date as its first moment in a time zone."""
    return seconds_of(dt.datetime.combine(value, dt.time()), zone) if isinstance(value, dt.date) else None

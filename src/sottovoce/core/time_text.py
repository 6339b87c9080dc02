"""Dates, moments and durations as people write them, to and from days or seconds (since 1970-01-01)."""

import datetime as dt
import math
import re
from zoneinfo import ZoneInfo

from sottovoce.core.digits import number_text
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import quoted

_EPOCH_DAY = dt.date(1970, 1, 1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})")
_NUMBER = r"\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+"
_CLOCK = re.compile(
    r"(?:(?P<days>\d+)\s*d(?:ays?)?,?\s+)?(?P<hours>\d+):(?P<minutes>[0-5]\d):(?P<seconds>[0-5]\d(?:\.\d*)?)"
)
_PART = re.compile(rf"\s*(?P<number>{_NUMBER})\s*(?P<word>[a-zµ]+)\s*,?")
_PLAIN = re.compile(_NUMBER)
_WORDS = {
    "w week weeks": 604800.0,
    "d day days": 86400.0,
    "h hr hrs hour hours": 3600.0,
    "m min mins minute minutes": 60.0,
    "s sec secs second seconds": 1.0,
    "ms": 1e-3,
    "us µs": 1e-6,
    "ns": 1e-9,
}
_SECONDS = {word: seconds for words, seconds in _WORDS.items() for word in words.split()}


def zone_of(text: str) -> dt.tzinfo:
    """Find the time zone a text such as "Europe/Berlin", "UTC" or "+02:00" names; no text counts as UTC."""
    if text in ("", "UTC", "Z"):
        return dt.UTC
    if offset := _OFFSET.fullmatch(text):
        size = dt.timedelta(hours=int(offset[2]), minutes=int(offset[3]))
    try:
        return dt.timezone(-size if offset[1] == "-" else size) if offset else ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        raise BadInput(f"the time zone {quoted(text)} is not known here: convert the times to UTC") from None


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

    >>> format_date(15826.2)
    '2013-05-01'
    """
    try:
        return (_EPOCH_DAY + dt.timedelta(days=round(days))).isoformat()
    except OverflowError:
        return f"day {days:.6g} since 1970-01-01"


def format_moment(seconds: float, zone: str = "", places: int = 0) -> str:
    """Write seconds since 1970-01-01 to so many places of a second, with its offset when a time zone is known.

    >>> format_moment(1367416999.8), format_moment(1367416999.8, "+02:00"), format_moment(1367416999.8125, places=2)
    ('2013-05-01 14:03:20', '2013-05-01 16:03:20+02:00', '2013-05-01 14:03:19.81')
    """
    kept = min(max(places, 0), 6)
    try:
        moment = (_EPOCH + dt.timedelta(seconds=round(seconds, kept))).astimezone(zone_of(zone))
    except (OverflowError, ValueError):
        return f"second {seconds:.6g} since 1970-01-01"
    text = moment.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds" if kept else "seconds")
    text = text[: len(text) - 6 + kept] if kept else text
    return text + moment.isoformat()[len(moment.replace(tzinfo=None).isoformat()) :] if zone else text


def parse_date(value: object) -> float | None:
    """Read a date, or text of one, as days since 1970-01-01; None when it is not a date."""
    value = _from_text(value)
    if isinstance(value, dt.datetime):
        return days_of(value.date()) if value.time() == dt.time() and value.tzinfo is None else None
    return days_of(value) if isinstance(value, dt.date) else None


def parse_moment(value: object, zone: str = "") -> float | None:
    """Read a moment, a date (its first moment in the time zone) or text as seconds; None when it is not a moment."""
    value = _from_text(value)
    if isinstance(value, dt.datetime):
        # An offset cannot be compared with times whose own zone nobody wrote down.
        return seconds_of(value, zone) if zone or value.tzinfo is None else None
    return seconds_of(dt.datetime.combine(value, dt.time()), zone) if isinstance(value, dt.date) else None


def _from_text(value: object) -> object:
    """Read text as a moment; None when it is none, and what is no text stays as it is."""
    try:
        return dt.datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
    except ValueError:
        return None


def duration_of(value: dt.timedelta | dt.time) -> float:
    """Count the seconds of a duration; a time of day is the duration since midnight."""
    if isinstance(value, dt.time):
        return value.hour * 3600.0 + value.minute * 60.0 + value.second + value.microsecond / 1e6
    return value / dt.timedelta(seconds=1)


def format_duration(seconds: float, places: int | None = None) -> str:
    """Write seconds, to so many places, as "12.3 s", "1 h 23 min 20 s" or "2 days 4 h".

    >>> format_duration(12.34), format_duration(-5000.0), format_duration(187200.0), format_duration(3900.25, places=1)
    ('12.34 s', '-1 h 23 min 20 s', '2 days 4 h', '1 h 05 min 00.2 s')
    """
    if not math.isfinite(seconds):
        return str(seconds)
    if places is None and abs(seconds) < 59.5:
        return f"{number_text(float(f'{seconds:.4g}'))} s"
    kept = min(max(places or 0, 0), 12)
    size = round(abs(seconds), kept)
    if size < 60:
        return f"{number_text(seconds, 0.0 if places is None else 10.0 ** (1 - kept))} s"
    minutes, second = divmod(size, 60)
    hours, minute = divmod(int(minutes), 60)
    days, hour = divmod(hours, 24)
    parts = [f"{days:,} day{'' if days == 1 else 's'}"] if days else []
    rest: list[tuple[str, str, float]] = [(f"{hour}", "h", hour), (f"{minute:02}", "min", minute)]
    rest.append((f"{second:0{3 + kept if kept else 2}.{kept}f}", "s", second))
    while rest and not round(rest[-1][2], kept):
        rest.pop()
    for text, name, amount in rest:
        if amount or parts:
            parts.append(f"{text if parts else text.lstrip('0') or '0'} {name}")
    return f"{'-' if seconds < 0 else ''}{' '.join(parts)}"


def parse_duration(value: object) -> float | None:
    """Read a timedelta, a time of day or text as seconds; None when it is not a duration.

    >>> parse_duration("90min"), parse_duration("1:30:00"), parse_duration("1h 30m"), parse_duration("90 sheep")
    (5400.0, 5400.0, 5400.0, None)
    """
    if isinstance(value, dt.timedelta | dt.time):
        return duration_of(value)
    if not isinstance(value, str):
        return None
    text = value.strip().lower()
    sign = -1.0 if text.startswith("-") else 1.0
    size = _size(text[1:].lstrip() if text.startswith(("-", "+")) else text)
    return None if size is None else sign * size


def _size(text: str) -> float | None:
    """Read unsigned text as seconds."""
    if clock := _CLOCK.fullmatch(text.replace(",", "") if ":" in text else text):
        return (
            float(clock["days"] or 0) * 86400.0
            + float(clock["hours"]) * 3600.0
            + float(clock["minutes"]) * 60.0
            + float(clock["seconds"])
        )
    if _PLAIN.fullmatch(text):
        return float(text)
    total, position = 0.0, 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None or part["word"] not in _SECONDS:
            return None
        total += float(part["number"]) * _SECONDS[part["word"]]
        position = part.end()
    return total if text else None

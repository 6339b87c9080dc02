"""Durations as people write them ("90min", "1:30:00", "2 days 4:00:00"), to and from seconds."""

import datetime as dt
import re

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


def seconds_of(value: dt.timedelta) -> float:
    """Turn a timedelta into seconds."""
    return value / dt.timedelta(seconds=1)


def seconds_since_midnight(value: dt.time) -> float:
    """Turn a time of day into the duration since midnight."""
    return value.hour * 3600.0 + value.minute * 60.0 + value.second + value.microsecond / 1e6


def format_duration(seconds: float) -> str:
    """Write seconds as "12.3 s", "1:23:20" or "2 days 4:00:00".

    Examples
    --------
    >>> format_duration(12.34), format_duration(-5000.0), format_duration(187200.0)
    ('12.34 s', '-1:23:20', '2 days 4:00:00')
    """
    size = abs(seconds)
    if size < 59.5:
        return f"{seconds:.4g} s"
    minutes, second = divmod(round(size), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    before = f"{days:,} day{'' if days == 1 else 's'} " if days else ""
    return f"{'-' if seconds < 0 else ''}{before}{hour}:{minute:02}:{second:02}"


def parse_duration(value: object) -> float | None:
    """Read a timedelta, a time of day or text as seconds; None when it is not a duration.

    Examples
    --------
    >>> parse_duration("90min"), parse_duration("1:30:00"), parse_duration("1h 30m"), parse_duration("90 sheep")
    (5400.0, 5400.0, 5400.0, None)
    """
    if isinstance(value, dt.timedelta):
        return seconds_of(value)
    if isinstance(value, dt.time):
        return seconds_since_midnight(value)
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

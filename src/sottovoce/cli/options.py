"""From the text of options to what the facade takes; whatever cannot be read is refused before a file is opened."""

import re
from collections.abc import Sequence

from sottovoce.cli.per_site import SiteValues, as_number, per_site
from sottovoce.core.errors import BadInput


def levels(text: str) -> float | list[float] | SiteValues:
    """Read --tau: one level, several, or one a site.

    Examples
    --------
    >>> levels("0.9"), levels("0.25,0.5"), levels("north=0.5,south=0.6")
    (0.9, [0.25, 0.5], {'north': 0.5, 'south': 0.6})
    """
    if text.startswith("@") or "=" in text or "," not in text:
        return per_site(text, "tau")
    return [as_number(part.strip(), "a level of --tau", "write levels as in 0.25,0.5,0.75") for part in text.split(",")]


def shares(text: str, name: str = "shares") -> str | SiteValues:
    """Read --shares, or --weights: a word, or one share a site."""
    if not (text.startswith("@") or "=" in text):
        return text
    found = per_site(text, name)
    assert not isinstance(found, float)
    return found


def schedule(text: str) -> str | list[int]:
    """Read --schedule: a rule, or the lengths of the rounds.

    Examples
    --------
    >>> schedule("every:5"), schedule("1, 1,2,4")
    ('every:5', [1, 1, 2, 4])
    """
    return [int(part) for part in text.split(",")] if re.fullmatch(r"\s*\d+\s*(,\s*\d+\s*)*", text) else text


def number_or_text(text: str | None) -> float | str | None:
    """Read a width, which is a number or, of times, a text such as 5min."""
    return None if text is None else _width(text)


def _width(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def bound(text: str | None) -> float | str | dict[str, float | str] | None:
    """Read --bound: one width for all sources, or one a source; of times a width may be a text such as 5min.

    Examples
    --------
    >>> bound("500"), bound("north=5min, south=900")
    (500.0, {'north': '5min', 'south': 900.0})
    """
    if text is None or ("=" not in text and not text.startswith("@")):
        return number_or_text(text)
    if text.startswith("@"):
        read = per_site(text, "bound")
        assert not isinstance(read, float)
        return dict(read.items())
    found: dict[str, float | str] = {}
    for part in text.split(","):
        name, _, width = (piece.strip() for piece in part.rpartition("="))
        if not name or not width:
            raise BadInput(f"--bound has a part {part.strip()!r} that is not source=bound; write it as in north=500.")
        if name in found:
            raise BadInput(f"--bound names source {name!r} twice; keep one.")
        found[name] = _width(width)
    return found


def pair(text: str | None) -> tuple[str, str] | None:
    """Read --bounds: LOW,HIGH.

    Examples
    --------
    >>> pair("-60,300")
    ('-60', '300')
    """
    if text is None:
        return None
    low, comma, high = text.partition(",")
    if not comma or not low.strip() or not high.strip() or "," in high:
        raise BadInput(f"--bounds is {text!r}; give the two ends with one comma between them, as in 0,300.")
    return low.strip(), high.strip()


def numbers(text: str | None, option: str) -> float | list[float] | None:
    """Read an option that takes one number, or several with commas between them.

    Examples
    --------
    >>> numbers("0.5", "--tau"), numbers("0.25, 0.5", "--tau"), numbers(None, "--start")
    (0.5, [0.25, 0.5], None)
    """
    if text is None:
        return None
    found = [
        as_number(part.strip(), option, "give a number, or several with commas between them")
        for part in text.split(",")
    ]
    return found if "," in text else found[0]


def whole(text: str | None, option: str) -> int | None:
    """Read an option that takes a whole number.

    Examples
    --------
    >>> whole("32", "--bins"), whole(None, "--bins")
    (32, None)
    """
    try:
        return None if text is None else int(text)
    except ValueError:
        raise BadInput(f"{option} is {text!r}, which is not a whole number; correct it.") from None


def names(text: str, option: str) -> list[str]:
    """Read the names of columns, with commas between them; a name that has a comma stands in double quotes.

    Examples
    --------
    >>> names("miles, hour", "--features"), names('"a,b",c', "--features")
    (['miles', 'hour'], ['a,b', 'c'])
    """
    import csv

    try:
        found = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    except csv.Error:  # a line break outside quotes
        found = []
    if not found or not all(found):
        raise BadInput(
            f"{option} is {text!r}, which does not name something between all commas; write it as in miles,hour."
        )
    return found


def feature_bounds(texts: Sequence[str], features: Sequence[str]) -> dict[str, tuple[float, float]] | None:
    """Read --bounds of `regress`: NAME=LOW:HIGH for a feature, or LOW:HIGH for all that are not named.

    Examples
    --------
    >>> feature_bounds(["miles=0:30", "-1:1"], ["miles", "hour", "day"])
    {'miles': (0.0, 30.0), 'hour': (-1.0, 1.0), 'day': (-1.0, 1.0)}
    """
    if not texts:
        return None
    found: dict[str, tuple[float, float]] = {}
    for part in (part for text in texts for part in names(text, "--bounds")):
        name, _, ends = part.rpartition("=")
        low, colon, high = ends.partition(":")
        if not colon or not low.strip() or not high.strip() or ":" in high:
            raise BadInput(f"--bounds has a part {part!r} that is not NAME=LOW:HIGH; write it as in miles=0:30.")
        if name.strip() in found:
            raise BadInput(f"--bounds names {name.strip() or 'all features'!r} twice; keep one.")
        advice = "write bounds as in miles=0:30"
        found[name.strip()] = (
            as_number(low.strip(), f"the lower end of --bounds {part}", advice),
            as_number(high.strip(), f"the upper end of --bounds {part}", advice),
        )
    unknown = [name for name in found if name and name not in features]
    if unknown:
        raise BadInput(
            f"--bounds names {unknown[0]!r}, which is not among --features {', '.join(features)}; correct it."
        )
    absent = [name for name in features if name not in found and "" not in found]
    if absent:
        raise BadInput(
            f"--bounds says nothing of {', '.join(map(repr, absent))}; add --bounds {absent[0]}=LOW:HIGH, "
            "or LOW:HIGH alone for all features that are not named."
        )
    return {name: found[name] if name in found else found[""] for name in features}

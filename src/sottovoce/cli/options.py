"""From the text of options to what the facade takes; whatever cannot be read is refused before a file is opened."""

import re

from sottovoce.cli.per_site import SiteValues, as_number, per_site
from sottovoce.errors import BadInput


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


def shares(text: str) -> str | SiteValues:
    """Read --shares: a word, or one share a site."""
    if not (text.startswith("@") or "=" in text):
        return text
    found = per_site(text, "shares")
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
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


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

"""Sentences that are written for callers of Python, in the words of the page: what its controls are called."""

import re

CONTROLS = {
    "bounds": "the public limits",
    "scale": "the rough spread",
    "resolution": "“Rounded to”",
    "kind": "“Kind of values”",
    "limit": "the limit of this session",
}
_WRITTEN = {
    "method='certified'": "the certified method",
    "public bounds=": "public limits",
    "give resolution=": "fill in “Rounded to”",
    "raise the limit": "start again with a higher --limit",
}
_PARAMETER = re.compile(rf"\b({'|'.join(CONTROLS)})=('[^']*'|\S*?)(?=[\s,;.]|$)")


def on_page(text: str) -> str:
    """Return a sentence as the page says it, with its full stop.

    >>> on_page("takes the density to be smooth, where method='certified' takes nothing for granted")
    'takes the density to be smooth, where the certified method takes nothing for granted.'
    >>> on_page("kind='counts' is said of numbers, and the records are dates; leave it out.")
    '“Kind of values” is said of numbers, and the records are dates; leave it out.'
    """
    for phrase, written in _WRITTEN.items():
        text = text.replace(phrase, written)
    return _PARAMETER.sub(lambda found: CONTROLS[found[1]], text).rstrip(".") + "."

"""Names and paths made safe to show: whatever steers a terminal or cannot be seen is escaped, and what is long is cut.

A name may come from a file that somebody else wrote: an escape sequence would repaint the terminal, a line break would
forge a line of a summary, and an override of the direction of writing would turn a sentence round.
"""

import unicodedata
from collections.abc import Iterable

LONGEST_NAME = 200  # characters; longer text is no name

_SHOWN = 60
_JOINERS = "\u200c\u200d"  # invisible, but letters of some scripts need them


def hides(text: str) -> bool:
    r"""Tell whether a text holds characters that steer a terminal or cannot be seen.

    >>> hides("Sankt Gallen"), hides("north\x1b[2K"), hides("north\u202e")
    (False, True, True)
    """
    return not text.isprintable() and any(map(_hidden, text))


def _hidden(sign: str) -> bool:
    """Tell whether a character steers or cannot be seen; blanks, which `isprintable` refuses too, can be."""
    return unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") and sign not in _JOINERS


def escaped(text: str, keep: str = "\n") -> str:
    r"""Write what steers or cannot be seen as Python would, but for what may stay.

    >>> escaped("a\x1b[1mb\r")
    'a\\x1b[1mb\\r'
    """
    if text.isprintable():
        return text
    return "".join(repr(sign)[1:-1] if _hidden(sign) and sign not in keep else sign for sign in text)


def shown(name: object, most: int = _SHOWN) -> str:
    r"""Write a name or a path on one line, its middle left out where it is long.

    >>> shown("a\nb"), shown("x" * 100, 9)
    ('a\\nb', 'xxxx…xxxx')
    """
    text = escaped(str(name), keep="")
    return text if len(text) <= most else f"{text[: most // 2]}…{text[len(text) - most // 2 :]}"


def quoted(name: object, most: int = _SHOWN) -> str:
    """Quote a name in a sentence."""
    text = repr(name)
    return text if len(text) <= most else f"{text[: most // 2]}…{text[len(text) - most // 2 :]}"


def first_few(names: Iterable[object], most: int = 6) -> str:
    """List the first few names."""
    listed = list(names)
    return ", ".join(map(quoted, listed[:most])) + (f" and {len(listed) - most} more" if len(listed) > most else "")

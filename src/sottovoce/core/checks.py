"""Checks of what a caller gave: numbers, levels, names, one value a site; each refusal is one sentence.

A sentence about data names the place, the row and the kind of value, never a value.
"""

import difflib
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import numpy as np

from sottovoce.core.errors import BadInput
from sottovoce.core.shown import LONGEST_NAME, hides, quoted
from sottovoce.core.shown import first_few as first_few

_COMPARED = 5_000  # names among which one that may have been meant is looked for


def sentence(where: str, rest: str, *, parameter: str | tuple[str, ...] = ()) -> BadInput:
    """Begin a sentence with the place it is about; the name of a file keeps its own letters."""
    begins = where[:1].upper() if where.split(" ", 1)[0].isalpha() else where[:1]
    return BadInput(f"{begins}{where[1:]} {rest}", parameter=parameter)


def bad_row(where: str, row: int, kind: str, advice: str) -> BadInput:
    """Say that a row, counted here from 0 and in the sentence from 1, holds a value that cannot be used."""
    return sentence(where, f"holds {kind} in row {row + 1}: {advice}")


def how_often(count: int, first: int) -> str:
    """Say in how many rows something happens, and in which first; rows are counted here from 0, said from 1."""
    return f"row {first + 1:,}" if count == 1 else f"{count:,} rows, the first of them row {first + 1:,}"


def kind_of(value: object) -> str:
    """Name the kind of an unusable value by its type alone."""
    name = type(value).__name__
    if isinstance(value, str | bytes):
        return "text"
    if name in ("bool", "bool_"):
        return "a truth value"
    if name.startswith("complex"):
        return "a complex number"
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def dimensions(value: Any) -> int:
    """Count the axes of a parameter; rows of unequal length are two.

    >>> dimensions(0.5), dimensions([0.5]), dimensions([[1], [2, 3]]), dimensions(np.zeros((2, 2)))
    (0, 1, 2, 2)
    """
    if isinstance(value, list | tuple):
        return 1 + max((dimensions(each) for each in value), default=0)
    return int(getattr(value, "ndim", 1 if isinstance(value, set | Mapping) else 0))


def number(value: Any, where: str) -> float:
    """Return a finite number or refuse."""
    if type(value) is float and value == value:
        return value
    if isinstance(value, bool | str) or value is None or value is np.ma.masked:
        raise BadInput(f"{where} must be a number, not {quoted(value)}; correct it.")
    if isinstance(value, bytes | complex | np.complexfloating):
        raise BadInput(f"{where} must be a number, not {type(value).__name__}; correct it.")
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        raise BadInput(f"{where} must be a number, not {type(value).__name__}; correct it.") from None
    if math.isnan(result):
        raise BadInput(f"{where} must be a number, not nan; correct it.")
    return result


def rest_of(part: float) -> float:
    """Return what is left of one, without the last binary digits that would be shown as 0.30000000000000004.

    >>> 1 - 0.7, rest_of(0.7)
    (0.30000000000000004, 0.3)
    """
    return float(f"{1 - part:.15g}")


TAIL = 1e-9  # nobody has the records to see further into a tail


def quantile_level(value: Any, where: str) -> float:
    """Return a quantile level or refuse; one that no records could tell from 0 or 1 is refused, too."""
    result = number(value, where)
    if not TAIL <= result <= 1 - TAIL:
        shown = value if isinstance(value, int | float) else result
        apart = f", and {TAIL:g} from either" if 0 < result < 1 else ""
        raise BadInput(
            f"{where} must lie strictly between 0 and 1{apart}, not {shown!r}; give 0.9 for nine out of ten."
        )
    return result


SMALLEST, LARGEST = 1e-200, 1e200  # of widths and limits: their squares, and ratios of them, still are numbers


def moderate(width: float) -> bool:
    """Tell whether a width is positive, and neither so small nor so large that computing with it fails."""
    return SMALLEST < width < LARGEST


def is_one_of(value: Any, names: Iterable[str]) -> bool:
    """Tell whether a value is one of some names; an array is none."""
    return isinstance(value, str) and value in tuple(names)


def confidence(value: Any) -> float:
    """Return a confidence level or refuse."""
    result = number(value, "level")
    if not 0 < result < 1:
        raise BadInput(f"level must lie strictly between 0 and 1, not {quoted(value)}; give 0.95 for a 95 % interval.")
    return result


def label_text(label: object) -> str:
    """Write a label as text; a whole number stored as a float is written as a whole number."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def check_names(names: Iterable[object], what: str = "site") -> list[str]:
    """Turn the names of sites, or groups, into text, refusing two of one name, and names that cannot be shown."""
    texts = [name if type(name) is str else label_text(name) for name in names]
    for place, text in enumerate(texts, start=1):
        if not text or text.isspace():
            raise BadInput(f"{what} {place} has a blank name: give every {what} a name")
        if len(text) > LONGEST_NAME:
            raise BadInput(
                f"{what} {place} has a name of {len(text):,} characters: give it one of at most {LONGEST_NAME}"
            )
        if hides(text):
            raise BadInput(f"{what} {place} has a control or invisible character in its name: rename it")
    if len(set(texts)) < len(texts):
        twice = Counter(texts).most_common(1)[0][0]
        raise BadInput(f"two {what}s are called {twice!r}: give every {what} a name of its own")
    return texts


def close_names(name: object, known: Iterable[object]) -> str:
    """Ask which of the known names was meant; nothing where none is close.

    >>> close_names("nort", ["north", "south"]), close_names("west", ["north"])
    ("did you mean 'north'?", '')
    """
    folded: dict[str, object] = {}
    for each in islice(known, _COMPARED):
        folded.setdefault(str(each).strip().casefold()[:LONGEST_NAME], each)
    given = str(name).strip().casefold()[:LONGEST_NAME]
    close = [given] if given in folded else difflib.get_close_matches(given, folded, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(quoted(folded[each]) for each in close)}?" if close else ""


def nearest(word: object, known: Iterable[object]) -> str:
    """Ask, in brackets, whether the nearest known word was meant; empty where none is near.

    >>> nearest("stagd", ["staged", "certified"]), nearest("NORTH ", ["north"]), nearest("x", ["staged"])
    (" (did you mean 'staged'?)", " (did you mean 'north'?)", '')
    """
    if not isinstance(word, str):
        return ""
    plain = {str(each).strip().casefold()[:LONGEST_NAME]: each for each in islice(known, _COMPARED)}
    meant = word.strip().casefold()[:LONGEST_NAME]
    close = difflib.get_close_matches(meant, plain, n=1, cutoff=0.8)
    close = close or [each for each in plain if len(meant) > 2 and each.startswith(meant)]
    return f" (did you mean {quoted(plain[close[0]])}?)" if close else ""


def unknown(what: str, word: object, known: Iterable[object]) -> BadInput:
    """Say that a word is none of those that can be chosen, and which is near."""
    listed = list(known)
    shown = quoted(word) if isinstance(word, str) else repr(word)
    return BadInput(f"{what} {shown}{nearest(word, listed)} is unknown; choose one of {', '.join(map(repr, listed))}.")


def per_site(value: Any, names: tuple[str, ...], what: str) -> list[tuple[Any, str]]:
    """Pair one value for all sites, or one a site, with the words that say where it came from.

    A name stands there as often as parts of its site answer.
    """
    if not isinstance(value, Mapping):
        return [(value, what)] * len(names)
    given = {label_text(name): item for name, item in value.items()}
    known = set(names)
    strange = [name for name in given if name not in known]
    absent = [name for name in names if name not in given]
    if strange or absent:
        problem = f"says nothing of site {absent[0]!r}" if absent else ""
        if strange:
            problem = f"names {quoted(strange[0])}{nearest(strange[0], names)}, which is not a site"
        raise BadInput(f"{what} {problem}; give one value for each of {first_few(names)}.")
    return [(given[name], f"{what} of site {name!r}") for name in names]


def check_callers(randomness: Any, progress: Any) -> None:
    """Refuse dice that are no dice and a progress that cannot be called, before anything is spent."""
    if randomness is not None and not all(callable(getattr(randomness, name, None)) for name in ("words", "split")):
        raise BadInput(
            f"randomness must be None or sim.dice(seed), not a {type(randomness).__name__}; leave it out in production."
        )
    if progress is not None and not callable(progress):
        raise BadInput(f"progress must be a function of a number, not a {type(progress).__name__}; leave it out.")

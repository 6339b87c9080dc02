"""Columns of categories in a regression: their levels are declared, public, and become columns of 0 and 1.

The first level is the base that the others are compared with; a level called "other" takes all that are not declared.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sottovoce.core.checks import first_few, label_text
from sottovoce.core.errors import BadInput

OTHER = "other"
Levels = Mapping[str, tuple[str, ...]]


def read_levels(levels: Any) -> dict[str, tuple[str, ...]]:
    """Read the declared levels of columns, or refuse them in one sentence.

    >>> read_levels({"carrier": ["AA", "UA"], "month": [1, 2, "other"]})
    {'carrier': ('AA', 'UA'), 'month': ('1', '2', 'other')}
    """
    if levels is None:
        return {}
    if not isinstance(levels, Mapping):
        raise BadInput(
            f"levels must be a mapping from column to its levels, not a {type(levels).__name__}; correct it.",
            parameter="levels",
        )
    found = {}
    for name, given in levels.items():
        if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__iter__"):
            raise BadInput(f"levels of column {name!r} must be a list of names, the base first; correct it.")
        texts = tuple(label_text(level).strip() for level in given)
        if len(texts) < 2 or len(set(texts)) < len(texts) or not all(texts):
            raise BadInput(f"levels of column {name!r} must be two or more different names, the base first.")
        found[str(name)] = texts
    return found


def dummies(name: str, levels: Sequence[str]) -> list[str]:
    """Name the columns of 0 and 1 that a column of categories becomes, all but the base.

    >>> dummies("carrier", ["AA", "UA", "DL"])
    ['carrier=UA', 'carrier=DL']
    """
    return [f"{name}={level}" for level in levels[1:]]


def raw_names(names: Sequence[str], levels: Levels) -> tuple[str, ...]:
    """Return the columns of the data that these columns were made from."""
    whose = {dummy: name for name, declared in levels.items() for dummy in dummies(name, declared)}
    return tuple(dict.fromkeys(whose.get(name, name) for name in names))


def check_declared(levels: Levels, names: Sequence[str]) -> None:
    """Refuse levels of a column that is not there."""
    strange = [name for name in levels if name not in names]
    if strange:
        raise BadInput(f"levels names {strange[0]!r}, which is not one of the columns {first_few(names)}; correct it.")


def with_dummies(bounds: Any, names: Sequence[str], levels: Levels) -> Any:
    """Add the bounds of columns of 0 and 1 to those that were given for the others."""
    if not levels:
        return bounds
    own = {dummy for name, declared in levels.items() for dummy in dummies(name, declared)}
    others = [name for name in names if name not in own]
    if bounds is None or not isinstance(bounds, Mapping):
        pair = (-1.0, 1.0) if bounds is None else bounds
        if not (isinstance(pair, Sequence) and len(pair) == 2 and all(isinstance(end, int | float) for end in pair)):
            raise BadInput("bounds beside levels must be one pair for all numbers, or a mapping from column to pair.")
        bounds = dict.fromkeys(others, pair)
    _check_others(bounds, others, levels, own)
    return {**bounds, **dict.fromkeys([name for name in names if name in own], (0.0, 1.0))}


def _check_others(bounds: Mapping[Any, Any], others: Sequence[str], levels: Levels, own: set[str]) -> None:
    """Refuse bounds of categories, and bounds that leave a number out; of unknown names the reader of bounds tells."""
    needless = [name for name in bounds if name in levels or name in own]
    if needless:
        raise BadInput(f"bounds names {needless[0]!r}, whose levels are declared and need no bounds; leave it out.")
    lacking = [name for name in others if name not in bounds]
    if lacking:
        raise BadInput(f"bounds has no pair for {first_few(lacking)}; give (low, high) for each column of numbers.")

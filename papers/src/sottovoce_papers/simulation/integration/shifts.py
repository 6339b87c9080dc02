"""How far the sources' medians are from the target's in the paper on data integration: its levels and its sweep."""

import math
from typing import NamedTuple

from sottovoce.core.errors import BadInput

WEAK, STRONG = 0.1, 100.0  # over the root of the target's number of records
LEVELS = (
    (0.0, 0.0, 0.0),
    (0.0, 0.0, WEAK),
    (0.0, WEAK, WEAK),
    (WEAK, WEAK, WEAK),
    (0.0, 0.0, STRONG),
    (0.0, WEAK, STRONG),
    (WEAK, WEAK, STRONG),
    (0.0, STRONG, STRONG),
    (WEAK, STRONG, STRONG),
)
"""Table B.1: the biases of the three sources times the root of the target's number of records."""
POWERS = (-5.0, -4.5, -4.0, -3.5, -3.0, -2.5, -2.0, -1.5, -1.0, -0.5, 0.0)
"""Logarithms of the common shift, from exp(-5) to 1."""


class Pattern(NamedTuple):
    """One point on the axis of a figure: its name and where ``at`` on the axis it stands, and each source's shift."""

    where: dict[str, int | float]
    shifts: tuple[float, ...]


def patterns(kind: str, sources: int, n: int) -> list[Pattern]:
    """Return the shifts that a figure goes through: the nine "levels", the "sweep" of one common shift, or "none".

    Parameters
    ----------
    kind
        Which of the three.
    sources
        How many sources.
    n
        The target's number of records.

    Examples
    --------
    >>> patterns("levels", 3, 10_000)[8]
    Pattern(where={'level': 9, 'at': 9.0}, shifts=(0.001, 1.0, 1.0))
    >>> patterns("sweep", 2, 10_000)[0].where
    {'bias': 0.007, 'at': -5.0}
    """
    if kind == "none":
        return [Pattern({}, (0.0,) * sources)]
    if kind == "sweep":
        return [Pattern({"bias": round(math.exp(at), 3), "at": at}, (math.exp(at),) * sources) for at in POWERS]
    if kind != "levels" or sources != len(LEVELS[0]):
        raise BadInput(f"shifts {kind!r} of {sources} sources are not known; the nine levels are for three sources.")
    root = math.sqrt(n)
    levels = enumerate(LEVELS, start=1)
    return [Pattern({"level": i, "at": float(i)}, tuple(bias / root for bias in row)) for i, row in levels]

"""The public grid of a private threshold: its edges as they were given, in equal steps, or in equal ratios."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.checks import number
from sottovoce.core.errors import BadInput
from sottovoce.protocol.selection.base import grid as checked_grid
from sottovoce.server.conformal.settings import whole

# Edges in equal steps where the answers of all sites are summed: each takes its own part of the records ("local") or
# adds its own noise ("aggregate"), so fewer are better; where a site names one cell, a fine grid costs little.
STEPS = {"local": 16, "aggregate": 32}
BINS = 100
MOST_BINS = 100_000
RANGE = 64.0  # how many times the lowest edge the maximum is, in equal ratios
TINY = 1e-290  # of an end: below it a part of it is no normal number


@dataclass(frozen=True)
class PublicGrid:
    """What is known of a grid before sizes and budgets are: all edges, or its ends and how many steps."""

    minimum: float
    maximum: float
    bins: int | None
    edges: tuple[float, ...] = ()

    @property
    def fixed(self) -> bool:
        """Tell whether the edges stand, or their number; otherwise both are free."""
        return bool(self.edges) or self.bins is not None

    def steps(self, mechanism: str | None) -> Floats:
        """Return the edges as given, or in equal steps."""
        if self.edges:
            return checked_grid(self.edges)
        count = STEPS.get(str(mechanism), BINS) if self.bins is None else self.bins
        return checked_grid(np.linspace(self.minimum, self.maximum, count + 1)[1:])

    def ratios(self, count: int) -> Floats:
        """Return so many edges in equal ratios up to the maximum; where scores may be negative, on both sides of zero.

        >>> PublicGrid(0.0, 64.0, None).ratios(4).round(6).tolist()
        [1.0, 4.0, 16.0, 64.0]
        >>> PublicGrid(-64.0, 64.0, None).ratios(7).round(6).tolist()
        [-64.0, -1.0, 0.0, 1.0, 4.0, 16.0, 64.0]
        """
        low, high = self.minimum, self.maximum
        if low > 0:
            return checked_grid(np.geomspace(low, high, count + 1)[1:])
        if high < TINY or (low < 0 and (count < 3 or -low < TINY)):
            return checked_grid(np.linspace(low, high, count + 1)[1:])
        if low == 0:
            return checked_grid(np.geomspace(high / RANGE, high, count) if count > 1 else [high])
        below = max(count // 3, 1)
        upper = np.geomspace(high / RANGE, high, count - below - 1) if count - below > 2 else np.array([high])
        lower = -np.geomspace(-low, -low / RANGE, below) if below > 1 else np.array([low / math.sqrt(RANGE)])
        return checked_grid(np.concatenate([lower, [0.0], upper]))

    def thinned(self, count: int) -> Floats:
        """Return so many of the edges, evenly by their number, the highest among them; all if they are no more.

        >>> PublicGrid(0.0, 10.0, 10).thinned(3).tolist()
        [4.0, 7.0, 10.0]
        """
        line = self.steps(None)
        if len(line) <= count:
            return line
        return checked_grid(line[len(line) - 1 - (np.arange(count)[::-1] * len(line)) // count])


def check_grid(minimum: Any, maximum: Any, bins: Any, edges: Any) -> PublicGrid:
    """Return the public grid that was asked for, or refuse it."""
    if edges is not None:
        if any(given is not None for given in (minimum, maximum, bins)):
            raise BadInput("grid gives all edges, so minimum, maximum and bins say nothing more; give either.")
        try:
            line = np.asarray(edges)
        except ValueError:
            line = np.asarray("ragged")
        if line.dtype.kind not in "iuf" or isinstance(edges, np.ma.MaskedArray):
            raise BadInput("grid must be a list of numbers, the edges of the cells; correct it.")
        given = checked_grid(line)
        return PublicGrid(float(given[0]), float(given[-1]), None, tuple(given.tolist()))
    if maximum is None:
        raise BadInput(
            "with epsilon a public maximum of the scores is needed, chosen without a look at them; give maximum=, or "
            "grid=, the edges themselves."
        )
    top, bottom = number(maximum, "maximum"), number(0.0 if minimum is None else minimum, "minimum")
    if not (math.isfinite(top - bottom) and bottom < top):
        raise BadInput(f"maximum must be finite and above the minimum {bottom:g}, not {maximum!r}; correct it.")
    count = None if bins is None else whole(bins, "bins")
    if count is not None and not 1 <= count <= MOST_BINS:
        raise BadInput(f"bins must be between 1 and {MOST_BINS:,}, not {count:,}; a hundred is plenty.")
    found = PublicGrid(bottom, top, count)
    for mechanism in ("local", None):  # steps too small for floats are refused before anything else is done
        found.steps(mechanism)
    return found

"""Noisy sectioning: where does an increasing function, seen through noise, cross zero?

Places are asked in batches until a sequential test (Wald 1945) says on which side of the crossing each lies; a place
that stays undecided is itself near the crossing. A bracket is cut at several places at once, and a guess without a
bracket gallops outwards with growing strides.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.server.quantile.asking import Ask


class Crossing(NamedTuple):
    """A place near the crossing and the bracket that was left; an open bracket has infinite ends."""

    place: float
    low: float
    high: float


@dataclass(frozen=True)
class Cutter:
    """How to cut: ask some places (deviations come back), how many at once, and when a place counts as decided."""

    measure: Callable[[Floats], Generator[Ask, Ints, Floats]]
    arity: int
    decisive: float
    patience: int

    def cut(self, places: Floats) -> Generator[Ask, Ints, tuple[int, int, int | None]]:
        """Return the last place below the crossing, the first above it, and an undecided one between them if any."""
        totals, seen = np.zeros(len(places)), np.zeros(len(places))
        left, right = -1, len(places)
        for _ in range(self.patience):
            active = np.arange(left + 1, right)
            totals[active] += yield from self.measure(places[active])
            seen[active] += 1
            below = np.flatnonzero(totals <= -self.decisive)
            left = int(below[-1]) if len(below) else -1
            above = np.flatnonzero(totals >= self.decisive)
            above = above[above > left]
            right = int(above[0]) if len(above) else len(places)
            if right == left + 1:
                return left, right, None
        between = np.arange(left + 1, right)
        return left, right, int(between[np.argmin(np.abs(totals[between] / seen[between]))])

    def section(self, low: float, high: float, width: float) -> Generator[Ask, Ints, Crossing]:
        """Shrink a bracket until a cut stays undecided or the bracket is narrower than ``width``."""
        while high - low > width:
            places = np.linspace(low, high, self.arity + 2).astype(np.float64)
            left, right, near = yield from self.cut(places[1:-1])
            low, high = float(places[left + 1]), float(places[right + 1])
            if near is not None:
                return Crossing(float(places[near + 1]), low, high)
        return Crossing((low + high) / 2, low, high)

    def gallop(self, start: float, step_length: float, width: float) -> Generator[Ask, Ints, Crossing]:
        """Bracket the crossing from a guess, doubling the stride, then section."""
        low, high = -np.inf, np.inf
        flock = step_length * (np.arange(self.arity, dtype=np.float64) - (self.arity - 1) / 2)
        places = start + flock
        for _ in range(12):
            left, right, near = yield from self.cut(places)
            low = float(places[left]) if left >= 0 else low
            high = float(places[right]) if right < len(places) else high
            if near is not None:
                return Crossing(float(places[near]), low, high)
            if np.isfinite(low) and np.isfinite(high):
                return (yield from self.section(low, high, width))
            flock = step_length * (1 + np.arange(self.arity, dtype=np.float64))
            places = low + flock if np.isfinite(low) else np.sort(high - flock)
            step_length *= 2
        return Crossing(start, low, high)

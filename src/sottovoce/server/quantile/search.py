"""Where is the data, and how wide? Location and scale from nothing, or from public bounds or a public scale.

The location is sectioned at the level one half, whatever the quantile, because far from the data an answer is then the
clearest; in the coordinate ``asinh(q / tiny)`` any unit takes a few dozen cuts at most. The scale ``h`` with
``F(m + h) - F(m - h) = 1/2`` is sectioned in its logarithm.

Sectioning finds where an increasing function, seen through noise, crosses zero (`Cutter`). Places are asked in batches
until a sequential test (Wald 1945) says on which side of the crossing each lies; a place that stays undecided is itself
near the crossing. A bracket is cut at several places at once, and a guess without a bracket gallops outwards with
growing strides.
"""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.server.quantile.asking import Ask, Decoded, QueryAllocator

TINY, HUGE = 1e-6, 1e12  # the finest unit and the farthest location that are looked for without public knowledge
LEAST = 5e-324  # the smallest number
WIDEST = 690.0  # a search led by noise alone, or outside wrong bounds, still asks at finite points
ALONE, MANY = (0.24, 0.52), (0.18, 0.45)  # error of a batch and decisive sum: cuts one by one, or many at once
PATIENCE = 4  # batches until a cut counts as undecided; at the wrong place that happens once in a thousand
FINEST, FINE = 1e-14, 1e-9  # of the range: the last digits of a double, and what is worth finding within bounds
COLLAPSED = 30.0  # a scale within this factor of the smallest is that of an atom
BESIDE = 4.0  # beside an atom an answer deviates by half as much, so it asks four times the records
PAIR = 2.0  # a pair has twice the variance of one point, so it asks twice the records
CLEAR = 0.35  # deviation from one half of a cut outside the bulk of the data
NEAR = 4.0  # in the coordinate: cuts this close on both sides of the centre tell the scale roughly
BUDGET, CUTS = 0.015, 18.0  # part of the records for a search by many cuts at once, of which a binary one takes so many


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


@dataclass(frozen=True)
class Found:
    """A centre near the median, a scale, and what was heard around them."""

    centre: float
    scale: float
    heard: tuple[Decoded, ...]


@dataclass(frozen=True)
class Coordinate:
    """The coordinate of the search: linear between public bounds, else growing with the magnitude."""

    bounds: tuple[float, float] | None
    tiny: float
    far: float

    @property
    def ends(self) -> tuple[float, float]:
        """Return the ends of the range that is searched."""
        return self.bounds if self.bounds is not None else (-self.far, self.far)

    def of(self, value: float) -> float:
        """Return the coordinate of a value."""
        return value if self.bounds is not None else math.asinh(value / self.tiny)

    def back(self, places: Floats) -> Floats:
        """Return the values at coordinates."""
        return places if self.bounds is not None else self.tiny * np.sinh(places)


def find(
    talker: QueryAllocator,
    bounds: tuple[float, float] | None,
    scale: float | None,
    care: float = 1.0,
    rough: bool = True,
    tau: float = 0.5,
) -> Generator[Ask, Ints, Found]:
    """Search for location and scale; ``care`` below one asks more records a cut.

    ``tau`` only says on which side of an atom at the median to look.

    ``rough`` takes the scale from the cuts around the centre where these are near, within a factor of about ten.
    """
    unit = talker.crowd.unit_variance
    arity = arity_for(unit / (MANY[0] * care) ** 2)
    error, decisive = ALONE if arity == 1 else MANY
    part = unit / (error * care) ** 2
    start = len(talker.heard)
    coordinate = Coordinate(bounds, TINY, HUGE) if scale is None else Coordinate(bounds, scale, HUGE * scale)

    def at(places: Floats) -> Generator[Ask, Ints, Floats]:
        heard = yield from talker.ask(coordinate.back(places), np.full(len(places), part))
        return heard.below - 0.5

    low, high = coordinate.ends
    first, last = coordinate.of(low), coordinate.of(high)
    finest = max((FINEST if bounds is None else FINE) * (last - first), 4 * math.ulp(max(abs(first), abs(last))))
    place = yield from Cutter(at, arity, decisive, PATIENCE).section(first, last, finest)
    centre, left, right = (float(value) for value in coordinate.back(np.array(place)))
    sides = [distance for distance, seen in ((centre - left, left > low), (right - centre, right < high)) if seen]
    near = len(sides) == 2 and (bounds is not None or place.high - place.low < NEAR)
    if rough and near and _clear(talker.heard[start:], left) and _clear(talker.heard[start:], right):
        return Found(centre, min(sides), tuple(talker.heard[start:]))

    def around(places: Floats) -> Generator[Ask, Ints, Floats]:
        widths, n = np.exp(np.minimum(places, WIDEST)), len(places)
        points = np.concatenate((centre - widths, centre + widths))
        heard = yield from talker.ask(points, np.full(2 * n, PAIR * part))
        return heard.below[n:] - heard.below[:n] - 0.5

    cutter = Cutter(around, arity, decisive, PATIENCE)
    smallest = FINE * (high - low) if bounds is not None else max(abs(centre) * 1e-13, coordinate.tiny * 1e-6)
    smallest = max(smallest, LEAST)
    if sides:
        width = yield from cutter.gallop(math.log(max(min(sides), smallest)), math.log(4.0), math.log(3.0))
    else:
        width = yield from cutter.section(math.log(smallest), math.log(high - low), math.log(3.0))
    if width.place > math.log(smallest) + math.log(COLLAPSED):
        return Found(centre, math.exp(min(width.place, WIDEST)), tuple(talker.heard[start:]))

    # the median sits in an atom: how far does the data go on the side of the quantile?
    side = 1.0 if tau >= 0.5 else -1.0

    def beside(places: Floats) -> Generator[Ask, Ints, Floats]:
        points = centre + side * np.exp(np.minimum(places, WIDEST))
        heard = yield from talker.ask(points, np.full(len(places), BESIDE * part))
        within = heard.below if side > 0 else 1 - heard.below
        return 2 * (within - (0.5 + max(tau, 1 - tau)) / 2)

    cutter = Cutter(beside, arity, decisive, PATIENCE)
    width = yield from cutter.section(math.log(smallest), math.log(high - low), math.log(3.0))
    return Found(centre, math.exp(min(width.place, WIDEST)), tuple(talker.heard[start:]))


def _clear(heard: list[Decoded], point: float) -> bool:
    """Tell whether the answers at a point lie far from one half; where noise decided a cut, they do not."""
    here = [answer.below[np.isclose(answer.points, point, rtol=1e-12, atol=0.0)] for answer in heard]
    return abs(float(np.mean(np.concatenate(here))) - 0.5) > CLEAR


def arity_for(part: float) -> int:
    """Return how many cuts to ask at once: as many as a small part of the records pays for."""
    for arity in (15, 7, 3):
        if CUTS * arity / math.log2(arity + 1) * part <= BUDGET:
            return arity
    return 1

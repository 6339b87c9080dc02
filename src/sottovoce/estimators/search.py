"""Where is the data, and how wide? Location and scale from nothing, or from public bounds or a public scale.

The location is sectioned in the coordinate ``asinh(q / tiny)``, so that any unit takes a few dozen cuts at most; the
scale ``h`` with ``F(m + h) - F(m - h) = 1/2`` in its logarithm.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sottovoce.estimators.asking import Floats, Heard, Talker
from sottovoce.estimators.sections import Cutter

TINY, HUGE = 1e-6, 1e12
CUT = 0.18
SCF = 2.0
TIGHT = 4.0


@dataclass(frozen=True)
class Found:
    """A centre near the median, a scale, and what was heard around them."""

    centre: float
    scale: float
    heard: tuple[Heard, ...]


def find(
    talker: Talker, bounds: tuple[float, float] | None, scale: float | None, care: float, rough: bool = True
) -> Generator[Any, Any, Found]:
    """Search for location and scale; ``care`` below one asks more records a cut.

    ``rough`` takes the scale from the cuts around the centre where these are near, within a factor of about ten.
    """
    unit = talker.crowd.unit_variance
    arity = arity_for(unit / (CUT * care) ** 2)
    cut, decisive = (0.24, 0.52) if arity == 1 else (CUT, 0.45)
    fraction = unit / (cut * care) ** 2
    tiny = TINY if scale is None else scale
    low, high = bounds if bounds is not None else (-HUGE, HUGE)
    start = len(talker.heard)

    if bounds is None:
        forward, backward = (lambda q: math.asinh(q / tiny)), (lambda y: tiny * np.sinh(y))
    else:
        forward, backward = (lambda q: q), (lambda y: y)

    def at(places: Floats) -> Generator[Any, Any, Floats]:
        heard = yield from talker.ask(backward(places), np.full(len(places), fraction))
        return heard.below - 0.5

    span = forward(high) - forward(low)
    place = yield from Cutter(at, arity, decisive, 4).section(forward(low), forward(high), 1e-9 * span)
    centre, left, right = (float(backward(np.array([p]))[0]) for p in place)

    def around(places: Floats) -> Generator[Any, Any, Floats]:
        widths, n = np.exp(places), len(places)
        heard = yield from talker.ask(np.concatenate((centre - widths, centre + widths)), np.full(2 * n, SCF * fraction))
        return heard.below[n:] - heard.below[:n] - 0.5

    cutter = Cutter(around, arity, decisive, 4)
    if rough and left > low and right < high and place.high - place.low < TIGHT:
        return Found(centre, min(centre - left, right - centre), tuple(talker.heard[start:]))
    if left > low or right < high:
        guess = math.log(min(centre - left if left > low else math.inf, right - centre if right < high else math.inf))
        width = yield from cutter.gallop(guess, math.log(4.0), math.log(3.0))
    else:
        smallest = max(abs(centre) * 1e-13, TINY * 1e-6) if scale is None else scale * 1e-3
        width = yield from cutter.section(math.log(smallest), math.log(high - low), math.log(3.0))
    return Found(centre, math.exp(width.place), tuple(talker.heard[start:]))


def arity_for(fraction: float) -> int:
    """Return how many cuts to ask at once: as many as cost about one record in a hundred over a whole search."""
    for arity in (15, 7, 3):
        if 14 * arity / math.log2(arity + 1) * 1.3 * fraction <= 0.015:
            return arity
    return 1

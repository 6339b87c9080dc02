"""The pilot: three points around the quantile that hold a usable part of the tail between them.

Rough pilots, a few records each, teach the guide where the quantile is; once three points bracket it, the pilot proper
asks enough records for a first slope. A pilot that fails is not wasted: the guide hears it too.
"""

import math
from collections.abc import Generator

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.server.quantile.asking import Ask, Decoded, QueryAllocator
from sottovoce.server.quantile.monotone import read_quantiles
from sottovoce.server.quantile.working_model import WorkingModel

MASS = 0.6  # of the tail, aimed at on each side: wide enough for a slope, narrow enough for a parabola
ROUGH = 0.35  # of the tail: the error of one rough answer
ERROR = 0.06  # of the tail: the error the pilot proper is paid for, within 5 to 15 % of what is left
LOPSIDED = 6.0  # the most by which one side may be wider than the other
TRIES = 10
LIMIT = 0.6  # of all records, beyond which the search gives up


def find_pilot(talker: QueryAllocator, tau: float, guide: WorkingModel) -> Generator[Ask, Ints, Decoded | None]:
    """Return three answered points that bracket the level, or None."""
    tail, unit = min(tau, 1 - tau), talker.crowd.unit_variance
    levels = np.array([tau - MASS * tail, tau, tau + MASS * tail])
    rough = unit / (ROUGH * tail) ** 2
    tries = 0
    while tries < TRIES and talker.spent < LIMIT:
        tries += 1
        heard = yield from talker.ask(_places(talker, guide, levels, tries), np.full(3, rough))
        guide.hear(heard)
        if not brackets(heard, tau, slack=0.3):
            continue
        part = min(max(unit / (ERROR * tail) ** 2, 0.05), 0.15) * talker.left
        heard = yield from talker.ask(_places(talker, guide, levels, tries), part * np.array([0.3, 0.4, 0.3]))
        if brackets(heard, tau):
            return heard
        guide.hear(heard)
        tries += 2
    return None


def _places(talker: QueryAllocator, guide: WorkingModel, levels: Floats, tries: int) -> Floats:
    """Return three points to ask: the guide's, or, from the third try on in turn, those that the answers alone give."""
    if tries > 2 and tries % 2 == 1:
        low, middle, high = (float(place) for place in read_quantiles(talker.heard, levels))
        # the outermost answers may be very far: one side must not dwarf the other
        near = min(middle - low, high - middle)
        if near > 0:
            return np.array([max(low, middle - LOPSIDED * near), middle, min(high, middle + LOPSIDED * near)])
    return guide.quantiles(levels)


def brackets(heard: Decoded, tau: float, slack: float = 0.0) -> bool:
    """Tell whether three points bracket the level, with the middle one near it and a usable mass between them."""
    low, middle, high = (float(value) for value in heard.below)
    tail = min(tau, 1 - tau)
    error = math.sqrt(float(heard.variances[0] + heard.variances[2])) / 2
    mass = (high - low) / 2
    inside = low + (0.1 - slack) * tail < tau < high - (0.1 - slack) * tail
    central = abs(middle - tau) < 0.5 * tail + 2 * math.sqrt(float(heard.variances[1]))
    return inside and central and max(0.25 * tail, 2 * error) < mass < min(1.25 * tail, 0.42) + error

"""The pilot: three points around the quantile that hold a usable part of the tail between them.

Rough pilots, a few records each, teach the guide where the quantile is; once three points bracket it, the pilot proper
asks enough records for a first slope. A pilot that fails is not wasted: the guide hears it too.

A walk needs less to start from, a point near the quantile and the density there (`find_initialisation`).
"""

import math
from collections.abc import Generator, Sequence
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.server.quantile.asking import Ask, Decoded, QueryAllocator, SiteProfile
from sottovoce.server.quantile.search import find
from sottovoce.server.quantile.working_model import WorkingModel

MASS = 0.6  # of the tail, aimed at on each side: wide enough for a slope, narrow enough for a parabola
ROUGH = 0.35  # of the tail: the error of one rough answer
ERROR = 0.06  # of the tail: the error the pilot proper is paid for, within 5 to 15 % of what is left
LOPSIDED = 6.0  # the most by which one side may be wider than the other
TRIES = 10
LIMIT = 0.5  # of all records, beyond which the search for a pilot gives up
PEAK = 0.399  # density of the standard normal law at its median: the papers' steps presume it


def find_pilot(talker: QueryAllocator, tau: float, guide: WorkingModel) -> Generator[Ask, Ints, Decoded | None]:
    """Return three answered points that bracket the level, or None."""
    tail, unit = min(tau, 1 - tau), talker.crowd.unit_variance
    levels = np.array([tau - MASS * tail, tau, tau + MASS * tail])
    rough = unit / (ROUGH * tail) ** 2
    tries, limit = 0, talker.spent + LIMIT
    while tries < TRIES and talker.spent < limit:
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
    mass, apart = (high - low) / 2, bool(np.all(np.diff(heard.points) > 0))
    inside = low + (0.1 - slack) * tail < tau < high - (0.1 - slack) * tail
    central = abs(middle - tau) < 0.5 * tail + 2 * math.sqrt(float(heard.variances[1]))
    return apart and inside and central and max(0.25 * tail, 2 * error) < mass < min(1.25 * tail, 0.42) + error


def read_quantiles(heard: Sequence[Decoded], taus: Floats) -> Floats:
    """Return where the pooled answers cross some levels: isotonic regression, without a model, read between its steps.

    Levels beyond the outermost steps are put at the outermost points.
    """
    points, below, variances = (
        np.concatenate([getattr(answer, name) for answer in heard]) for name in ("points", "below", "variances")
    )
    said = variances > 0  # elsewhere nobody answered
    points, below, weights = points[said], below[said], 1 / variances[said]
    order = np.argsort(points, kind="stable")
    blocks: list[tuple[float, float, float]] = []  # of one level: place, level, weight
    for i in order:
        place, level, weight = float(points[i]), float(below[i]), float(weights[i])
        while blocks and blocks[-1][1] >= level:
            earlier, old, heavy = blocks.pop()
            total = heavy + weight
            place = (earlier * heavy + place * weight) / total
            level, weight = (old * heavy + level * weight) / total, total
        blocks.append((place, level, weight))
    places, levels = np.array([block[0] for block in blocks]), np.array([block[1] for block in blocks])
    quantiles: Floats = np.interp(taus, levels, places)
    return quantiles


class Initialisation(NamedTuple):
    """A point near the quantile, and the density there."""

    point: float
    density: float

    @property
    def unit(self) -> float:
        """Return the scale of a normal law whose median has this density."""
        return PEAK / self.density


def find_initialisation(
    crowd: SiteProfile,
    tau: float,
    bounds: tuple[float, float] | None = None,
    scale: float | None = None,
    most: float = math.inf,
) -> Generator[Ask, Ints, Initialisation]:
    """Search for location and scale, then ask five rough pilots, together at ``most`` this part of the records."""
    talker, tail = QueryAllocator(crowd), min(tau, 1 - tau)
    found = yield from find(talker, bounds, scale, tau=tau)
    guide = WorkingModel(found.centre, found.scale, tau)
    for heard in found.heard:
        guide.hear(heard)
    levels = np.array([tau - MASS * tail, tau, tau + MASS * tail])
    parts = crowd.unit_variance / (np.array([ROUGH, ROUGH, ROUGH, ROUGH / 2, ROUGH / 2]) * tail) ** 2
    for part in parts * min(1.0, most / (3 * float(parts.sum()))):
        heard = yield from talker.ask(guide.quantiles(levels), np.full(3, part))
        guide.hear(heard)
    low, point, high = (float(value) for value in guide.quantiles(levels))
    return Initialisation(point, 2 * MASS * tail / (high - low))

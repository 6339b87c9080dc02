"""Where a walk may start: a point near the quantile and the density there, from the search and a few rough pilots."""

import math
from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Ints
from sottovoce.server.quantile.asking import Ask, QueryAllocator, SiteProfile
from sottovoce.server.quantile.pilot import MASS, ROUGH
from sottovoce.server.quantile.search import find
from sottovoce.server.quantile.working_model import WorkingModel

PEAK = 0.399  # density of the standard normal law at its median: the papers' steps presume it


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

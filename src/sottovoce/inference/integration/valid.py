"""The default combination: an interval that covers whatever the sources' shifts, and an estimate that they improve.

The interval is the target's own, changed by the pooled sources (`inference.integration.kabaila_giri`); the estimate
moves towards the sources within a limit (`inference.integration.limited_translation`), never out of the interval. Where
the error of some source is not to be trusted, the median of all sources stands for them: both promises hold for any
number that is independent of the target.
"""

import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from sottovoce.inference.common.measured import SiteEstimate, pool
from sottovoce.inference.integration import kabaila_giri, limited_translation


class Valid(NamedTuple):
    """Estimate, interval, and how much each site counts in the estimate, the target first."""

    estimate: float
    low: float
    high: float
    weights: tuple[float, ...]


def combine(
    target: SiteEstimate,
    own: tuple[float, float],
    sources: Sequence[SiteEstimate],
    level: float,
    trusted: bool = True,
    most: float = limited_translation.MOST,
) -> Valid:
    """Combine a target with its sources.

    ``own`` is the target's own interval at the level (one of `kabaila_giri.LEVELS`), symmetric or not; sources are
    independent of the target and of each other, ``trusted`` if every one's error is to be believed; ``most`` is the
    longest move of the estimate, in standard errors of the target.

    >>> target = SiteEstimate(10.0, 1.0)
    >>> found = combine(target, target.interval(0.95), [SiteEstimate(10.4, 0.3), SiteEstimate(10.2, 0.3)], 0.95)
    >>> round(found.low, 2), round(found.estimate, 2), round(found.high, 2)
    (8.17, 10.25, 11.83)
    >>> combine(target, target.interval(0.95), [], 0.95).weights
    (1.0,)
    """
    if not sources or not 0 < target.std_error < math.inf:
        kabaila_giri.table(level)
        return Valid(target.estimate, *own, (1.0, *[0.0] * len(sources)))
    # From the target's estimate, so that digits are kept wherever the sites lie.
    near = [site._replace(estimate=site.estimate - target.estimate) for site in sources]
    origin, edges = target._replace(estimate=0.0), (own[0] - target.estimate, own[1] - target.estimate)
    if trusted:
        pooled = pool(near)
        middle, shares = pooled.estimate, [pooled.variance / site.variance for site in near]
        low, high = kabaila_giri.interval(origin, edges, pooled, level)
        move, weights = limited_translation.move(origin, near, most)
    else:
        middle = median(site.estimate for site in near)
        shares = _median_weights([site.estimate for site in near])
        low, high = kabaila_giri.interval_untrusted(origin, edges, middle, level)
        move, (_, weight) = limited_translation.move(origin, [SiteEstimate(middle, target.std_error)], most)
        weights = (1 - weight, *(weight * each for each in shares))
    place = min(max(move, low), high)
    if place != move:
        # Held back by an edge: less of each weight; or, where the edge itself has passed the target's estimate on its
        # way to the sources, as much of these as reaches it.
        held = 0 <= place * move < move * move
        share, parts = (place / move, weights[1:]) if held else (place / middle, shares)
        weights = (1 - share * sum(parts), *(share * each for each in parts))
    estimate = target.estimate + place
    if (low, high) == edges:
        return Valid(estimate, *own, weights)
    return Valid(estimate, target.estimate + low, target.estimate + high, weights)


def _median_weights(values: Sequence[float]) -> list[float]:
    """Give all weight to the one or two values in the middle."""
    order = sorted(range(len(values)), key=values.__getitem__)
    middle = order[(len(order) - 1) // 2 : len(order) // 2 + 1]
    return [1 / len(middle) if i in middle else 0.0 for i in range(len(values))]

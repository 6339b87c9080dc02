"""One target and its sources combined by weights: the estimate, its interval, and who counted for how much."""

from collections.abc import Sequence
from typing import NamedTuple

from sottovoce.inference.common.measured import SiteEstimate, t_value


class Weighted(NamedTuple):
    """A weighted estimate; ``weights`` add up to one, the target's first; ``error`` is what the interval believes."""

    estimate: float
    low: float
    high: float
    weights: tuple[float, ...]
    error: float
    df: float


def alone(target: SiteEstimate, sources: int, level: float) -> Weighted:
    """Return the target's own interval: every source weighs nothing.

    >>> alone(SiteEstimate(1.0, 2.0), 2, 0.95).weights
    (1.0, 0.0, 0.0)
    """
    low, high = target.interval(level)
    return Weighted(target.estimate, low, high, (1.0, *[0.0] * sources), target.error, target.df)


def around(
    target: SiteEstimate,
    sources: Sequence[SiteEstimate],
    weights: Sequence[float],
    error: float,
    df: float,
    level: float,
) -> Weighted:
    """Return Student's interval around a weighted estimate.

    >>> found = around(SiteEstimate(1.0, 2.0), [SiteEstimate(3.0, 2.0)], [0.5, 0.5], 1.0, 9.0, 0.95)
    >>> found.estimate, round(found.low, 3), round(found.high, 3)
    (2.0, -0.262, 4.262)
    """
    # From the target's estimate, so that digits are kept wherever the sites lie.
    moves = [w * (site.estimate - target.estimate) for w, site in zip(weights[1:], sources, strict=True)]
    centre, half = target.estimate + sum(moves), t_value(level, df) * error
    return Weighted(centre, centre - half, centre + half, tuple(float(w) for w in weights), error, df)

"""Coverage, length and error of the combinations over a grid of sources and shifts.

Sites are drawn from pools (`papers.simulation.integration.pools`); a shift is added to a source's estimate. Lengths and
errors are relative to those of the target alone, on the same replications.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.inference.common.measured import SiteEstimate
from sottovoce.inference.integration import known_bound
from sottovoce.server.integration.combine import LEAST_DF
from sottovoce_papers.simulation.integration.batch import Sites, cautious_intervals, limited_moves, valid_intervals
from sottovoce_papers.simulation.integration.pools import Pool

PATTERNS = ("one", "two", "all", "opposite")
SHIFTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 14.0, 20.0)
BOUNDED = 400  # replications of the known bound, which takes milliseconds each


@dataclass(frozen=True)
class Score:
    """What replications of one case say; the known bound is NaN where none was given."""

    target: float  # coverage of the target alone
    valid: float
    length: float
    error: float  # mean squared, of the point estimate
    conservative: float
    conservative_length: float
    bounded: float
    bounded_length: float
    ratio: float  # median variance of the pooled sources over the target's
    replications: int


def signs(pattern: str, sources: int) -> list[float]:
    """Return by how many units of the shift each source is off.

    >>> signs("two", 3), signs("opposite", 3)
    ([1.0, 1.0, 0.0], [1.0, -1.0, 1.0])
    """
    if pattern == "opposite":
        return [1.0 if k % 2 == 0 else -1.0 for k in range(sources)]
    shifted = {"one": 1, "two": 2, "all": sources}[pattern]
    return [1.0 if k < shifted else 0.0 for k in range(sources)]


def draw(target: Pool, sources: Sequence[Pool], shifts: Sequence[float]) -> tuple[Pool, Sites, Floats]:
    """Put replications of a target and of its sources side by side, with the sources' degrees of freedom.

    Source ``k`` is read from its pool at an offset of its own, so that one pool may serve several sources. A target
    that was lost, or whose interval is endless, leaves its replication out; a source, only itself.
    """
    rows = np.flatnonzero(target.kept & np.isfinite(target.high - target.low))
    estimates, errors, dfs = (np.empty((len(rows), len(sources))) for _ in range(3))
    for k, (pool, shift) in enumerate(zip(sources, shifts, strict=True)):
        at = (rows + 1 + 37 * k) % len(pool.estimate)
        usable = pool.kept[at] & np.isfinite(pool.error[at]) & (pool.df[at] >= LEAST_DF)
        estimates[:, k] = np.where(usable, pool.estimate[at] + shift, 0.0)
        errors[:, k] = np.where(usable, pool.error[at], np.inf)
        dfs[:, k] = pool.df[at]
    return Pool(*(column[rows] for column in target)), Sites(estimates, errors), dfs


def score(
    target: Pool, sources: Sequence[Pool], shifts: Sequence[float], bound: float | None = None, level: float = 0.95
) -> Score:
    """Combine the replications of a target with those of its sources, each source shifted by so much."""
    own, others, dfs = draw(target, sources, shifts)
    default = valid_intervals(own.estimate, own.error, own.low, own.high, others, level)
    cautious = cautious_intervals(own.estimate, own.error, own.low, own.high, others)
    points = limited_moves(own.estimate, own.error, others)
    length = float(np.mean(own.high - own.low))
    covered, bounded_length = _bounded(own, others, dfs, bound, level)
    return Score(
        float(np.mean((own.low <= 0) & (own.high >= 0))),
        _coverage(default),
        float(np.mean(default[:, 1] - default[:, 0])) / length,
        float(np.mean(points**2) / np.mean(own.estimate**2)),
        _coverage(cautious),
        float(np.mean(cautious[:, 1] - cautious[:, 0])) / length,
        covered,
        bounded_length,
        float(np.median(1 / np.maximum((others.errors**-2.0).sum(axis=1), 1e-300) / own.error**2)),
        len(own.estimate),
    )


def _coverage(intervals: Floats) -> float:
    return float(np.mean((intervals[:, 0] <= 0) & (intervals[:, 1] >= 0)))


def _bounded(own: Pool, others: Sites, dfs: Floats, bound: float | None, level: float) -> tuple[float, float]:
    """Return coverage and relative length of the interval under one bound for all sources."""
    if bound is None:
        return math.nan, math.nan
    intervals = np.empty((min(BOUNDED, len(own.estimate)), 2))
    for i in range(len(intervals)):
        site = SiteEstimate(float(own.estimate[i]), float(own.error[i]), float(own.df[i]))
        used = [
            SiteEstimate(float(y), float(error), float(df))
            for y, error, df in zip(others.estimates[i], others.errors[i], dfs[i], strict=True)
            if math.isfinite(error)
        ]
        found = known_bound.combine(site, used, [bound] * len(used), level)
        intervals[i] = found.low, found.high
    lengths = (own.high - own.low)[: len(intervals)]
    return _coverage(intervals), float(np.mean(intervals[:, 1] - intervals[:, 0]) / lengths.mean())

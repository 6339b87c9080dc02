"""Ours by default in the paper's setting: a staged target, helped by staged sources, method "valid".

A staged site is measured once a replication, and a source's estimate is moved by its shift: quantiles move with their
records, and so does the search. All sources of one size and rate are read from one pool, each at a place of its own.
"""

import numpy as np

from sottovoce.client.integration.site import rank_interval, rank_summary
from sottovoce.client.record import Records
from sottovoce.core.arrays import Floats
from sottovoce.server.integration.combine import LEAST_DF
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.integration.batch import Sites, limited_moves, valid_intervals
from sottovoce_papers.simulation.integration.pools import Pool, SiteCell, fill


def measured(site: SiteCell, replications: int, seed: int, level: float = 0.95) -> Pool:
    """Measure a site again and again; at rate 1 its records are read as they are.

    Examples
    --------
    >>> from sottovoce_papers.simulation.populations import population
    >>> pool = measured(SiteCell(population("normal"), 0.5, 1.0, 1_000), 2, seed=1)
    >>> bool(np.all(pool.low < pool.estimate) and np.all(pool.estimate < pool.high))
    True
    """
    if site.rate < 1:
        return fill(site, replications, seed, level)
    generator, truth = dice(seed).generator(), float(site.distribution.quantile(site.tau))
    rows = np.empty((replications, 5))
    for i in range(replications):
        records = Records(np.ascontiguousarray(site.distribution.sample(generator, site.size) - truth))
        rows[i] = *rank_summary(records, site.tau), *rank_interval(records, site.tau, level)
    return Pool(*np.ascontiguousarray(rows.T))


def helped(target: Pool, source: Pool, shifts: tuple[float, ...], level: float = 0.95) -> tuple[Floats, Floats]:
    """Return errors of the estimate and intervals about the truth, (replications, 2); NaN where the target was lost.

    Parameters
    ----------
    target, source
        Replications of the two kinds of sites, relative to their own quantiles.
    shifts
        By how much each source's quantile is off.
    level
        The confidence level.

    Examples
    --------
    >>> ones = np.ones(4)
    >>> pool = Pool(0.1 * ones, ones, 99 * ones, -1.9 * ones, 2.1 * ones)
    >>> helped(pool, pool, (0.0, 9.0))[1].shape
    (4, 2)
    """
    n, apart = len(target.estimate), max(1, len(source.estimate) // (len(shifts) + 1))
    rows = np.flatnonzero(target.kept & np.isfinite(target.high - target.low))
    estimates, errors = np.empty((len(rows), len(shifts))), np.empty((len(rows), len(shifts)))
    for k, shift in enumerate(shifts):
        at = (rows + apart * (k + 1)) % len(source.estimate)
        usable = source.kept[at] & np.isfinite(source.error[at]) & (source.df[at] >= LEAST_DF)
        estimates[:, k] = np.where(usable, source.estimate[at] + shift, 0.0)
        errors[:, k] = np.where(usable, source.error[at], np.inf)
    own, others = Pool(*(column[rows] for column in target)), Sites(estimates, errors)
    points, intervals = np.full(n, np.nan), np.full((n, 2), np.nan)
    points[rows] = limited_moves(own.estimate, own.error, others)
    intervals[rows] = valid_intervals(own.estimate, own.error, own.low, own.high, others, level)
    return points, intervals

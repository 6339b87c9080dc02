"""Curves of their own for sites that were absent from some stages, so that an absence costs length and not truth.

Sites that were in the same stages are one group, whose answers are pooled by their shares as those of all sites are
else. The quantile is that of ``sum_g p_g F_g`` with the shares the study began with: a group that was absent from a
stage is known by its other stages (`inference.quantile.inversion`). What a stage says to the procedure's own checks is
completed in the same way.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sottovoce.core.arrays import Bools, Floats, Ints
from sottovoce.inference.quantile.inversion import Stage, curves
from sottovoce.server.quantile.asking import Decoded, SiteProfile, counted
from sottovoce.server.quantile.layouts import KeptStage


def letter_variances(kept: Sequence[KeptStage], crowd: SiteProfile, drawn: float | None = None) -> Floats:
    """Return the variance of one decoded report of each site at the quantile, by the pooled middle points of stages.

    Where what answers as a site is a part that was drawn along with its records, as those of one weight are, its share
    varies, too: by as much as its own curve lies off the level ``drawn``.
    """
    ones = np.sum([heard.ones[:, len(heard.points) // 2] for heard, *_ in kept], axis=0)
    counts = np.sum([heard.counts[:, len(heard.points) // 2] for heard, *_ in kept], axis=0)
    rate = (ones + 1) / (counts + 2)
    found = rate * (1 - rate) / crowd.rates**2
    if drawn is not None:
        below = np.clip(1 - (rate - (1 - crowd.rates) / 2) / crowd.rates, 0.0, 1.0)
        found += (below - drawn) ** 2
    return np.asarray(found[:, None])


def groups_of(heard: Sequence[Decoded]) -> Ints:
    """Return of each site the group it is in, from zero: sites of a group were absent from the same stages."""
    nobody = np.zeros(len(heard[0].counts), dtype=np.bool_)
    patterns = np.array([nobody if stage.absent is None else stage.absent for stage in heard])
    _, group = np.unique(patterns, axis=1, return_inverse=True)
    return np.asarray(group.ravel(), dtype=np.int64)


def grouped(
    kept: Sequence[KeptStage], crowd: SiteProfile, tau: float, group: Ints, drawn: float | None = None
) -> list[Stage]:
    """Return the stages with a row of values a group."""
    members = group[None, :] == np.arange(group.max() + 1)[:, None]
    shares, spread = members @ crowd.shares, letter_variances(kept, crowd, drawn)
    stages = []
    for heard, places, spacing, allowance, origin, bend in kept:
        rows = [_pooled(heard, crowd, sites, spread) for sites in members]
        values, variances = (np.array(part) for part in zip(*rows, strict=True))
        stages.append(Stage(places, values - tau, variances, allowance, spacing, origin, bend, shares))
    return stages


def _pooled(heard: Decoded, crowd: SiteProfile, sites: Bools, spread: Floats) -> tuple[Floats, Floats]:
    """Return what some sites say together at each point, and its variances: infinite where a point was not answered."""
    part, counts = SiteProfile(crowd.shares[sites], crowd.rates[sites], crowd.sizes[sites]), heard.counts[sites]
    if not np.all(counts.any(axis=0)):
        return np.zeros(counts.shape[1]), np.full(counts.shape[1], np.inf)
    weights, noise, _ = counted(part, counts)
    rates = part.rates[:, None]
    above = weights * (heard.ones[sites] / np.maximum(counts, 1) - (1 - rates) / 2) / rates
    return 1 - above.sum(axis=0), np.sum(noise * spread[sites], axis=0)


def completed(heard: Decoded, kept: Sequence[KeptStage], crowd: SiteProfile, tau: float) -> Decoded:
    """Return the answers of a stage with those of the absent put in, as their own curves of the stages before say."""
    if heard.absent is None:
        return heard
    gone = crowd.shares * heard.absent
    missing, group = float(gone.sum()), groups_of([*(stage.heard for stage in kept), heard])
    shares, stages = np.bincount(group, weights=gone), grouped(kept, crowd, tau, group)
    below = heard.below * (1 - missing)
    variances = (heard.variances - (missing / 2) ** 2) * (1 - missing) ** 2
    for j, point in enumerate(heard.points.tolist()):
        values, doubts = curves(stages, point)
        below[j] += float(shares @ (values + tau))
        variances[j] += float(shares**2 @ doubts)
    return replace(heard, below=below, variances=variances)

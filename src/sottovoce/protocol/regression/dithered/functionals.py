"""Bits about the one number of the moments that a coefficient's standard error depends on: the mean of u'x w'x.

The product is moved to a range before it is rounded to a bit. Its whole range over the box of covariates is exact, and
wide; three standard deviations tell more. They can make the moments too small only, and so intervals too long; where
the whole range shows that they do, the short range is given up.
"""

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.dithered.declared import Declared, cut, reaches
from sottovoce.protocol.regression.dithered.moments import BitAnswers, values_of
from sottovoce.protocol.regression.dithered.segments import Stacked
from sottovoce.protocol.regression.dithered.spread import carried, is_apart
from sottovoce.protocol.regression.dithered.vech import product

SQUARE = 9.0  # of three standard deviations: where the short range ends
SAFELY = 2.0  # standard deviations of a square that is not known, by which it is taken larger: else it would be cut
CUT = 0.1  # of a pair's mean, by which a short range may cut what rare levels reach
WORTHWHILE = 1.5  # times: how much wider the whole range has to be
SURELY, SMALLER = 2.5, 0.9  # standard errors and factor by which the short range's mean has to be smaller


def sizes_of(parts: Floats, moments: Floats, spread: Floats | None = None) -> Floats:
    """Return the root mean square of each combination, with a ``spread`` of the moments no smaller than it may be."""
    squares = ((parts @ moments) * parts).sum(axis=1)
    if spread is not None:
        squares = squares + SAFELY * np.sqrt(np.maximum(carried(parts, parts, spread), 0.0))
    return np.asarray(np.sqrt(squares))


def scaled_pairs(u: Floats, w: Floats, moments: Floats, spread: Floats | None = None) -> tuple[Floats, Floats]:
    """Return the pairs of u and w, each row of variance one and turned to the same side, and their correlations."""
    a, b = (part / sizes_of(part, moments, spread)[:, None] for part in (u, w))
    correlation = ((a @ moments) * b).sum(axis=1)
    b = np.where(correlation[:, None] < 0, -b, b)
    return np.stack([a, b], axis=1), np.minimum(np.abs(correlation), 1.0)


def ranges_of(
    pairs: Floats, correlation: Floats, declared: Declared | None = None, moments: Floats | None = None
) -> Floats:
    """Return the short range of each pair's product, then the whole one of each: (2 pairs, 2).

    The short one does not cut what columns of two values reach, where that is much of the mean: of a rare level, it is
    all there is to see.

    >>> import numpy as np
    >>> ranges_of(np.array([[[0.0, 1.0], [0.0, 1.0]]]), np.array([1.0])).tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    sums, differences = (pairs[:, 0] + pairs[:, 1]) / 2, (pairs[:, 0] - pairs[:, 1]) / 2
    near, far = 0.0 - SQUARE * (1 - correlation) / 2, SQUARE * (1 + correlation) / 2
    if declared is None:
        low, high = 0.0 - _largest(differences) ** 2, _largest(sums) ** 2
    else:
        low, high = 0.0 - reaches(declared, differences) ** 2, reaches(declared, sums) ** 2
        if moments is not None:
            rare = cut(declared, pairs, moments, SQUARE) > CUT
            near = np.where(rare, np.minimum(near, 0.0 - reaches(declared, differences, moments) ** 2), near)
            far = np.where(rare, np.maximum(far, reaches(declared, sums, moments) ** 2), far)
    short = np.stack([np.maximum(near, low), np.minimum(far, high)])
    return np.concatenate([short.T, np.stack([low, high], axis=1)])


def is_wide(ranges: Floats) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Tell for which pairs the short range is worth being asked about."""
    whole = ranges[len(ranges) // 2 :]
    return np.asarray(whole[:, 1] - whole[:, 0] > WORTHWHILE * SQUARE)


def _largest(combinations: Floats) -> Floats:
    """Return how far combinations of (1, z) reach over the box."""
    return np.asarray(np.abs(combinations).sum(axis=1))


def banned(told: Stacked, rate: float) -> tuple[bool, ...]:
    """Return for which pairs the short range has been shown to change the mean."""
    asked, ones = told.bits[:, 0], told.bits[:, 1]
    values, precisions = values_of(asked, ones, told.ranges[..., 0], told.ranges[..., 1], rate)
    n, pairs = asked.sum(axis=0), told.bits.shape[2] // 2
    weights = asked / np.maximum(n, 1e-300)
    means = (weights * values).sum(axis=0)
    variances = (weights**2 / np.maximum(precisions, 1e-300) * (asked > 0)).sum(axis=0)
    short, whole = means[:pairs], means[pairs:]
    sd = np.sqrt(variances[:pairs] + variances[pairs:])
    both = (n[:pairs] > 0) & (n[pairs:] > 0) & np.any(told.ranges[:, :pairs] != told.ranges[:, pairs:], axis=(0, 2))
    return tuple((both & (whole - short > SURELY * sd) & (short < SMALLER * whole)).tolist())


def answers(told: Stacked, without: tuple[bool, ...], rate: float) -> BitAnswers:
    """Return what the bits about pairs say of the packed moments; banned pairs' short ranges are left out."""
    d = told.pairs.shape[3]
    if is_apart(d):  # not asked
        return BitAnswers(np.zeros((0, d * (d + 1) // 2)), np.zeros(0), np.zeros(0))
    kept = ~np.concatenate([np.array(without, dtype=np.bool_), np.zeros(len(without), dtype=np.bool_)])
    values, precisions = values_of(told.bits[:, 0], told.bits[:, 1], told.ranges[..., 0], told.ranges[..., 1], rate)
    combinations = product(told.pairs[:, :, 0], told.pairs[:, :, 1])
    both = np.concatenate([combinations, combinations], axis=1)
    used = (precisions > 0) & kept
    return BitAnswers(both[used], values[used], precisions[used], told.ranges[..., 0][used], told.ranges[..., 1][used])

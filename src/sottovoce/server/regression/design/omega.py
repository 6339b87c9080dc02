"""Omega: the covariance of the decoded gradient at the truth, for any regression channel, in closed form.

Omega_jk = sum over blocks of probability x P(j and k spoken of) x gain_j gain_k x E D_j D_k. The averaged recursion
then has asymptotic covariance H^-1 Omega H^-1 / n with H = f E x x'.
"""

from collections.abc import Sequence

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.blocks import Block, RegressionChannel
from sottovoce.server.regression.design.covariates import Covariates, covariates
from sottovoce.server.regression.design.moments import block_moments


def omega(
    channel: RegressionChannel, second_moments: float | Sequence[float] | Floats | None = None,
    means: Sequence[float] | Floats | None = None, level: int = 0,
) -> Floats:  # fmt: skip
    """Return Omega (p + 1, p + 1), intercept first, for one of the channel's levels.

    Parameters
    ----------
    channel
        Any regression channel.
    second_moments
        E z_j^2 for each slope, one number for all, or the matrix E z z'; None: 1/3, the uniform law's.
    means
        E z_j for each slope; None: 0.
    level
        Which of the channel's quantile levels.

    Examples
    --------
    >>> from sottovoce.protocol.regression.open import open_channel
    >>> omega(open_channel(0.5, 1)).round(4).tolist()
    [[0.25, 0.0], [0.0, 0.0833]]
    """
    return omega_at(channel, covariates(channel.p, second_moments, means), level)


def omega_at(channel: RegressionChannel, known: Covariates, level: int = 0) -> Floats:
    """Return Omega for public moments that have been checked."""
    total = np.zeros((channel.p + 1, channel.p + 1))
    for block in channel.blocks:
        gains = block.gains[level]
        seen = _together(block, channel.p)
        moments = block_moments(block.channel, block.slopes, channel.taus, level, known)
        total += block.probability * seen * np.outer(gains, gains) * moments
    return total


def covariance(channel: RegressionChannel, known: Covariates, level: int = 0) -> Floats:
    """Return H^-1 Omega H^-1 for density 1: n x the asymptotic covariance of the estimate, in units of 1 / f^2."""
    inverse = np.linalg.inv(known.information)
    return np.asarray(inverse @ omega_at(channel, known, level) @ inverse)


def _together(block: Block, p: int) -> Floats:
    """Return the probability that the block, when asked, speaks of each pair of coordinates."""
    alone = block.inclusion(p)
    pairs = np.outer(alone, alone)
    if block.slopes is None and p > 1:
        pairs[1:, 1:] = block.count * (block.count - 1) / (p * (p - 1))
    pairs[np.diag_indices(p + 1)] = alone
    return pairs

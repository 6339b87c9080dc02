"""What a federated threshold is compared with: all scores in one place, an average of quantiles, one site alone.

Scores lie along the last axis and sites along the one before it, so that many calibrations are computed at once.
"""

import math

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.server.conformal.coverage.equal import ROUNDING


def split_order(n: int, alpha: float) -> int:
    """Return which of n scores split conformal prediction takes; n + 1 stands for infinity.

    >>> split_order(99, 0.1), split_order(8, 0.1)
    (90, 9)
    """
    return math.ceil((1 - alpha) * (n + 1) * (1 - ROUNDING))


def split(scores: Floats, alpha: float) -> Floats:
    """Return the split-conformal threshold of each set of scores (Vovk et al.; Lei et al. 2018).

    >>> split(np.arange(1.0, 100.0), 0.1).tolist(), split(np.arange(8.0), 0.1).tolist()
    (90.0, inf)
    """
    n = scores.shape[-1]
    order = split_order(n, alpha)
    if order > n:
        return np.full(scores.shape[:-1], np.inf)
    return np.asarray(np.partition(scores, order - 1, axis=-1)[..., order - 1])


def centralised(scores: Floats, alpha: float) -> Floats:
    """Return the split-conformal threshold of all sites' scores in one place.

    >>> centralised(np.arange(1.0, 100.0).reshape(9, 11), 0.1).tolist()
    90.0
    """
    return split(scores.reshape(*scores.shape[:-2], -1), alpha)


def averaged(scores: Floats, alpha: float) -> Floats:
    """Return the average of the sites' own thresholds (FedCP-Avg, Lu and Kalpathy-Cramer 2021); it promises nothing.

    >>> averaged(np.stack([np.arange(1.0, 10.0), np.arange(11.0, 20.0)]), 0.1).tolist()
    14.0
    """
    return np.asarray(split(scores, alpha).mean(axis=-1))


def alone(scores: Floats, alpha: float) -> Floats:
    """Return the threshold of the first site, which asks nobody.

    >>> alone(np.stack([np.arange(1.0, 10.0), np.arange(11.0, 20.0)]), 0.1).tolist()
    9.0
    """
    return split(scores[..., 0, :], alpha)


def split_distribution(n: int, alpha: float) -> tuple[float, float, float]:
    """Return mean, standard deviation and 5 % quantile of split conformal prediction's coverage, which is Beta.

    >>> [round(value, 5) for value in split_distribution(1000, 0.1)]
    [0.9001, 0.00947, 0.88408]
    """
    from scipy.special import betaincinv

    order = split_order(n, alpha)
    if order > n:
        return 1.0, 0.0, 1.0
    rest = n - order + 1
    spread = math.sqrt(order * rest / (n + 1) ** 2 / (n + 2))
    return order / (n + 1), spread, float(betaincinv(order, rest, 0.05))

r"""The mean decoded score of the paper's design and its slope, at a point that swings around a mean.

Every channel here is unbiased, so whatever it is the mean score at the distance ``delta`` from the truth is ``E x
{F(x'delta) - tau}`` with ``F(u) = sigmoid(logit tau + 2 u)``. Where ``delta`` is Gaussian with mean ``mean`` and
covariance ``swing``, ``x'delta`` given x is Gaussian too: three Gauss-Hermite nodes for it, evenly spread covariates
for x. The points are mirrored and whitened, so that all moments up to the third are exactly those of the uniform
distribution, and with them the Hessian and the first-order curvature bias.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.special import expit

from sottovoce.core.arrays import Floats
from sottovoce_papers.simulation.regression.covariates import evenly_spread

POINTS = 1 << 8  # before they are mirrored
NODES = ((0.0, 2.0 / 3.0), (math.sqrt(3.0), 1.0 / 6.0), (-math.sqrt(3.0), 1.0 / 6.0))


@lru_cache(maxsize=8)
def covariate_points(p: int) -> Floats:
    """Return points x = (1, z) that stand for z uniform on [-1, 1]^p.

    Examples
    --------
    >>> x = covariate_points(2)
    >>> bool(np.allclose(x.T @ x / len(x), np.diag([1.0, 1 / 3, 1 / 3]), atol=1e-14))
    True
    """
    if p == 0:
        return np.ones((2, 1))
    z = 2.0 * evenly_spread(POINTS, p) - 1.0
    z = np.concatenate([z, -z])
    z = z @ np.linalg.inv(np.linalg.cholesky(3.0 * z.T @ z / len(z))).T
    return np.column_stack([np.ones(len(z)), z])


def field(tau: float, x: Floats, mean: Floats, swing: Floats) -> tuple[Floats, Floats]:
    """Return the mean score and its slope.

    Parameters
    ----------
    tau
        The level.
    x
        Points for the covariates.
    mean, swing
        Mean and covariance of the distance from the truth.

    Returns
    -------
    The mean score (d,) and its derivative by the mean (d, d), which is symmetric.

    Examples
    --------
    >>> score, slope = field(0.75, covariate_points(1), np.zeros(2), np.zeros((2, 2)))
    >>> np.abs(score).tolist(), slope.diagonal().round(9).tolist()
    ([0.0, 0.0], [0.375, 0.125])
    """
    at, spread = x @ mean, np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", x, swing, x, optimize=True), 0.0))
    logit = math.log(tau / (1.0 - tau))
    below, density = np.zeros(len(x)), np.zeros(len(x))
    for node, weight in NODES:
        chance = expit(logit + 2.0 * (at + node * spread))
        below += weight * chance
        density += weight * 2.0 * chance * (1.0 - chance)
    return x.T @ (below - tau) / len(x), (x.T * density) @ x / len(x)

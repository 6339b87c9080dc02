"""What a table says in the open: the exact fit, its standard errors, and those that the private channel could reach.

The exact fit is the linear program of quantile regression, solved by HiGHS. Of a large table only the rows near the fit
enter it one by one (Portnoy and Koenker, Statistical Science 1997); that the others lie on the side that was supposed
is checked, which proves the optimum. Densities at the fit are Powell's kernel estimate with the Hall-Sheather width.
"""

import math

import numpy as np
from scipy.optimize import linprog
from scipy.stats import norm

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce.protocol.regression.blocks import RegressionChannel
from sottovoce.server.regression.omega import covariates, omega_at
from sottovoce_papers.simulation.regression.exact_fit import exact_fit

NEAR = 8_000  # rows that enter one by one, at first


def program(x: Floats, y: Floats, weights: Floats, tau: float) -> Floats:
    """Solve the linear program of a weighted quantile regression by its dual.

    >>> x = np.column_stack([np.ones(5), [0.0, 1, 2, 3, 4]])
    >>> program(x, np.array([1.0, 3, 5, 7, 90]), np.ones(5), 0.5).round(6).tolist()
    [1.0, 2.0]
    """
    solved = linprog(-y, A_eq=x.T, b_eq=(1 - tau) * x.T @ weights, bounds=np.column_stack([0 * weights, weights]))
    if solved.status:
        raise BadInput(f"the linear program was not solved: {solved.message}")
    return np.asarray(-solved.eqlin.marginals)


def exact(x: Floats, y: Floats, weights: Floats, tau: float) -> Floats:
    """Return the coefficients of the exact fit; x has its column of ones.

    >>> from sottovoce.sim import dice
    >>> draw = dice(1).generator()
    >>> x = np.column_stack([np.ones(20_000), draw.uniform(-1, 1, 20_000)])
    >>> y, weights = x @ [3.0, 1.0] + draw.standard_exponential(20_000), draw.integers(1, 4, 20_000) / 3
    >>> bool(np.allclose(exact(x, y, weights, 0.8), program(x, y, weights, 0.8), atol=1e-9))
    True
    """
    near = NEAR
    beta = exact_fit(x[:, 1:], y, tau)
    while near < len(y):
        away = y - x @ beta
        order = np.argsort(np.abs(away))
        inside, beyond = order[:near], order[near:]
        above, below = (beyond[away[beyond] > 0], beyond[away[beyond] < 0])
        # rows surely above, or below, count by their sum alone: as one row far enough up, or down
        far = 1e3 * (np.abs(y).max() + np.abs(x @ beta).max())
        sums = [weights[side] @ x[side] for side in (above, below)]
        rows = np.concatenate([x[inside], *(total[None] for total in sums)])
        values = np.concatenate([y[inside], [far * len(above) + 1, -far * len(below) - 1]])
        beta = program(rows, values, np.concatenate([weights[inside], [1.0, 1.0]]), tau)
        again = y - x @ beta
        if (again[above] > 0).all() and (again[below] < 0).all():
            return beta
        near *= 2
    return program(x, y, weights, tau)


def hessian(x: Floats, y: Floats, weights: Floats, beta: Floats, tau: float) -> Floats:
    """Return Powell's estimate of E f(0 given x) x x', at the Hall-Sheather width."""
    away, people = y - x @ beta, float(weights.sum())
    z = norm.ppf(tau)
    width = people ** (-1 / 3) * norm.ppf(0.975) ** (2 / 3) * (1.5 * norm.pdf(z) ** 2 / (2 * z**2 + 1)) ** (1 / 3)
    width = min(width, 0.9 * min(tau, 1 - tau))
    spread = min(float(np.std(away)), float(np.subtract(*np.quantile(away, [0.75, 0.25]))) / 1.34)
    band = spread * (norm.ppf(tau + width) - norm.ppf(tau - width))
    kernel = 0.75 * np.clip(1 - (away / band) ** 2, 0, None) / band  # Epanechnikov
    return np.asarray((x.T * (kernel * weights)) @ x / people)


def open_covariance(x: Floats, weights: Floats, slope: Floats, tau: float) -> Floats:
    """Return the covariance of the exact fit, by people who are drawn at random."""
    inverse, people = np.linalg.inv(slope), float(weights.sum())
    return np.asarray(tau * (1 - tau) * inverse @ ((x.T * weights) @ x / people) @ inverse / people)


def oracle_covariance(x: Floats, weights: Floats, slope: Floats, channel: RegressionChannel) -> Floats:
    """Return the least covariance of a fit by this channel: all people ask for it, and the slope is known."""
    people, inverse = float(weights.sum()), np.linalg.inv(slope)
    moments = (x.T * weights) @ x / people
    known = covariates(x.shape[1] - 1, moments[1:, 1:], moments[0, 1:])
    return np.asarray(inverse @ omega_at(channel, known) @ inverse / people)


def errors(covariance: Floats, to_raw: Floats) -> Floats:
    """Return the standard errors of raw coefficients from the covariance of scaled ones."""
    found = np.sqrt(np.diag(to_raw @ covariance @ to_raw.T))
    if not all(map(math.isfinite, found)):
        raise BadInput("the rows do not determine the coefficients: leave a column out")
    return np.asarray(found)

r"""Errors of the averaged recursion after many reports, without simulation: E |N(shift, H^-1 Omega H^-1 / n)|.

The mean length of a normal vector with variances v_j and means b_j is one integral,

    E sqrt(Q) = 1 / (2 sqrt(pi)) int_0^inf (1 - L(t)) t^(-3/2) dt,   L(t) = prod_j exp(-t b_j^2 / w_j) / sqrt(w_j),

with ``w_j = 1 + 2 t v_j``: L is the Laplace transform of Q, the squared length.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.integrate import trapezoid

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.blocks import RegressionChannel
from sottovoce.server.regression.design import choose, parse
from sottovoce.server.regression.omega import omega
from sottovoce_papers.simulation.regression.cell import printed
from sottovoce_papers.simulation.regression.geometry import diameter

NODES = 4001  # of the integral, evenly over log t; relative error below 1e-9
REACH = 40.0  # of log t, both ways about the scale of Q


class Length(NamedTuple):
    """Mean and standard deviation of a random vector's length."""

    mean: float
    spread: float


def length(variances: Floats, shift: Floats | None = None) -> Length:
    """Return mean and standard deviation of the length of a normal vector with independent entries.

    Parameters
    ----------
    variances
        Of its entries.
    shift
        Their means; None: zero.

    Examples
    --------
    >>> round(length(np.array([1.0])).mean, 6), round(math.sqrt(2 / math.pi), 6)
    (0.797885, 0.797885)
    """
    squares = np.zeros_like(variances) if shift is None else shift**2
    total = float(variances.sum() + squares.sum())
    if total == 0.0:
        return Length(0.0, 0.0)
    at = np.linspace(-REACH, REACH, NODES)
    t = np.exp(at) / total
    wider = 2.0 * t[:, None] * variances
    rest = -np.expm1(-(t[:, None] * squares / (1.0 + wider) + 0.5 * np.log1p(wider)).sum(axis=1))
    # The trapezoidal rule in log t, dt t^(-3/2) = t^(-1/2) d log t; beyond its ends 1 - L is t E Q, or 1.
    middle = float(trapezoid(rest / np.sqrt(t), at))
    ends = 2.0 * total * math.sqrt(float(t[0])) + 2.0 / math.sqrt(float(t[-1]))
    mean = (middle + ends) / (2.0 * math.sqrt(math.pi))
    return Length(mean, math.sqrt(max(total - mean**2, 0.0)))


def inverse_hessian(tau: float, p: int) -> Floats:
    """Return the diagonal of H^-1 in the paper's design: density 2 tau (1 - tau), uniform covariates."""
    return np.array([1.0, *[3.0] * p]) / (2 * tau * (1 - tau))


def error(tau: float, channel: RegressionChannel, n: float) -> Length:
    """Return the length of the error after n reports of an unbiased channel in the paper's design.

    Examples
    --------
    >>> from sottovoce.protocol.regression.blocks import open_channel
    >>> round(1e4 * error(0.5, open_channel(0.5, 2), 3e8).mean, 2)
    1.39
    """
    return length(np.diag(omega(channel)) * inverse_hessian(tau, channel.p) ** 2 / n)


def printed_channel(tau: float, p: int, epsilon: float) -> RegressionChannel:
    """Return the channel of Table 2, or exact scores where epsilon is infinite."""
    cell = printed(tau, p, epsilon)
    return parse(f"cq:{cell.q},{cell.s}" if cell.private else "open", tau, p, epsilon).channel


def chosen_channel(tau: float, p: int, epsilon: float) -> RegressionChannel:
    """Return the channel of the default."""
    return choose(tau, p, epsilon).channel


def laplace_error(tau: float, p: int, epsilon: float, n: float) -> Length:
    """Return the length of the error after n direct Laplace releases (5) in the paper's design.

    Examples
    --------
    >>> round(laplace_error(0.5, 2, 2.0, 3e8).mean, 6)
    0.000971
    """
    exact = tau * (1 - tau) * np.array([1.0, *[1 / 3] * p])
    return length((exact + 2 * (diameter(tau, p) / epsilon) ** 2) * inverse_hessian(tau, p) ** 2 / n)

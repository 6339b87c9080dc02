r"""What the curvature of the distribution function costs the paper's intervals, in closed form.

A recursion with steps `eta_i` swings around the truth with a covariance `C_i` that solves `H C_i + C_i H = eta_i
Omega`, so that `E (x' swing)^2 = eta_i tr(Omega) / (2 f)` where `H = f E x x'`. Where the distribution function is
curved, this shifts the mean score, and with symmetric covariates the whole shift falls on the intercept:

    E(intercept_i) - truth = curvature eta_i tr(Omega) / (2 f),    curvature = -F''/(2 f) at the quantile,
    bias / sd = curvature tr(Omega) / (2 sqrt(Omega_00)) mean(eta) sqrt(n),

with `sd = sqrt(Omega_00 / n) / f`, so that `f` cancels. Logistic noise of scale 1/2, the paper's, has `curvature = 2
tau - 1`; scale `s` has `(2 tau - 1) / (2 s)`; symmetric noise at the median has none. Steps that fall like `i^-0.65`
let the ratio fall like `n^-0.15` only. A bias that all groups share is not seen by their spread, so their pivots become
noncentral. The formula is of first order, and slightly optimistic.
"""

import math

import numpy as np

from sottovoce.core.errors import BadInput
from sottovoce.inference.common.groups import student_value
from sottovoce.inference.regression.region import confident
from sottovoce.inference.self_normalised.critical_values import critical_value

TOLERANCE = 0.02  # of the level, chosen by hand: less is not worth a warning


def average_step(scale: float, start: float, stop: float, power: float = 0.65, offset: float = 300.0) -> float:
    """Return the mean of the steps `scale / (i^power + offset)` over the people after `start`, up to `stop`.

    Power and offset are by default the paper's.

    >>> round(average_step(1.0, 0, 2), 6) == round((1 / 301 + 1 / (2**0.65 + 300)) / 2, 6)
    True
    """
    if not 0.0 <= start < stop:
        raise BadInput(f"steps {start} to {stop} are no segment of the stream: it starts at 0 and ends later.")
    # Midpoints of single people, then Gauss-Legendre in a variable that is even-handed from 1 to 3e8.
    x, weights = np.polynomial.legendre.leggauss(200)
    low, high = math.log(start + 1000.5), math.log(stop + 1000.5)
    time = np.exp(low + (high - low) * (x + 1.0) / 2.0)
    i = np.maximum(time - 1000.0, 0.0)
    return float(np.sum(weights * time * scale / (i**power + offset))) * (high - low) / 2.0 / (stop - start)


def expected_bias_ratio(
    tau: float, trace: float, intercept: float, mean_step: float, n: int, curvature: float | None = None
) -> float:
    """Return the bias of the intercept in units of its standard error.

    Positive where the intercept comes out too large. ``trace`` is that of Omega, the covariance of a decoded gradient,
    and ``intercept`` its entry of the intercept. ``mean_step`` is over the whole stream (self-normalised), one group's,
    or along a tree; ``n`` counts all people. ``curvature`` is -F''/(2 f) at the quantile; None for the paper's logistic
    noise, 2 tau - 1.

    >>> round(expected_bias_ratio(0.75, 0.6875, 0.1875, average_step(2.222, 0, 10**6), 10**6), 3)
    0.238
    >>> expected_bias_ratio(0.5, 0.6875, 0.1875, 0.001, 10**6)
    0.0
    """
    if not 0.0 < tau < 1.0:
        raise BadInput(f"tau is {tau}, but a quantile level lies strictly between 0 and 1.")
    if not (0.0 < intercept <= trace and mean_step > 0.0 and n > 0):
        raise BadInput("trace, intercept, mean_step and n must be positive, and intercept a part of trace.")
    factor = 2.0 * tau - 1.0 if curvature is None else curvature
    return factor * trace / (2.0 * math.sqrt(intercept)) * mean_step * math.sqrt(n)


def self_normalised_coverage(bias_ratio: float, level: float) -> float:
    """Return the coverage of a self-normalised interval whose centre is off by `bias_ratio` standard errors.

    The bias is taken as settled.

    >>> round(self_normalised_coverage(0.0, 0.95), 6), round(self_normalised_coverage(1.0, 0.95), 3)
    (0.95, 0.867)
    """
    v = critical_value(confident(level))
    # Gil-Pelaez for (Z + bias)^2 - v^2 int b^2, with t = u^2; the transform of int b^2 falls like exp(-v u / 2).
    x, weights = np.polynomial.legendre.leggauss(400)
    end = 90.0 / v
    u = end * (x + 1.0) / 2.0
    t = u**2
    a = v * u * (1.0 + 1.0j)
    # sqrt(a / sinh a) written so that the root stays on one branch.
    bridge = np.sqrt(2.0 * a / (1.0 - np.exp(-2.0 * a))) * np.exp(-a / 2.0)
    square = np.exp(1.0j * t * bias_ratio**2 / (1.0 - 2.0j * t)) / np.sqrt(1.0 - 2.0j * t)
    beyond = 0.5 + float(np.sum(weights * (square * bridge).imag / u)) * end / math.pi
    return min(max(1.0 - beyond, 0.0), 1.0)


def group_coverage(bias_ratio: float, groups: int, level: float) -> float:
    """Return the coverage of a group's or a tree's interval whose centre is off by `bias_ratio` standard errors.

    ``groups`` counts groups, or leaves.

    >>> round(group_coverage(0.0, 13, 0.95), 6), round(group_coverage(1.0, 13, 0.95), 3)
    (0.95, 0.848)
    """
    from scipy.special import nctdtr

    value = student_value(confident(level), groups - 1)
    # The distribution is noncentral in the size of the bias: taken positive, the lower tail is the small one.
    size = abs(bias_ratio)
    return float(nctdtr(groups - 1, size, value) - nctdtr(groups - 1, size, -value))

r"""Where the recursion with face-exponential releases goes, and how it varies there, without simulation.

Its mean field is E Z, not E g. With Z_s(x) the mean report of a person with covariates x on the side s of the fit, and
F the share of people below it, the field is ``E_x [Z_0 + (Z_1 - Z_0) F]``. In the paper's design the intercept alone is
shifted, F is the same for every x, and with ``J = f E_x (Z_1 - Z_0) x'`` the average is normal about that root with
covariance ``J^-1 (E ZZ') J^-1 / n``, all of it diagonal. Where no F balances the faces the intercept ends at the
projection's boundary; nobody is left above the fit, J is 0, and each slope keeps what its random walk has gathered,
``scale^2 E Z_j^2 sum_i (i^.65 + 300)^-2``. So the errors at the boundary tell the constant of the step, which the paper
does not print: ``10 / sqrt(d)`` gives all of them.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from sottovoce.core.arrays import Floats
from sottovoce_papers.simulation.regression.asymptotic import Length, length
from sottovoce_papers.simulation.regression.cell import REACH, alternating
from sottovoce_papers.simulation.regression.covariates import evenly_spread
from sottovoce_papers.simulation.regression.geometry import diameter
from sottovoce_papers.simulation.regression.walk import EXPONENT, OFFSET

POINTS = 1 << 14  # over which covariates are averaged


class Sides(NamedTuple):
    """What a person's report does, by the side of the fit the person is on (2,): above it first, then below."""

    upper: Floats  # chance of the upper face
    slopes: Floats  # E Z_1 z_1
    squares: Floats  # E Z_1^2


class Root(NamedTuple):
    """Where the recursion ends: the intercept's shift, variances of n = 1 about it, whether the boundary stopped it."""

    shift: float
    variances: Floats
    stopped: bool


def root(tau: float, p: int, epsilon: float, *, normalised: bool = True) -> Root:
    """Return the root of the recursion in the paper's design and the variances about it.

    Parameters
    ----------
    tau, p, epsilon
        The cell.
    normalised
        Whether each face's base measure has mass one, as the print needs, or its volume, as (6) says.

    Examples
    --------
    >>> found = root(0.75, 2, 8.0)
    >>> round(found.shift, 3), found.stopped
    (0.205, False)
    """
    sides = _sides(tau, p, epsilon / (2.0 * diameter(tau, p)), normalised)
    share = float((tau - sides.upper[0]) / (sides.upper[1] - sides.upper[0]))  # of people below the fit
    if not 0.0 < share < 1.0:
        below = float(share >= 1.0)
        ends = sides.squares[int(below)] * wander()
        edge = REACH if below else -REACH
        return Root(edge - float(alternating(p)[0]), np.array([0.0, *[ends] * p]), True)
    shift = float(special.logit(share) - special.logit(tau)) / 2.0
    density = 2.0 * share * (1.0 - share)
    mixed = np.array([1.0 - share, share])
    # The intercept's report is 1 - tau or -tau, on average 0: its variance is tau (1 - tau).
    noise = np.array([tau * (1.0 - tau), *[float(mixed @ sides.squares)] * p])
    slope = np.array([sides.upper[1] - sides.upper[0], *[sides.slopes[1] - sides.slopes[0]] * p])
    return Root(shift, noise / (density * slope) ** 2, False)


def step_scale(p: int) -> float:
    """Return the constant of the step that the printed errors at the boundary tell."""
    return 10.0 / math.sqrt(p + 1)


def error(
    tau: float, p: int, epsilon: float, n: float, scale: float | None = None, *, normalised: bool = True
) -> Length:
    """Return the length of the error after n reports in the paper's design.

    Parameters
    ----------
    tau, p, epsilon
        The cell.
    n
        How many reports, many enough to have arrived.
    scale
        The constant of the step, which matters only at the boundary; None: `step_scale`.
    normalised
        Which base measure.

    Examples
    --------
    >>> round(error(0.5, 2, 2.0, 3e8).mean, 5), round(error(0.75, 2, 2.0, 3e8).mean, 2)
    (0.00192, 9.83)
    """
    step_size = step_scale(p) if scale is None else scale
    found = root(tau, p, epsilon, normalised=normalised)
    shift = np.zeros(p + 1)
    shift[0] = found.shift
    if not found.stopped:
        return length(found.variances / n, shift)
    shift[1:] = -alternating(p)[1:]
    return length(found.variances * step_size**2, shift)


def wander() -> float:
    """Return the sum of (i^.65 + 300)^-2 over all steps, by the integral that it is within 1e-4."""
    a = 1.0 / EXPONENT
    return float(a * OFFSET ** (a - 2.0) * special.beta(a, 2.0 - a))


def _sides(tau: float, p: int, rate: float, normalised: bool) -> Sides:
    """Average over the covariates; both faces' slopes are truncated Laplace about the score, rate as given."""
    z = 2.0 * evenly_spread(POINTS, p) - 1.0 if p else np.zeros((1, 0))
    found = []
    for score in (-tau, 1.0 - tau):
        log_odds = np.full(len(z), -rate * (abs(1.0 - tau - score) - abs(-tau - score)))
        firsts, seconds = [], []
        for face in (-tau, 1.0 - tau):
            sign = 1.0 if face > 0 else -1.0
            mass, first, second = truncated(score * z, abs(face), rate)
            log_odds += sign * (np.log(mass) - (math.log(2 * abs(face)) if normalised else 0.0)).sum(axis=1)
            firsts.append((first * z).mean(axis=1) if p else np.zeros(1))
            seconds.append(second.mean(axis=1) if p else np.zeros(1))
        upper = special.expit(log_odds)
        found.append(
            (
                upper.mean(),
                ((1 - upper) * firsts[0] + upper * firsts[1]).mean(),
                ((1 - upper) * seconds[0] + upper * seconds[1]).mean(),
            )
        )
    return Sides(*np.array(found).T)


def truncated(centre: Floats, end: float, rate: float) -> tuple[Floats, Floats, Floats]:
    """Return mass, mean and second moment of exp(-rate |v - centre|) over v in [-end, end].

    Examples
    --------
    >>> [round(float(x), 6) for x in truncated(np.zeros(1), 1.0, 1e-9)[0]]
    [2.0]
    """
    # About the centre: on either side an exponential over a stretch, which may lie beside the centre.
    mass, first, second = np.zeros_like(centre), np.zeros_like(centre), np.zeros_like(centre)
    for sign in (1.0, -1.0):
        near = np.maximum(-end - sign * centre, 0.0)
        far = np.maximum(end - sign * centre, 0.0)
        parts = [_partial(far, rate, k) - _partial(near, rate, k) for k in range(3)]
        mass += parts[0]
        first += sign * parts[1]
        second += parts[2]
    mean = centre + first / mass
    return mass, mean, (second + 2.0 * centre * first) / mass + centre**2


def _partial(reach: Floats, rate: float, power: int) -> Floats:
    """Return the integral of v^power exp(-rate v) over v from 0 to ``reach``."""
    scaled = rate * reach
    return np.asarray(special.gammainc(power + 1, scaled) * math.factorial(power) / rate ** (power + 1))

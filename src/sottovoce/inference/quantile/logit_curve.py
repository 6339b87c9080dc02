"""A smooth distribution function fitted to noisy values at a few points, for its root and the error of the root.

The logit of the function is ``logit(target) + y(x)``, where ``y`` grows like ``slope (x - root)`` and may be curved by
a tilt (`inference.quantile.inversion`). Logits of common distributions are nearly straight, in tails too, so that three
numbers (root, slope, curvature) use every answer; a polynomial (`inference.quantile.inversion`) assumes less and needs
more records. A value's variance is ``ceiling - (F - 1/2)^2 drop``: for one site of rate ``r``, ``1 / (4 r^2 n)`` and
``1 / n``, those of a binomial count. The fit maximises that likelihood with weak normal priors, by Fisher's scoring.
What the curve leaves out far from its middle is allowed for as noise (`allowed`), the rest is met by Birge's ratio.

The interval is that of the signed root of the likelihood ratio, ``sqrt(2 (loss at a supposed root - least loss))``, for
the best slope and curvature at that root: it is longer on the side where the curve is flatter, as the law of the
estimate is, so that both one-sided tests hold their size. For those who need an error and its degrees of freedom there
is `measure`: the inverse information, and ``1 / (2 var(log slope))``.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.kernels import njit
from sottovoce.inference.common.measured import SiteEstimate
from sottovoce.inference.quantile.inversion import through

STEPS = 80  # of the scoring at most, chosen by hand; it stops when a step gains less than 1e-10
LIMIT = 2.0  # of one step, in logits
NUDGE = 1e-4  # of the curvature, for its derivative
FULL = 1e-9  # probabilities stay this far from 0 and 1
FLAT, FAR = 30.0, 1e6  # logits beyond which the function is flat, and at which a point is as good as at infinity
CLOSE = 1e-8  # how exactly an edge is found
LEFT_OUT = 0.6  # logits by which the curve may be off at one logit from its middle and beyond; nearer, the cube of it


class Prior(NamedTuple):
    """What is believed before: normal distributions of the root, the log of the slope, and the curvature in logits."""

    root: float
    root_sd: float
    log_slope: float
    log_slope_sd: float
    curvature_sd: float


class Readings(NamedTuple):
    """Values at points, with the parts of their variances, and the level at which the root lies."""

    points: Floats
    values: Floats
    ceilings: Floats
    drops: Floats
    target: float


class LogitCurve(NamedTuple):
    """A fitted curve: parameters, covariance of root, log slope and curvature, Pearson's chi-square, and the loss."""

    root: float
    log_slope: float
    curvature: float
    covariance: Floats
    misfit: float
    loss: float

    @property
    def slope(self) -> float:
        """Return the slope of the logit at the root."""
        return math.exp(self.log_slope)


def fit(answers: Readings, prior: Prior, curved: bool, held: LogitCurve | None = None) -> LogitCurve:
    """Fit a curve; without ``curved`` the logit is straight. A value without variance is left out.

    With ``held``, start from that curve and keep its root.

    >>> points = np.array([-1.0, 1.0])
    >>> level = Prior(0.0, 4.0, 0.0, 2.0, 0.7)
    >>> answers = Readings(points, 1 / (1 + np.exp(-points)), np.full(2, 1e-6), np.full(2, 2e-6), 0.5)
    >>> seen = fit(answers, level, False)
    >>> abs(seen.root) < 1e-9, round(seen.slope, 3)
    (True, 1.0)
    """
    start = (prior.root, prior.log_slope, 0.0) if held is None else held[:3]
    heard, logit = answers.ceilings > 0, math.log(answers.target / (1 - answers.target))
    points, values, ceilings, drops = (part[heard] for part in answers[:4])
    data = (points, values, ceilings, drops, logit, np.array(prior), np.array(start))
    return LogitCurve(*_fit(*data, curved, held is not None))


def allowed(answers: Readings, middle: float, slope: float) -> Readings:
    """Count what the curve may leave out as noise: as if fewer had answered, the further off the middle the fewer.

    The middle and the slope are those the last question was asked with, not those it found: an allowance around the
    estimate would forget the answers that contradict it.
    """
    off = np.minimum(np.abs(slope * (answers.points - middle)), 1.0) ** 3
    error = LEFT_OUT * answers.target * (1 - answers.target) * off
    variances = answers.ceilings - answers.drops * (answers.target - 0.5) ** 2
    factor = 1 + error**2 / np.where(variances > 0, variances, 1.0)
    return answers._replace(ceilings=answers.ceilings * factor, drops=answers.drops * factor)


def measure(curve: LogitCurve, number: int) -> SiteEstimate:
    """Return root, error and degrees of freedom of a curve fitted to a number of values."""
    error = math.sqrt(float(curve.covariance[0, 0])) * _birge(curve, number)
    return SiteEstimate(curve.root, error, max(1.0, 1 / (2 * float(curve.covariance[1, 1]))))


def evidence(answers: Readings, prior: Prior, curve: LogitCurve, value: float) -> float:
    """Return the signed root of the likelihood ratio of a supposed root, in units of Birge's ratio."""
    held = fit(answers, prior, True, curve._replace(root=value))
    root = math.sqrt(max(2 * (held.loss - curve.loss), 0.0)) / _birge(curve, len(answers.points))
    return math.copysign(root, value - curve.root)


def invert(answers: Readings, prior: Prior, curve: LogitCurve, z: float) -> tuple[float, float]:
    """Return the roots on both sides of the curve's at which the evidence reaches ``z``."""

    def excess(off: float) -> float:
        return abs(evidence(answers, prior, curve, curve.root + off)) - z

    step = z * math.sqrt(float(curve.covariance[0, 0]))
    return curve.root + _edge(excess, -step), curve.root + _edge(excess, step)


def _edge(excess: Callable[[float], float], step: float) -> float:
    """Return where an excess, negative at zero and nearly linear, vanishes in the direction of a step (Illinois).

    It does so somewhere, for the prior of the root is against all that is far.
    """
    inner, outer, below, above = 0.0, step, excess(0.0), excess(step)
    while above < 0:
        inner, below, outer = outer, above, 1.5 * outer
        above = excess(outer)
    middle, here = outer, above
    for _ in range(200):
        if abs(here) <= CLOSE or abs(outer - inner) <= CLOSE * abs(outer):
            break
        middle = (inner * above - outer * below) / (above - below)
        here = excess(middle)
        if here < 0:
            inner, below, above = middle, here, above / 2
        else:
            outer, above, below = middle, here, below / 2
    return middle


def _birge(curve: LogitCurve, number: int) -> float:
    """Return Birge's ratio of a curve fitted to a number of values."""
    return math.sqrt(max(1.0, curve.misfit / max(number - 2, 1)))


def expected(curve: LogitCurve, points: Floats, target: float) -> Floats:
    """Return the fitted function at points."""
    logit = math.log(target / (1 - target))
    return np.array([_at(x, curve.root, curve.log_slope, curve.curvature, logit)[0] for x in points])


@njit(cache=True)
def _at(x, root, log_slope, curvature, logit):  # type: ignore[no-untyped-def]
    """Return the function at x and its derivatives by root, log slope and curvature."""
    slope = math.exp(log_slope)
    u = min(max(slope * (x - root), -FAR), FAR)
    steep = math.exp(min(max(2 * curvature * u, -3.0), 3.0))
    at = logit + through(u, 0.0, 2 * curvature)
    if abs(at) > FLAT:
        return 1 / (1 + math.exp(-math.copysign(FLAT, at))), 0.0, 0.0, 0.0
    more, less = through(u, 0.0, 2 * (curvature + NUDGE)), through(u, 0.0, 2 * (curvature - NUDGE))
    value = 1 / (1 + math.exp(-at))
    density = value * (1 - value)
    return value, -density * slope * steep, density * u * steep, density * (more - less) / (2 * NUDGE)


@njit(cache=True)
def _loss(points, values, ceilings, drops, logit, root, log_slope, curvature, prior):  # type: ignore[no-untyped-def]
    """Return the negative log likelihood of equivalent binomial counts, with the priors."""
    total = 0.5 * (
        ((root - prior[0]) / prior[1]) ** 2 + ((log_slope - prior[2]) / prior[3]) ** 2 + (curvature / prior[4]) ** 2
    )
    for i in range(len(points)):
        rate = math.sqrt(drops[i] / ceilings[i]) / 2
        model = (1 - rate) / 2 + rate * _at(points[i], root, log_slope, curvature, logit)[0]
        model = min(max(model, FULL), 1 - FULL)
        seen = min(max((1 - rate) / 2 + rate * values[i], 0.0), 1.0)
        total -= (seen * math.log(model) + (1 - seen) * math.log(1 - model)) / drops[i]
    return total


@njit(cache=True)
def _learn(factor, by, variance):  # type: ignore[no-untyped-def]
    """Update the square root of a covariance by one value, in place (Potter): no variance can become negative."""
    seen, moved, total = np.zeros(3), np.zeros(3), variance
    for k in range(3):
        for j in range(3):
            seen[k] += factor[j, k] * by[j]
        total += seen[k] ** 2
    for k in range(3):
        for j in range(3):
            moved[k] += factor[k, j] * seen[j]
    gain = 1 / (total + math.sqrt(total * variance))
    for k in range(3):
        for j in range(3):
            factor[k, j] -= gain * moved[k] * seen[j]


@njit(cache=True)
def _square(factor):  # type: ignore[no-untyped-def]
    """Return the covariance of which this is the square root."""
    square = np.zeros((3, 3))
    for k in range(3):
        for j in range(3):
            for i in range(3):
                square[k, j] += factor[k, i] * factor[j, i]
    return square


@njit(cache=True)
def _fit(points, values, ceilings, drops, logit, prior, start, curved, held):  # type: ignore[no-untyped-def]
    """Step by Fisher's scoring, halving a step that does not help; with ``held`` the root stays where it starts."""
    root, log_slope, curvature = start
    factor, covariance, gradient, by = np.zeros((3, 3)), np.zeros((3, 3)), np.zeros(3), np.zeros(3)
    loss = _loss(points, values, ceilings, drops, logit, root, log_slope, curvature, prior)
    for _ in range(STEPS):
        # The prior first, then one value after the other: the information is built up as a square root.
        factor[:] = 0.0
        for k, off, sd in (
            (0, root - prior[0], prior[1]),
            (1, log_slope - prior[2], prior[3]),
            (2, curvature, prior[4]),
        ):
            factor[k, k], gradient[k] = sd, off / sd**2
        for i in range(len(points)):
            value, by[0], by[1], by[2] = _at(points[i], root, log_slope, curvature, logit)
            # By the fitted value, not the seen one: a value at 0 or 1 by chance would weigh without limit.
            variance = max(ceilings[i] - drops[i] * (value - 0.5) ** 2, 1e-6 * ceilings[i])
            if not curved:
                by[2] = 0.0
            if held:
                by[0] = 0.0
            for k in range(3):
                gradient[k] -= (values[i] - value) * by[k] / variance
            _learn(factor, by, variance)
        if held:
            gradient[0] = 0.0
        covariance = _square(factor)
        step = covariance @ gradient
        largest = max(abs(step[0]) * math.exp(log_slope), abs(step[1]), abs(step[2]))
        # Far from the root the curve is flat and a full step would leave it for good.
        part, gained = min(1.0, LIMIT / max(largest, 1e-300)), 0.0
        for _ in range(25):
            there = (
                root - part * step[0],
                min(max(log_slope - part * step[1], -60.0), 60.0),
                curvature - part * step[2],
            )
            after = _loss(points, values, ceilings, drops, logit, there[0], there[1], there[2], prior)
            if after <= loss:
                root, log_slope, curvature = there
                gained, loss = loss - after, after
                break
            part /= 2
        if gained < 1e-10:
            break
    misfit = 0.0
    for i in range(len(points)):
        value = _at(points[i], root, log_slope, curvature, logit)[0]
        misfit += (values[i] - value) ** 2 / max(ceilings[i] - drops[i] * (value - 0.5) ** 2, 1e-6 * ceilings[i])
    return root, log_slope, curvature, covariance, misfit, loss

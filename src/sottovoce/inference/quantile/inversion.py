"""An interval for a root by inverting a test, from stages of noisy values at a few points each.

Stage ``i`` saw an increasing function minus its target at points ``x_j``. ``L_i(q)`` is the Lagrange polynomial through
these values, in a coordinate that straightens the function; ``V_i(q)`` is its variance plus the square of an allowance
for what the polynomial leaves out. With ``T(q) = sum L_i / V_i`` and ``J(q) = sum 1 / V_i``, the estimate is the root
of ``T`` and the interval is ``{q: |T(q)| <= z sqrt(J(q))}``, connected to the estimate. The weights depend on the
design alone, so ``T`` at the true root is a sum of martingale differences of variance ``J``: no slope is estimated, and
noise in the slope is absorbed.

*Groups.* Where some sites were absent from some stages, the function is a sum ``sum_g p_g F_g`` over groups of sites
that were in the same stages. Each group has a curve of its own, ``T_g / J_g`` over the stages it was in, and the sum of
the curves with variance ``sum p_g^2 / J_g`` is tested. Where all groups weigh the stages alike that is the test above.
Where they do not, what the polynomials of single groups leave out no longer cancels as it does in the sum: the
allowances, times the differences of the weights, count as a further error.

*The tilt* of a coordinate: around ``origin`` the density is taken to change like ``exp(curvature (x - origin))``; ``y =
(exp(curvature (x - origin)) - 1) / curvature`` then grows as the distribution function does. Beyond three units of the
exponent both directions go on in a straight line, so that every ``x`` has a ``y`` and back. ``curvature = 0`` changes
nothing but the origin.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.kernels import njit

FURTHEST = 24.0  # reaches from the estimate within which an edge is looked for

STRAIGHT = 3.0  # units of the exponent; chosen by hand
APART = 3.0  # what polynomials of single groups leave out, over what that of the sum does
UNKNOWN = 1.0  # variance of a group that was in no stage: its value, minus the target, is off by one at most


class Stage(NamedTuple):
    """One stage, in its tilted coordinate.

    ``places`` are the coordinates of its points, ``values`` what was seen there minus the target; ``allowance`` is the
    part that the polynomial may leave out, for every ``spacing`` by which a value is off all places. With ``shares``
    there is a row of values and variances a group; the variances of a group that was absent are infinite.
    """

    places: Floats
    values: Floats
    variances: Floats
    allowance: float
    spacing: float
    origin: float
    curvature: float
    shares: Floats | None = None

    @property
    def mixed(self) -> Floats:
        """Return the values of all groups together."""
        return self.values if self.shares is None else self.shares @ self.values


class Inverted(NamedTuple):
    """The estimate and the interval around it; an edge is infinite where the test never rejects."""

    point: float
    low: float
    high: float


def evidence(stages: Sequence[Stage], near: float, reach: float, value: float) -> float:
    """Return the strongest T / sqrt(J) met between the estimate and a value, signed like ``value - estimate``.

    A value lies in the connected interval at ``z`` exactly when nothing on the way to it is rejected, so this is the
    ``z`` at which it drops out.
    """
    packed = _pack(stages)
    point = float(_root(near, reach, *packed))
    return float(_strongest(point, value, reach, *packed))


def root(stages: Sequence[Stage], near: float, reach: float) -> float:
    """Return the root of T closest to ``near``, looking ``reach`` to both sides; the best end if there is none."""
    return float(_root(near, reach, *_pack(stages)))


def information(stages: Sequence[Stage], at: float) -> tuple[float, float]:
    """Return the statistic and the information of all stages at a value."""
    total, known = _test(at, *_pack(stages))
    return float(total), float(known)


def curves(stages: Sequence[Stage], at: float) -> tuple[Floats, Floats]:
    """Return the value of each group's curve, minus the target, and its variance."""
    packed = _pack(stages)
    values, variances, _ = _apart(at, *packed)
    return values, variances


def invert(stages: Sequence[Stage], near: float, reach: float, z: float) -> Inverted:
    """Return the estimate and the connected interval around it."""
    packed = _pack(stages)
    point = float(_root(near, reach, *packed))
    return Inverted(point, float(_edge(point, -reach, z, *packed)), float(_edge(point, reach, z, *packed)))


def _pack(stages: Sequence[Stage]) -> tuple[Floats, Floats, Floats, Floats, Floats, Ints]:
    """Lay the stages end to end for the kernels, a row a group; ``ends`` says where each stops."""
    extra = np.array([(stage.allowance, stage.spacing, stage.origin, stage.curvature) for stage in stages])
    ends = np.cumsum([len(stage.places) for stage in stages])
    places = np.concatenate([stage.places for stage in stages])
    values, variances = (
        np.concatenate([np.atleast_2d(getattr(stage, name)) for stage in stages], axis=1)
        for name in ("values", "variances")
    )
    shares = stages[0].shares
    return places, values, variances, np.ones(1) if shares is None else shares, extra, ends


@njit(cache=True)
def _stage(place, group, start, stop, places, values, variances):  # type: ignore[no-untyped-def]
    """Return a stage's polynomial at a place, and its variance.

    Lagrange's basis: weights depend on the points alone, so the value keeps the variances of the answers.
    """
    value, variance = 0.0, 0.0
    for j in range(start, stop):
        basis = 1.0
        for i in range(start, stop):
            if i != j:
                basis *= (place - places[i]) / (places[j] - places[i])
        value += basis * values[group, j]
        variance += basis * basis * variances[group, j]
    return value, variance


@njit(cache=True)
def _left_out(place, start, stop, places, allowance, spacing):  # type: ignore[no-untyped-def]
    """Return what the polynomial may leave out: it grows with the distance from all points, and counts as noise."""
    remainder = allowance
    for j in range(start, stop):
        remainder *= (place - places[j]) / spacing
    return remainder


@njit(cache=True)
def _test(at, places, values, variances, shares, extra, ends):  # type: ignore[no-untyped-def]
    """Return T and J at a point."""
    if len(shares) > 1:
        curve, doubt, apart = _apart(at, places, values, variances, shares, extra, ends)
        mixed, variance = 0.0, apart * apart
        for group in range(len(shares)):
            mixed += shares[group] * curve[group]
            variance += shares[group] * shares[group] * doubt[group]
        return mixed / variance, 1 / variance
    total, information = 0.0, 0.0
    only = start = np.int64(0)  # typed: the compiler makes a copy of a function for every constant
    for stage in range(len(ends)):
        place = through(at, extra[stage, 2], extra[stage, 3])
        value, variance = _stage(place, only, start, ends[stage], places, values, variances)
        remainder = _left_out(place, start, ends[stage], places, extra[stage, 0], extra[stage, 1])
        variance += remainder * remainder
        total += value / variance
        information += 1 / variance
        start = ends[stage]
    return total, information


@njit(cache=True)
def _apart(at, places, values, variances, shares, extra, ends):  # type: ignore[no-untyped-def]
    """Return each group's curve and its variance, and what may not cancel between groups."""
    groups, stages = len(shares), len(ends)
    curve, known, weights, left_out = np.zeros(groups), np.zeros(groups), np.zeros((groups, stages)), np.zeros(stages)
    start = np.int64(0)
    for stage in range(stages):
        place = through(at, extra[stage, 2], extra[stage, 3])
        left_out[stage] = _left_out(place, start, ends[stage], places, extra[stage, 0], extra[stage, 1])
        seen, noise, share = np.zeros(groups), np.zeros(groups), 0.0
        pooled = 0.0
        for group in range(groups):
            if variances[group, start] < math.inf:
                seen[group], noise[group] = _stage(place, group, start, ends[stage], places, values, variances)
                pooled += (shares[group] * shares[group]) * noise[group]
                share += shares[group]
        for group in range(groups):
            if noise[group] > 0:  # each bears its part of what the polynomial of all leaves out
                variance = noise[group] * (1 + (left_out[stage] * share) ** 2 / pooled)
                weights[group, stage] = 1 / variance
                known[group] += 1 / variance
                curve[group] += seen[group] / variance
        start = ends[stage]
    doubt, apart = np.full(groups, UNKNOWN), 0.0
    for group in range(groups):
        if known[group] > 0:
            curve[group] /= known[group]
            doubt[group] = 1 / known[group]
            for stage in range(stages):
                weights[group, stage] /= known[group]
    for stage in range(stages):
        mean = 0.0
        for group in range(groups):
            mean += shares[group] * weights[group, stage]
        for group in range(groups):
            apart += APART * abs(left_out[stage]) * shares[group] * abs(weights[group, stage] - mean)
    return curve, doubt, apart


@njit(cache=True)
def _root(near, reach, places, values, variances, shares, extra, ends):  # type: ignore[no-untyped-def]
    """Scan outward from ``near`` for the closest upward crossing of T, then bisect."""
    steps = 32
    best, smallest = near, math.inf
    below_left = below_right = _test(near, places, values, variances, shares, extra, ends)[0]
    for i in range(1, steps + 1):
        right = near + reach * i / steps
        here = _test(right, places, values, variances, shares, extra, ends)[0]
        if below_right < 0 <= here:
            return _bisect(right - reach / steps, right, 0.0, places, values, variances, shares, extra, ends)
        below_right = here
        left = near - reach * i / steps
        there = _test(left, places, values, variances, shares, extra, ends)[0]
        if there < 0 <= below_left:
            return _bisect(left, left + reach / steps, 0.0, places, values, variances, shares, extra, ends)
        below_left = there
        for at, value in ((right, here), (left, there)):
            if abs(value) < smallest:
                best, smallest = at, abs(value)
    return best


@njit(cache=True)
def _edge(point, reach, z, places, values, variances, shares, extra, ends):  # type: ignore[no-untyped-def]
    """Return where the test first rejects, going from the estimate in the direction of ``reach``."""
    side = 1.0 if reach > 0 else -1.0
    inner, step_length = point, reach / 64
    for i in range(4 * 64):
        outer = inner + step_length
        if i >= 128:  # two reaches in equal strides, then growing ones up to `FURTHEST`
            step_length *= 1.03
        total, information = _test(outer, places, values, variances, shares, extra, ends)
        if side * total > z * math.sqrt(information):
            return _bisect(
                min(inner, outer), max(inner, outer), side * z, places, values, variances, shares, extra, ends
            )
        inner = outer
    return side * math.inf


@njit(cache=True)
def _strongest(point, value, reach, places, values, variances, shares, extra, ends):  # type: ignore[no-untyped-def]
    """Walk from the estimate to a value, as far as an edge is looked for, and return the largest rejection met."""
    side = 1.0 if value >= point else -1.0
    distance = min(abs(value - point), FURTHEST * abs(reach))
    best = 0.0
    for i in range(1, 513):
        at = point + side * distance * i / 512
        total, information = _test(at, places, values, variances, shares, extra, ends)
        best = max(best, side * total / math.sqrt(information))
    return side * best


@njit(cache=True)
def _bisect(low, high, target, places, values, variances, shares, extra, ends):  # type: ignore[no-untyped-def]
    """Return where T / sqrt(J) reaches the target between two points."""
    for _ in range(60):
        middle = low + (high - low) / 2
        total, information = _test(middle, places, values, variances, shares, extra, ends)
        if total >= target * math.sqrt(information):
            high = middle
        else:
            low = middle
    return low + (high - low) / 2


@njit(cache=True)
def through(at: float, origin: float, curvature: float) -> float:
    """Return the coordinate of a value."""
    u = curvature * (at - origin)
    if abs(u) < 1e-8:
        return at - origin
    if u > STRAIGHT:
        return (math.expm1(STRAIGHT) + math.exp(STRAIGHT) * (u - STRAIGHT)) / curvature
    if u < -STRAIGHT:
        return (math.expm1(-STRAIGHT) + math.exp(-STRAIGHT) * (u + STRAIGHT)) / curvature
    return math.expm1(u) / curvature


@njit(cache=True)
def back(place: float, origin: float, curvature: float) -> float:
    """Return the value at a coordinate."""
    v = curvature * place
    if abs(v) < 1e-8:
        return origin + place
    if v > math.expm1(STRAIGHT):
        return origin + (STRAIGHT + (v - math.expm1(STRAIGHT)) / math.exp(STRAIGHT)) / curvature
    if v < math.expm1(-STRAIGHT):
        return origin + (-STRAIGHT + (v - math.expm1(-STRAIGHT)) / math.exp(-STRAIGHT)) / curvature
    return origin + math.log1p(v) / curvature

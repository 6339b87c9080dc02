"""An interval for a root by inverting a test, from stages of noisy values at a few points each.

Stage ``i`` saw an increasing function minus its target at points ``x_j``. ``L_i(q)`` is the Lagrange polynomial through
these values, in a coordinate that straightens the function; ``V_i(q)`` is its variance plus the square of an allowance
for what the polynomial leaves out. With ``T(q) = sum L_i / V_i`` and ``J(q) = sum 1 / V_i``, the estimate is the root
of ``T`` and the interval is ``{q: |T(q)| <= z sqrt(J(q))}``, connected to the estimate. The weights depend on the
design alone, so ``T`` at the true root is a sum of martingale differences of variance ``J``: no slope is estimated, and
noise in the slope is absorbed.

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


class Stage(NamedTuple):
    """One stage, in its tilted coordinate.

    ``places`` are the coordinates of its points, ``values`` what was seen there minus the target; ``allowance`` is the
    part that the polynomial may leave out, for every ``spacing`` by which a value is off all places.
    """

    places: Floats
    values: Floats
    variances: Floats
    allowance: float
    spacing: float
    origin: float
    curvature: float


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


def invert(stages: Sequence[Stage], near: float, reach: float, z: float) -> Inverted:
    """Return the estimate and the connected interval around it."""
    packed = _pack(stages)
    point = float(_root(near, reach, *packed))
    return Inverted(point, float(_edge(point, -reach, z, *packed)), float(_edge(point, reach, z, *packed)))


def _pack(stages: Sequence[Stage]) -> tuple[Floats, Floats, Floats, Floats, Ints]:
    """Lay the stages end to end for the kernels; ``ends`` says where each stops."""
    extra = np.array([(stage.allowance, stage.spacing, stage.origin, stage.curvature) for stage in stages])
    ends = np.cumsum([len(stage.places) for stage in stages])
    places, values, variances = (
        np.concatenate([getattr(stage, name) for stage in stages]) for name in ("places", "values", "variances")
    )
    return places, values, variances, extra, ends


@njit(cache=True)
def _test(at, places, values, variances, extra, ends):  # type: ignore[no-untyped-def]
    """Return T and J at a point."""
    total, information, start = 0.0, 0.0, 0
    for stage in range(len(ends)):
        allowance, spacing, origin, curvature = extra[stage]
        place = through(at, origin, curvature)
        # Lagrange's basis: weights depend on the points alone, so the value keeps the variances of the answers.
        value, variance, remainder = 0.0, 0.0, allowance
        for j in range(start, ends[stage]):
            basis = 1.0
            for i in range(start, ends[stage]):
                if i != j:
                    basis *= (place - places[i]) / (places[j] - places[i])
            value += basis * values[j]
            variance += basis * basis * variances[j]
            remainder *= (place - places[j]) / spacing
        # What the polynomial may leave out grows with the distance from all points, and counts as noise.
        variance += remainder * remainder
        total += value / variance
        information += 1 / variance
        start = ends[stage]
    return total, information


@njit(cache=True)
def _root(near, reach, places, values, variances, extra, ends):  # type: ignore[no-untyped-def]
    """Scan outward from ``near`` for the closest upward crossing of T, then bisect."""
    steps = 32
    best, smallest = near, math.inf
    below_left = below_right = _test(near, places, values, variances, extra, ends)[0]
    for i in range(1, steps + 1):
        right = near + reach * i / steps
        here = _test(right, places, values, variances, extra, ends)[0]
        if below_right < 0 <= here:
            return _bisect(right - reach / steps, right, 0.0, places, values, variances, extra, ends)
        below_right = here
        left = near - reach * i / steps
        there = _test(left, places, values, variances, extra, ends)[0]
        if there < 0 <= below_left:
            return _bisect(left, left + reach / steps, 0.0, places, values, variances, extra, ends)
        below_left = there
        for at, value in ((right, here), (left, there)):
            if abs(value) < smallest:
                best, smallest = at, abs(value)
    return best


@njit(cache=True)
def _edge(point, reach, z, places, values, variances, extra, ends):  # type: ignore[no-untyped-def]
    """Return where the test first rejects, going from the estimate in the direction of ``reach``."""
    side = 1.0 if reach > 0 else -1.0
    inner, step_length = point, reach / 64
    for i in range(4 * 64):
        outer = inner + step_length
        if i >= 128:  # two reaches in equal strides, then growing ones up to `FURTHEST`
            step_length *= 1.03
        total, information = _test(outer, places, values, variances, extra, ends)
        if side * total > z * math.sqrt(information):
            return _bisect(min(inner, outer), max(inner, outer), side * z, places, values, variances, extra, ends)
        inner = outer
    return side * math.inf


@njit(cache=True)
def _strongest(point, value, reach, places, values, variances, extra, ends):  # type: ignore[no-untyped-def]
    """Walk from the estimate to a value, as far as an edge is looked for, and return the largest rejection met."""
    side = 1.0 if value >= point else -1.0
    distance = min(abs(value - point), FURTHEST * abs(reach))
    best = 0.0
    for i in range(1, 513):
        at = point + side * distance * i / 512
        total, information = _test(at, places, values, variances, extra, ends)
        best = max(best, side * total / math.sqrt(information))
    return side * best


@njit(cache=True)
def _bisect(low, high, target, places, values, variances, extra, ends):  # type: ignore[no-untyped-def]
    """Return where T / sqrt(J) reaches the target between two points."""
    for _ in range(60):
        middle = low + (high - low) / 2
        total, information = _test(middle, places, values, variances, extra, ends)
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

"""A monotone change of coordinate in which a distribution function with an exponential density looks straight.

Around ``origin`` the density is taken to change like ``exp(bend (x - origin))``; ``y = (exp(bend (x - origin)) - 1) /
bend`` then grows as the distribution function does. Beyond three units of the exponent both directions go on in a
straight line, so that every ``x`` has a ``y`` and back. ``bend = 0`` changes nothing but the origin.
"""

import math

from numba import njit

FAR = 3.0


@njit(cache=True)
def through(at: float, origin: float, bend: float) -> float:
    """Return the coordinate of a value."""
    u = bend * (at - origin)
    if abs(u) < 1e-8:
        return at - origin
    if u > FAR:
        return (math.expm1(FAR) + math.exp(FAR) * (u - FAR)) / bend
    if u < -FAR:
        return (math.expm1(-FAR) + math.exp(-FAR) * (u + FAR)) / bend
    return math.expm1(u) / bend


@njit(cache=True)
def back(place: float, origin: float, bend: float) -> float:
    """Return the value at a coordinate."""
    v = bend * place
    if abs(v) < 1e-8:
        return origin + place
    if v > math.expm1(FAR):
        return origin + (FAR + (v - math.expm1(FAR)) / math.exp(FAR)) / bend
    if v < math.expm1(-FAR):
        return origin + (-FAR + (v - math.expm1(-FAR)) / math.exp(-FAR)) / bend
    return origin + math.log1p(v) / bend

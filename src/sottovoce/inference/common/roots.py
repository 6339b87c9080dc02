"""A bracketed root in a few evaluations (Anderson and Björck 1973, doi:10.1007/BF01951936).

It is a false position; scipy's root finders would cost 0.4 s to import.
"""

from collections.abc import Callable


def root(
    function: Callable[[float], float],
    ends: tuple[float, float],
    accuracy: float,
    values: tuple[float, float] | None = None,
) -> float:
    """Return where a smooth function that changes sign between two ends is zero.

    The function should be close to a straight line over the bracket; the search stops at a step shorter than
    ``accuracy``. ``values`` are the function at the ends, where they are known.

    >>> round(root(lambda x: x * x - 2.0, (0.0, 2.0), 1e-9), 9)
    1.414213562
    """
    (far, near), (at_far, at_near) = ends, values or (function(ends[0]), function(ends[1]))
    for _ in range(200):
        if at_near == at_far:
            return near
        guess = near - at_near * (near - far) / (at_near - at_far)
        if abs(guess - near) <= accuracy or abs(guess - far) <= accuracy:
            return guess
        value = function(guess)
        if (value > 0.0) == (at_near > 0.0):
            # The far end stays: its value is reduced, or it would stay for ever.
            shrink = 1.0 - value / at_near
            at_far *= shrink if shrink > 0.0 else 0.5
        else:
            far, at_far = near, at_near
        near, at_near = guess, value
    return near

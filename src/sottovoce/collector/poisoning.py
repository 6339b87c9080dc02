"""How far liars can move what is read at a point: letters that are chosen instead of drawn."""

import math

from sottovoce.core.errors import BadInput


def most_moved(liars: int, reports: int, epsilon: float) -> float:
    """Return the largest change of the distribution function at a point that some of its reports can cause by lying.

    The decoded share of ones is scaled by ``1 / tanh(epsilon / 2)``, and a lie changes the ones by at most one.

    >>> round(most_moved(1, 100, 1.0), 4), most_moved(100, 100, 8.0)
    (0.0216, 1.0)
    """
    if not (0 <= liars <= reports and reports > 0 and 0 < epsilon < math.inf):
        raise BadInput("liars are some of the reports, and epsilon is a positive number; correct them.")
    return min(liars / (reports * math.tanh(epsilon / 2)), 1.0)

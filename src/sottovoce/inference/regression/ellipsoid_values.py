"""Critical values of the self-normalised ellipsoid (Theorem 3 of the paper on online quantile regression).

The statistic `n (mean - truth)' V^-1 (mean - truth)` tends to `W' (int B B')^-1 W` for a normal vector `W` and a bridge
`B` in `d` dimensions. One dimension is the square of the scalar law and, like two, exact to 1e-9; 3 to 20 dimensions
rest on a simulated table whose relative standard error at 95 % is `RELATIVE_ERROR[d]`, 5e-5 at most. The paper prints
quantiles of 200,000 simulated paths, which differ from these by 0.1 to 0.5 %: their Monte-Carlo noise.
"""

import math
from functools import lru_cache

from sottovoce.core.errors import BadInput
from sottovoce.inference.regression.ellipsoid_density import body_and_tail, plane_tail, radius
from sottovoce.inference.regression.ellipsoid_table import COEFFICIENTS
from sottovoce.inference.self_normalised.critical_values import critical_value
from sottovoce.inference.self_normalised.critical_values import p_value as scalar_p_value

LARGEST = max(COEFFICIENTS)


def ellipsoid_value(level: float, d: int) -> float:
    """Find c such that W' (int B B')^-1 W stays below c with probability `level`.

    Parameters
    ----------
    level
        Confidence level, strictly between 0 and 1.
    d
        Dimension, from 1 to 20.

    Returns
    -------
    The critical value of the ellipsoid.

    Examples
    --------
    >>> round(ellipsoid_value(0.95, 1), 4) == round(critical_value(0.95) ** 2, 4)
    True
    >>> round(ellipsoid_value(0.95, 2), 4)
    103.4168
    >>> round(ellipsoid_value(0.95, 9))
    867
    """
    if not 0.0 < level < 1.0:
        raise BadInput(f"level is {level}, but a confidence level lies strictly between 0 and 1.")
    return _value(float(level), known(d))


def ellipsoid_p_value(statistic: float, d: int) -> float:
    """Return the chance that W' (int B B')^-1 W exceeds the statistic.

    Parameters
    ----------
    statistic
        The quadratic form, not negative.
    d
        Dimension, from 1 to 20.

    Returns
    -------
    The tail probability.

    Examples
    --------
    >>> round(ellipsoid_p_value(103.4168, 2), 6)
    0.05
    >>> ellipsoid_p_value(0.0, 7)
    1.0
    """
    if not statistic >= 0.0:
        raise BadInput(f"statistic is {statistic}, but a quadratic form is a number that is not negative.")
    r, d = math.sqrt(statistic), known(d)
    if d == 1:
        return scalar_p_value(r)
    if r < 1e-9:
        return 1.0
    # The law has exponential tails: beyond 1500 they are below 1e-250.
    if r > 1500.0:
        return 0.0
    chance = plane_tail(r) if d == 2 else body_and_tail(r, d, COEFFICIENTS[d])[1]
    return min(max(chance, 0.0), 1.0)


def known(d: int) -> int:
    """Return the dimension, or refuse one that has no table."""
    if isinstance(d, bool) or d != int(d) or not 1 <= d <= LARGEST:
        raise BadInput(
            f"a self-normalised ellipsoid has 1 to {LARGEST} dimensions, not {d}: ask for fewer contrasts at a time."
        )
    return int(d)


@lru_cache(maxsize=256)
def _value(level: float, d: int) -> float:
    if d == 1:
        return critical_value(level) ** 2
    return radius(level, d, COEFFICIENTS.get(d)) ** 2

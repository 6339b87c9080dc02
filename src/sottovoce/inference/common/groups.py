"""Divide-and-conquer groups: intervals and ellipsoids from the spread of independent estimates (equations 20 to 23).

People are split beforehand into `R` groups of nearly equal size, and each group's recursion ends at an estimate. These
are independent and alike, so their mean is studentised by their own covariance: Student's distribution with `R - 1`
degrees of freedom for a contrast, Hotelling's for `k` contrasts at once, which needs `R > k`. A bias that all groups
share is not seen by their spread, and a group is shorter than the whole stream: `undercoverage` says what that costs.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce.inference.regression.region import (
    Contrast,
    Ellipsoid,
    confident,
    contrast_matrix,
    nonsingular,
    variance_along,
    vector,
)


def mean(centres: ArrayLike) -> Floats:
    """Return the average of the groups' estimates, one per row."""
    rows = _checked(centres)
    average: Floats = rows[0] + (rows - rows[0]).mean(0)
    return average


def covariance(centres: ArrayLike) -> Floats:
    """Return the empirical covariance of the groups' estimates (20)."""
    rows = _checked(centres)
    # Distances from the first estimate: a covariance keeps its digits wherever the estimates lie.
    apart = rows - rows[0]
    apart = apart - apart.mean(0)
    spread: Floats = apart.T @ apart / (len(rows) - 1)
    return spread


def interval(centres: ArrayLike, contrast: Contrast, level: float) -> tuple[float, float]:
    """Return the ends of the confidence interval of a contrast (23).

    ``centres`` has the estimate of each group in a row; at least two.

    >>> low, high = interval([[1.0, 0.0], [2.0, 1.0], [3.0, 5.0]], [1.0, 0.0], 0.95)
    >>> round(low, 3), round(high, 3)
    (-0.484, 4.484)
    """
    middle, error, freedom = _studentised(centres, contrast)
    half = student_value(confident(level), freedom) * error
    return middle - half, middle + half


def p_value(centres: ArrayLike, contrast: Contrast, value: float) -> float:
    """Return the two-sided p-value of a value of the contrast."""
    middle, error, freedom = _studentised(centres, contrast)
    return student_p_value((value - middle) / error, freedom)


def ellipsoid(centres: ArrayLike, level: float, contrasts: ArrayLike | None = None) -> Ellipsoid:
    """Return Hotelling's ellipsoid of all coefficients, or of several contrasts (21).

    ``centres`` has the estimate of each group in a row, more groups than contrasts; ``contrasts`` one contrast per row,
    None for every coefficient.

    >>> region = ellipsoid([[1.0, 0.0], [2.0, 1.0], [3.0, 5.0], [2.0, 1.0]], 0.95)
    >>> round(region.radius2, 3), region.contains([2.0, 2.0])
    (57.0, True)
    """
    rows = _checked(centres)
    targets = contrast_matrix(contrasts, rows.shape[1])
    bound = hotelling_value(len(targets), len(rows), level)
    shape = nonsingular(targets @ covariance(rows) @ targets.T, len(targets), "the covariance of the groups' estimates")
    return Ellipsoid(targets @ mean(rows), shape / len(rows), bound)


def hotelling_value(contrasts: int, groups: int, level: float) -> float:
    """Return the critical value of Hotelling's statistic (22), the same for groups and for leaves of a tree.

    There must be more groups than contrasts.

    >>> round(hotelling_value(3, 7, 0.95), 4)
    29.6612
    """
    from scipy.special import fdtri

    if groups <= contrasts:
        raise BadInput(
            f"an ellipsoid in {contrasts} dimensions needs more than {contrasts} groups, but there are {groups}: "
            "make more groups, or ask for single contrasts."
        )
    ratio = float(fdtri(contrasts, groups - contrasts, confident(level)))
    return contrasts * (groups - 1) / (groups - contrasts) * ratio


def student_value(level: float, freedom: int) -> float:
    """Return the two-sided critical value of Student's distribution.

    >>> round(student_value(0.95, 6), 4)
    2.4469
    """
    from scipy.special import stdtrit

    return -float(stdtrit(freedom, (1.0 - level) / 2.0))


def student_p_value(statistic: float, freedom: int) -> float:
    """Return the two-sided p-value of Student's distribution.

    >>> round(student_p_value(-2.4469, 6), 4)
    0.05
    """
    from scipy.special import stdtr

    return 2.0 * float(stdtr(freedom, -abs(statistic)))


def _studentised(centres: ArrayLike, contrast: Contrast) -> tuple[float, float, int]:
    """Return the estimate of a contrast, its standard error and the degrees of freedom."""
    rows = _checked(centres)
    a = vector(contrast, rows.shape[1], "contrast")
    return float(a @ mean(rows)), math.sqrt(variance_along(a, covariance(rows)) / len(rows)), len(rows) - 1


def _checked(centres: ArrayLike) -> Floats:
    rows = np.asarray(centres, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] == 0 or not np.isfinite(rows).all():
        raise BadInput(f"centres must be finite, one group per row and one coefficient per column, not {rows.shape}.")
    if len(rows) < 2:
        raise BadInput("one group has no spread to studentise by: make at least two groups.")
    return rows

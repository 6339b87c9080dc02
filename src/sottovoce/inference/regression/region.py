"""Confidence ellipsoids: what every method for vectors returns, and the one of a known covariance."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput

Contrast = Sequence[float] | Floats

# A correlation matrix whose smallest eigenvalue is below this cannot be told from a singular one.
SINGULAR = 1e-12


class Ellipsoid(NamedTuple):
    """All points with `(point - centre)' shape^-1 (point - centre) <= radius2`.

    Examples
    --------
    >>> disc = Ellipsoid(np.zeros(2), np.eye(2), 4.0)
    >>> disc.contains([1.9, 0.0]), disc.contains([1.9, 1.9])
    (True, False)
    >>> round(disc.volume / math.pi, 9)
    4.0
    >>> low, high = disc.interval([1.0, 1.0])
    >>> round(low, 4), round(high, 4)
    (-2.8284, 2.8284)
    """

    centre: Floats
    shape: Floats
    radius2: float

    def statistic(self, point: ArrayLike) -> float:
        """Return the quadratic form at a point: the ellipsoid ends where it reaches `radius2`."""
        gap = vector(point, self.centre.size, "point") - self.centre
        scale = np.sqrt(np.diag(self.shape))
        scaled = gap / scale
        return float(scaled @ np.linalg.solve(self.shape / np.outer(scale, scale), scaled))

    def contains(self, point: ArrayLike) -> bool:
        """Say whether a point lies inside or on the edge."""
        return self.statistic(point) <= self.radius2

    @property
    def volume(self) -> float:
        """Return the volume."""
        d = self.centre.size
        log_ball = d / 2 * math.log(math.pi) - math.lgamma(d / 2 + 1)
        return math.exp(log_ball + (d * math.log(self.radius2) + float(np.linalg.slogdet(self.shape)[1])) / 2)

    def axes(self) -> tuple[Floats, Floats]:
        """Return the half-lengths of the axes, longest first, and their directions as the columns of a matrix."""
        squares, directions = np.linalg.eigh(self.shape)
        return np.sqrt(self.radius2 * squares[::-1]), directions[:, ::-1]

    def interval(self, contrast: Contrast) -> tuple[float, float]:
        """Return the shadow on a contrast: intervals of this kind hold for all contrasts at once."""
        a = vector(contrast, self.centre.size, "contrast")
        half = math.sqrt(self.radius2 * float(a @ self.shape @ a))
        middle = float(a @ self.centre)
        return middle - half, middle + half


def normal_ellipsoid(centre: ArrayLike, covariance: ArrayLike, level: float) -> Ellipsoid:
    """Return the chi-square ellipsoid of a normal estimate with known covariance.

    >>> round(normal_ellipsoid([0.0, 0.0], [[1.0, 0.0], [0.0, 4.0]], 0.95).radius2, 4)
    5.9915
    """
    from scipy.special import chdtri

    point = vector(centre, np.size(centre), "centre")
    shape = nonsingular(covariance, point.size, "the covariance")
    return Ellipsoid(point, shape, float(chdtri(point.size, 1.0 - confident(level))))


def vector(values: ArrayLike, d: int, name: str) -> Floats:
    """Return `d` finite numbers, or refuse them."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput(f"{name} must hold {d} numbers.") from None
    if array.shape != (d,) or d == 0 or not np.isfinite(array).all():
        raise BadInput(f"{name} must hold {d} finite numbers, one per coefficient, but has shape {array.shape}.")
    return array


def contrast_matrix(contrasts: ArrayLike | None, d: int) -> Floats:
    """Return contrasts as the rows of a matrix, every coefficient where none is named, or refuse them."""
    if contrasts is None:
        return np.eye(d)
    rows = np.atleast_2d(np.asarray(contrasts, dtype=np.float64))
    if rows.ndim != 2 or rows.shape[1] != d or rows.shape[0] == 0 or not np.isfinite(rows).all():
        raise BadInput(
            f"contrasts must be rows of {d} finite numbers, one per coefficient, but have shape {rows.shape}."
        )
    return rows


def confident(level: float) -> float:
    """Return a confidence level, or refuse it."""
    if not 0.0 < level < 1.0:
        raise BadInput(f"level is {level}, but a confidence level lies strictly between 0 and 1.")
    return float(level)


def nonsingular(matrix: ArrayLike, d: int, name: str) -> Floats:
    """Return a positive definite matrix, or say which rank it has."""
    shape = np.asarray(matrix, dtype=np.float64)
    if shape.shape != (d, d) or not np.isfinite(shape).all():
        raise BadInput(f"{name} must be a finite matrix of shape {(d, d)}, but has shape {shape.shape}.")
    scale = np.sqrt(np.maximum(np.diag(shape), 0.0))
    moving = scale > 0.0
    # Correlations, not covariances, tell the rank: coefficients may have units 1e8 apart.
    spectrum = np.linalg.eigvalsh(shape[np.ix_(moving, moving)] / np.outer(scale[moving], scale[moving]))
    rank = int(np.sum(spectrum > SINGULAR))
    if rank < d:
        raise BadInput(
            f"{name} has rank {rank} of {d}, so there is no ellipsoid: ask for single contrasts, "
            "or leave out coefficients that did not move or repeat others."
        )
    return shape


def variance_along(contrast: Floats, covariance: Floats) -> float:
    """Return the variance of a contrast, or refuse one that cannot be told from zero."""
    variance = float(contrast @ covariance @ contrast)
    parts = float(contrast**2 @ np.diag(covariance))
    if not (math.isfinite(variance) and variance > SINGULAR * parts):
        raise BadInput("the contrast has no variance, so no interval: it is zero, or nothing has moved along it.")
    return variance

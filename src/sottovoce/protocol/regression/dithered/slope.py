"""The slope H of the mean gradient: a joint Gaussian for its entries, from density, moments and dithered people.

The slope is the density times the moments where the density does not depend on the covariates; how far it may be from
that is the prior, in the coordinates in which the moments are the identity. A person asked at point + way has a mean
gradient of H way, beside the point's own: linear in the entries of H, so the answers of all looks pool exactly. What
is needed of H is one number for each coefficient, u' H w, whose variance the Gaussian gives.
"""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.dithered.density import DENSITY_SD, Density
from sottovoce.protocol.regression.dithered.moments import Moments, roots
from sottovoce.protocol.regression.dithered.vech import congruence, of_products, packed, places, unpacked

# spread of the whitened slope's entries about the identity, and the factors of it that the people choose from: how
# likely each is beforehand is a normal distribution of its logarithm (decision 0076)
DIAGONAL, CROSSES = 0.15, 0.10
STEADY_CROSSES = 0.06  # as it is believed for the steps (decision 0020)
FACTORS, FACTOR_SD = (0.5, 1.0, 2.0, 3.0), 0.5
FLATTEST = 0.15  # eigenvalue of the whitened slope: a smaller one is noise (decision 0020)


class Heard(NamedTuple):
    """What dithered people say of H, the bend taken out: sums of ways' squares, and of their turned gradients."""

    ways: Floats  # (d, d)
    gradients: Floats  # (d, d): turned gradient x way


class Slope(NamedTuple):
    """The slope H, what is known of it, and what the steps believe it to be."""

    matrix: Floats
    covariance: Floats  # of its packed entries
    density: Density
    steady: Floats
    steady_covariance: Floats


def learn_slope(heard: Heard, omega: Floats, moments: Moments, density: Density) -> Slope:
    """Return the slope after all dithered people."""
    d, f = len(omega), density.value
    root, back = roots(moments.matrix)
    centre = packed(moments.matrix)
    spread = _about(root, CROSSES)
    level = DENSITY_SD**2 * np.outer(centre, centre)
    inverse = np.asarray(np.linalg.inv(omega), dtype=np.float64)
    information = f**2 * of_products(heard.ways, inverse)
    told = inverse @ heard.gradients
    about = f * _folded(told)
    away = about - information @ centre
    best, found, covariance = -np.inf, centre, level
    for factor in FACTORS:
        prior = moments.covariance + factor**2 * spread + level
        mixed = np.eye(len(centre)) + prior @ information
        after = np.linalg.solve(mixed, prior)
        move = after @ away
        likelihood = -0.5 * float(np.linalg.slogdet(mixed)[1]) + 0.5 * float(away @ move)
        likelihood -= 0.5 * (np.log(factor) / FACTOR_SD) ** 2
        if likelihood > best:
            best, found, covariance = likelihood, centre + move, (after + after.T) / 2
    covariance = covariance + density.of_bend * np.outer(centre, centre)
    eigenvalues, eigenvectors = np.linalg.eigh(back @ unpacked(found, d) @ back)
    shape = (eigenvectors * np.maximum(eigenvalues, FLATTEST)) @ eigenvectors.T
    steady_root, _ = roots(moments.steady)
    return Slope(
        f * root @ shape @ root,
        f**2 * covariance,
        density,
        f * moments.steady,
        f**2 * (moments.steady_covariance + _about(steady_root, STEADY_CROSSES)),
    )


def _about(root: Floats, crosses: float) -> Floats:
    """Return how the packed slope lies about the moments; the first entry is the density, and does not."""
    rows, columns, _ = places(len(root))
    turn = congruence(root)
    spread = turn * np.where(rows == columns, DIAGONAL, crosses) ** 2 @ turn.T
    return np.asarray(spread - np.outer(spread[0], spread[0]) / spread[0, 0])


def _folded(matrix: Floats) -> Floats:
    """Return the vector whose inner product with the packed H is trace(matrix' H)."""
    rows, columns, halves = places(len(matrix))
    return np.asarray(halves * (matrix[rows, columns] + matrix[columns, rows]))

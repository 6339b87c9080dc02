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
from sottovoce.protocol.regression.dithered.spread import about_product, apart
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
    priors = moments.covariance + level + np.square(FACTORS)[:, None, None] * spread
    mixed = np.eye(len(centre)) + priors @ information
    moves = np.linalg.solve(mixed, (priors @ away)[:, :, None])[:, :, 0]
    likelihoods = 0.5 * (moves @ away) - 0.5 * np.linalg.slogdet(mixed)[1]
    best = int(np.argmax(likelihoods - 0.5 * np.square(np.log(FACTORS) / FACTOR_SD)))
    found, covariance = centre + moves[best], np.linalg.solve(mixed[best], priors[best])
    covariance = (covariance + covariance.T) / 2
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


def scaled_slope(moments: Moments, density: Density) -> Slope:
    """Return the slope of many covariates: the density times the moments as they are believed, with an open doubt."""
    f, matrix = density.value, moments.steady
    spread = moments.covariance[0] + about_product(matrix, DIAGONAL, CROSSES)
    steady = moments.steady_covariance[0] + about_product(matrix, DIAGONAL, STEADY_CROSSES)
    way = np.sqrt(density.variance) * packed(matrix)
    return Slope(
        f * matrix, apart(f**2 * spread, f * way), density, f * matrix, apart(f**2 * steady, np.zeros(len(way)))
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

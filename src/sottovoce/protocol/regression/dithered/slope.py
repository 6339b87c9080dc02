"""The slope H of the mean gradient: a joint Gaussian for its entries, from density, moments and dithered people.

The slope is the density times the moments where the density does not depend on the covariates; how far it may be from
that is the prior, in the coordinates in which the moments are the identity. People asked beside the point for one bit
about a'x tell of a' H way: linear in the entries of H, so the answers of all looks pool exactly. What is needed of H is
one number for each coefficient, u' H w, whose variance the Gaussian gives.
"""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.dithered.density import DENSITY_SD, Density
from sottovoce.protocol.regression.dithered.moments import Moments, roots
from sottovoce.protocol.regression.dithered.spread import about_product, apart
from sottovoce.protocol.regression.dithered.vech import congruence, packed, places, product, unpacked

# spread of the whitened slope's entries about the identity, factors of it, and how likely each is before anybody is
# asked: scales that differ fivefold over the covariates are at the largest (decision 0090)
DIAGONAL, CROSSES = 0.15, 0.12
FACTORS, LIKELY = (0.5, 1.0, 2.0, 4.0), (0.2, 0.35, 0.28, 0.17)
STEADY_CROSSES = 0.06  # as it is believed for the steps (decision 0020)
BENT = (0.4, 2.5)  # the density at a way's end over that at the point, at most
FLATTEST = 0.15  # eigenvalue of the whitened slope: a smaller one is noise (decision 0020)


class Heard(NamedTuple):
    """What people beside the point say of H: the combinations of its packed entries that they were asked about."""

    combinations: Floats  # (answers, entries)
    distances: Floats  # squared, in units of the far one: by so much of the bend is the density seen another
    values: Floats
    precisions: Floats
    sides: Floats  # one for answers about the side alone, which tell the density, else zero


class Posterior(NamedTuple):
    """For each factor of the spread what is known of the packed H / density, less the moments."""

    moves: Floats  # (factors, entries)
    covariances: Floats


class Slope(NamedTuple):
    """The slope H, what is known of it, and what the steps believe it to be."""

    matrix: Floats
    covariance: Floats  # of its packed entries
    density: Density
    steady: Floats
    steady_covariance: Floats
    joint: Floats  # covariance of H / density, the bend and the moments, by which people are asked; else none


def learn_slope(heard: Heard, omega: Floats, moments: Moments, density: Density) -> Slope:
    """Return the slope after all dithered people; what they say of the bend is not known apart from it."""
    d, f = len(moments.matrix), density.value
    root, back = roots(moments.matrix)
    centre = packed(moments.matrix)
    entries = len(centre)
    lines, left = bent_lines(heard.combinations, heard.distances, centre, density)
    weighted = lines.T * heard.precisions
    information = f**2 * weighted @ lines
    away = f * weighted @ (heard.values - f * (heard.combinations * left[:, None]) @ centre)
    spread, level = _about(root, CROSSES), DENSITY_SD**2 * np.outer(centre, centre)
    priors = np.zeros((len(FACTORS), entries + 1, entries + 1))
    priors[:, :entries, :entries] = moments.covariance + level + np.square(FACTORS)[:, None, None] * spread
    priors[:, entries, entries] = density.prior_sd**2
    start = np.zeros(entries + 1)
    start[entries] = density.prior - density.bend
    away = away - information @ start
    mixed = np.eye(entries + 1) + priors @ information
    linked = np.concatenate([moments.covariance, np.zeros((1, entries))])
    shifts = (priors @ away)[:, :, None]
    sides = np.concatenate([shifts, priors, np.broadcast_to(linked, (len(FACTORS), *linked.shape))], axis=2)
    both = np.linalg.solve(mixed, sides)
    moves = both[:, :, 0]
    after = Posterior(moves[:, :entries], both[:, :entries, 1 : entries + 1])
    sides_only = f**2 * (lines.T * (heard.precisions * heard.sides)) @ lines
    aside = (
        f
        * (lines.T * (heard.precisions * heard.sides))
        @ (heard.values - f * (heard.combinations * left[:, None]) @ centre)
        - sides_only @ start
    )
    first = np.linalg.solve(
        np.eye(entries + 1) + priors @ sides_only, np.concatenate([(priors @ aside)[:, :, None], priors], axis=2)
    )
    before = Posterior(first[:, :entries, 0], first[:, :entries, 1 : entries + 1])
    weights = _weights(before, after, moments, omega)
    mean = weights @ moves
    found, off = centre + mean[:entries], moves - mean
    covariance = np.tensordot(weights, both[:, :, 1 : entries + 2], 1) + (off.T * weights) @ off
    covariance, shared = (covariance + covariance.T) / 2, np.tensordot(weights, both[:, :, entries + 2 :], 1)
    eigenvalues, eigenvectors = np.linalg.eigh(back @ unpacked(found, d) @ back)
    shape = (eigenvectors * np.maximum(eigenvalues, FLATTEST)) @ eigenvectors.T
    steady_root, _ = roots(moments.steady)
    return Slope(
        f * root @ shape @ root,
        f**2 * covariance[:entries, :entries],
        density,
        f * moments.steady,
        f**2 * (moments.steady_covariance + _about(steady_root, STEADY_CROSSES)),
        np.block([[covariance, shared], [shared.T, moments.covariance]]),
    )


def bent_lines(combinations: Floats, distances: Floats, centre: Floats, density: Density) -> tuple[Floats, Floats]:
    """Return what answers depend on of H / density and the bend, to first order, and the factors of the bend so far."""
    factors = np.clip(1 + density.bend * distances, *BENT)
    return np.concatenate(
        [combinations * factors[:, None], ((combinations @ centre) * distances)[:, None]], axis=1
    ), factors


def _weights(before: Posterior, after: Posterior, moments: Moments, omega: Floats) -> Floats:
    """Return how much each factor of the spread is believed, (factors,).

    What a standard error depends on is one number of H, of which the answers about pairs alone tell t with variance v.
    """
    inverse = np.linalg.inv(moments.matrix)
    gradients = product(inverse, (inverse @ omega @ inverse).T) / np.diag(inverse @ omega @ inverse)[:, None]
    widest = Posterior(*(each[-1:] for each in after)), Posterior(*(each[-1:] for each in before))
    (late, knew), (early, prior) = ((each.moves @ gradients.T, _variances(each, gradients)) for each in widest)
    noise = 1 / np.maximum(1 / knew - 1 / prior, 1e-9)
    told = noise * (late / knew - early / prior)
    spread = _variances(before, gradients) + noise
    likely = np.log(LIKELY)[:, None] - 0.5 * np.log(spread) - 0.5 * (told - before.moves @ gradients.T) ** 2 / spread
    weights = np.exp(likely - likely.max(axis=0))
    weights /= weights.sum(axis=0)
    return np.asarray(MODE(weights))


def _variances(known: Posterior, gradients: Floats) -> Floats:
    return np.asarray(np.einsum("ka,sab,kb->sk", gradients, known.covariances, gradients))


MODE = lambda w: w.mean(axis=1)


def scaled_slope(moments: Moments, density: Density) -> Slope:
    """Return the slope of many covariates: the density times the moments as they are believed, with an open doubt."""
    f, matrix = density.value, moments.steady
    spread = moments.covariance[0] + about_product(matrix, DIAGONAL, CROSSES)
    steady = moments.steady_covariance[0] + about_product(matrix, DIAGONAL, STEADY_CROSSES)
    way = np.sqrt(density.variance) * packed(matrix)
    return Slope(
        f * matrix,
        apart(f**2 * spread, f * way),
        density,
        f * matrix,
        apart(f**2 * steady, np.zeros(len(way))),
        np.zeros((0, 0)),
    )


def _about(root: Floats, crosses: float) -> Floats:
    """Return how the packed slope lies about the moments; the first entry is the density, and does not."""
    rows, columns, _ = places(len(root))
    turn = congruence(root)
    spread = turn * np.where(rows == columns, DIAGONAL, crosses) ** 2 @ turn.T
    return np.asarray(spread - np.outer(spread[0], spread[0]) / spread[0, 0])

"""The slope H of the mean gradient: a joint Gaussian for its entries, from density, moments and dithered people.

The slope is the density times the moments where the density does not depend on the covariates; how far it may be from
that is the prior, in coordinates in which the covariates are centred and white. People asked beside the point for one
bit about a'x tell of a' H way: linear in the entries of H, so the answers of all looks pool exactly. What is needed of
H is one number for each coefficient, u' H w, whose variance the Gaussian gives.
"""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.dithered.density import Density
from sottovoce.protocol.regression.dithered.moments import Moments, roots
from sottovoce.protocol.regression.dithered.spread import about_product, apart
from sottovoce.protocol.regression.dithered.vech import congruence, packed, places, product, unpacked

# spread of the whitened slope's entries about the identity, factors of it, and how likely each is before anybody is
# asked: on real tables .02 to .27, with scales that differ fivefold over the covariates at the end (decision 0088)
DIAGONAL, CROSSES = 0.15, 0.12
FACTORS, LIKELY = (0.5, 1.0, 2.0, 4.0), (0.2, 0.35, 0.28, 0.17)
SKEWED = 2.5  # a density that leans along a covariate is believed to lean less where that is more skewed
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
    """For each factor of the spread what is known of the packed H / density, less the moments, and of the bend."""

    moves: Floats  # (factors, entries + 1)
    covariances: Floats
    linked: Floats  # with the moments


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
    told = heard.values - f * (heard.combinations * left[:, None]) @ centre
    start = np.zeros(entries + 1)
    start[entries] = density.prior - density.bend
    priors = np.zeros((len(FACTORS), entries + 1, entries + 1))
    priors[:, :entries, :entries] = moments.covariance + density.spread**2 * np.outer(centre, centre)
    priors[:, :entries, :entries] += np.square(FACTORS)[:, None, None] * _leaning(moments.matrix)
    priors[:, entries, entries] = density.prior_sd**2
    linked = np.concatenate([moments.covariance, np.zeros((1, entries))])
    after = _posterior(priors, start, f * lines, told, heard.precisions, linked)
    before = _posterior(priors, start, f * lines, told, heard.precisions * heard.sides)
    weights = _weights(before, after, moments, omega)
    mean = weights @ after.moves
    found, off = centre + mean[:entries], after.moves - mean
    covariance = np.tensordot(weights, after.covariances, 1) + (off.T * weights) @ off
    covariance, shared = (covariance + covariance.T) / 2, np.tensordot(weights, after.linked, 1)
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


def _posterior(
    priors: Floats, start: Floats, lines: Floats, told: Floats, precisions: Floats, linked: Floats | None = None
) -> Posterior:
    """Return what answers leave of each prior, and what of it that is ``linked`` with the moments."""
    n = len(start)
    weighted = lines.T * precisions
    information = weighted @ lines
    away = weighted @ told - information @ start
    sides = [(priors @ away)[:, :, None], priors]
    if linked is not None:
        sides.append(np.broadcast_to(linked, (len(priors), *linked.shape)))
    both = np.asarray(
        np.linalg.solve(np.eye(n) + priors @ information, np.concatenate(sides, axis=2)), dtype=np.float64
    )
    return Posterior(start + both[:, :, 0], both[:, :, 1 : n + 1], both[:, :, n + 1 :])


def bent_lines(combinations: Floats, distances: Floats, centre: Floats, density: Density) -> tuple[Floats, Floats]:
    """Return what answers depend on of H / density and the bend, to first order, and the factors of the bend so far."""
    factors = np.clip(1 + density.bend * distances, *BENT)
    return np.concatenate(
        [combinations * factors[:, None], ((combinations @ centre) * distances)[:, None]], axis=1
    ), factors


def _weights(before: Posterior, after: Posterior, moments: Moments, omega: Floats) -> Floats:
    """Return how much each factor of the spread is believed, as by the coefficients on average.

    What a standard error depends on is one number of H, of which the answers about pairs alone tell t with variance v:
    they turn what the answers about the side leave (``before``) into what is known ``after`` them. A scale that
    differs along one covariate shows in its own number, and would drown in a likelihood of all.
    """
    inverse = np.asarray(np.linalg.inv(moments.matrix), dtype=np.float64)
    along = inverse @ omega @ inverse
    gradients = np.zeros((len(omega), after.moves.shape[1]))
    gradients[:, :-1] = product(inverse, along.T) / np.diag(along)[:, None]
    early, prior = before.moves @ gradients.T, _variances(before, gradients)
    late, known = after.moves[-1] @ gradients.T, _variances(after, gradients)[-1]
    noise = 1 / np.maximum(1 / known - 1 / prior[-1], 1e-9)
    told = noise * (late / known - early[-1] / prior[-1])
    likely = np.log(LIKELY)[:, None] - 0.5 * np.log(prior + noise) - 0.5 * (told - early) ** 2 / (prior + noise)
    weights = np.exp(likely - likely.max(axis=0))
    return np.asarray((weights / weights.sum(axis=0)).mean(axis=1))


def _variances(known: Posterior, gradients: Floats) -> Floats:
    """Return the variance of every combination, for each factor."""
    return np.asarray(((gradients @ known.covariances) * gradients).sum(axis=2))


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
    return _beside_density(root, np.diag(np.where(rows == columns, DIAGONAL, crosses) ** 2))


def _leaning(matrix: Floats) -> Floats:
    """Return how the packed slope lies about moments, with a density that may lean along every covariate.

    In coordinates in which covariates are centred and white a density that grows by ``a`` a standard deviation puts
    ``a`` beside the intercept, and ``a`` times the covariate's skewness into its own square.
    """
    d = len(matrix)
    rows, columns, _ = places(d)
    means = matrix[0, 1:]
    centred = matrix[1:, 1:] - np.outer(means, means)
    root = np.eye(d)
    root[1:, 0], root[1:, 1:] = means, roots(centred)[0]
    prior = np.diag(np.where(rows == columns, DIAGONAL, CROSSES) ** 2)
    skews = skewness_of(means, np.diag(centred))
    leans = (CROSSES * SKEWED / np.maximum(np.abs(skews), SKEWED)) ** 2
    beside, squares = np.arange(1, d), np.flatnonzero(rows == columns)[1:]
    prior[beside, squares] = prior[squares, beside] = leans * skews
    prior[squares, squares] += leans * skews**2
    return _beside_density(root, prior)


def _beside_density(root: Floats, prior: Floats) -> Floats:
    """Return the spread of the packed slope apart from its first entry, from that of its coordinates."""
    turn = congruence(root)
    spread = turn @ prior @ turn.T
    return np.asarray(spread - np.outer(spread[0], spread[0]) / spread[0, 0])


def skewness_of(means: Floats, variances: Floats) -> Floats:
    """Return the skewness of columns on [-1, 1] as of beta distributions: exact for columns of their two ends.

    >>> import numpy as np
    >>> skewness_of(np.array([0.0, -0.8]), np.array([0.3, 0.36])).round(3).tolist()
    [0.0, 2.667]
    """
    parts, spreads = np.clip((1 + means) / 2, 1e-3, 1 - 1e-3), variances / 4
    even = parts * (1 - parts)
    count = np.maximum(even / spreads - 1, 0.0)
    return np.asarray(2 * (1 - 2 * parts) * np.sqrt(count + 1) / ((count + 2) * np.sqrt(even)))

"""The slope of the mean gradient, learnt from the people who were asked beside the point.

A gradient D asked at point + dither has mean H dither, so sum(D dither') against sum(dither dither') is H: dithers are
public and random, which spares it the bias that the trajectory's own movements would bring. Two sizes of dither tell
how the density changes with the distance, f(h) = f (1 + curvature h^2), and the curvature is taken out. Whitened by
the moments, H / f is close to the identity, and its entries are shrunk towards it.
"""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.server.regression.dithered.moments import Moments, whitened, whitener
from sottovoce.server.regression.shrinkage import pull, spread_about

FEW = 5  # people of one size of dither without whom it says nothing
# spread of the whitened entries, believed and thought possible: set on the catalogue's tuning designs (decision 0020)
DIAGONAL, CROSSES = (0.15, 0.3), (0.06, 0.15)
DENSITY_SD = 0.5  # relative standard deviation of the guessed density: guesses are wrong by a factor 2 (decision 0017)
LOWEST, HIGHEST = 0.2, 8.0  # the density, in units of its guess
CURVATURE = (-0.6, 1.5)  # the density's curvature at the far dither, which no usual distribution leaves (decision 0018)
FLATTEST = 0.1  # eigenvalue of the whitened slope: a smaller one is noise (decision 0020)


class Dithers(NamedTuple):
    """Sums over the dithered people of one level, near and far: gradient x dither, dither x dither, and sizes."""

    people: Floats  # (2,)
    cross: Floats  # (2, d, d)
    gram: Floats  # (2, d, d)
    square: Floats  # (2,): the mean of the squared size


class Slope(NamedTuple):
    """The slope H, the density, and how little is known of them."""

    matrix: Floats
    density: float
    density_variance: float  # relative
    root: Floats  # whitener of the moments
    variances: Floats  # of the entries of root H root / density, with an open mind
    confident: Floats  # and as the guess is believed


def learn_slope(dithers: Dithers, omega: Floats, moments: Moments, guess: float, prior: tuple[float, float]) -> Slope:
    """Return the slope; ``guess`` is the public density, ``prior`` mean and deviation of what its curvature may be."""
    root = whitener(moments.matrix)
    noise = np.diag(root @ omega @ root)
    density, curve, uncertain = _density(dithers, noise, root, guess, prior)
    d = len(root)
    sure, open_minded = whitened(moments.confident, root), whitened(moments.variances, root)
    back = np.linalg.inv(root)
    if dithers.people.sum() < 2 * FEW:
        return Slope(
            density * moments.matrix, density, uncertain, root, open_minded + DIAGONAL[1] ** 2, sure + DIAGONAL[0] ** 2
        )
    # the slope as each size of dither saw it, its curvature taken out, whitened: near the identity
    factors = 1 + curve * dithers.square / _far(dithers)
    cross = dithers.cross.sum(axis=0)
    found = root @ cross @ np.linalg.inv(np.tensordot(factors, dithers.gram, axes=1)) @ root / density
    spread = np.diag(root @ np.linalg.inv(dithers.gram.sum(axis=0)) @ root) / np.mean(factors) ** 2
    each = np.outer(noise, spread) / density**2
    # H is symmetric, so the two estimates of an entry are averaged; then like entries are shrunk together, twice: as
    # the guess is believed for the matrix, with an open mind for its variances
    entries, variances = (found + found.T) / 2, (each + each.T) / 4
    np.fill_diagonal(variances, np.diag(each))
    shape, known, believed_in = np.eye(d), np.zeros((d, d)), np.zeros((d, d))
    upper = np.triu_indices(d, 1)
    for (i, j), aim, (believed, possible) in (
        ((np.arange(d), np.arange(d)), 1.0, DIAGONAL),
        (upper, 0.0, CROSSES),
    ):
        away, v = entries[i, j] - aim, variances[i, j]
        between = spread_about(away, v, believed, sure[i, j]) + sure[i, j]
        shape[i, j] = shape[j, i] = aim + pull(between, v) * away
        believed_in[i, j] = believed_in[j, i] = pull(between, v) * v
        between = spread_about(away, v, possible, open_minded[i, j]) + open_minded[i, j]
        known[i, j] = known[j, i] = pull(between, v) * v
    eigenvalues, eigenvectors = np.linalg.eigh(shape)
    shape = (eigenvectors * np.maximum(eigenvalues, FLATTEST)) @ eigenvectors.T
    return Slope(density * back @ shape @ back, density, uncertain, root, known, believed_in)


def _far(dithers: Dithers) -> float:
    """Return the square of the far dither, four times the near one's where nobody was asked so far off yet."""
    return float(dithers.square[1] or 4 * dithers.square[0] or 1.0)


def _density(
    dithers: Dithers, noise: Floats, root: Floats, guess: float, curvature: tuple[float, float]
) -> tuple[float, float, float]:
    """Return the density, its curvature at the far dither, and its relative variance: a fit of two numbers to two."""
    far = _far(dithers)
    rows, seen, precise = [], [], []
    for size in range(2):
        if dithers.people[size] >= FEW:
            inverse = np.linalg.inv(dithers.gram[size])
            weights = 1 / (noise * np.diag(root @ inverse @ root))
            rows.append((1.0, float(dithers.square[size]) / far))
            seen.append(float(weights @ np.diag(root @ dithers.cross[size] @ inverse @ root) / weights.sum()))
            precise.append(float(weights.sum()))
    design, values, weights = np.array(rows).reshape(-1, 2), np.array(seen), np.array(precise)
    density = guess
    for _ in range(3):  # the curvature's prior is in units of the density
        prior = np.diag([1 / (DENSITY_SD * guess) ** 2, 1 / (curvature[1] * density) ** 2])
        total = prior + design.T * weights @ design
        fit = np.linalg.solve(total, prior @ np.array([guess, curvature[0] * density]) + design.T * weights @ values)
        density = max(float(fit[0]), LOWEST * guess)
    density = min(density, HIGHEST * guess)
    curve = min(max(float(fit[1]) / density, CURVATURE[0]), CURVATURE[1])
    return density, curve, float(np.linalg.inv(total)[0, 0]) / density**2

"""The moments E x x' of the covariates, learnt from one-bit answers and shrunk towards the public guess.

The slope of the mean gradient is close to density x E x x', and a bit about a product of two covariates tells far more
of that matrix than a dithered answer does. The means, the squares and the cross products are shrunk as three groups,
twice: towards a confident guess for the point estimate, and with an open mind for its variance; by as much as the
entries themselves suggest (empirical Bayes, Morris 1983, doi:10.1080/01621459.1983.10477920).
"""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats

# set on the tuning designs of the papers' catalogue, judged on the held-out ones (decision 0020)
SQUARES, CROSSES = (0.03, 0.1), (0.05, 0.2)  # how far moments lie from the guess: believed, and thought possible
SMALLEST_SQUARE, SMALLEST_ROOT = 0.005, 0.01  # of a square moment, and of an eigenvalue of the correlations
LARGEST_ROOT = 0.5  # what noise may lift that eigenvalue to
LEAST = 0.01  # of the prior variance: no group of entries is believed to agree with its guess better


class Moments(NamedTuple):
    """The matrix, the variances of its entries, and those that the bits alone would give it."""

    matrix: Floats
    variances: Floats  # with an open mind
    confident: Floats
    raw: Floats
    open_minded: Floats  # the matrix, shrunk less


def learn_moments(asked: Floats, ones: Floats, rate: float, guess: Floats) -> Moments:
    """Return the moments from how many were ``asked`` about each product (upper triangle) and said one.

    >>> import numpy as np
    >>> nobody = np.zeros((2, 2))
    >>> learn_moments(nobody, nobody, 1.0, np.diag([1.0, 0.3])).matrix.round(6).tolist()
    [[1.0, 0.0], [0.0, 0.3]]
    """
    d = len(guess)
    rows, columns = np.triu_indices(d)
    rows, columns = rows[1:], columns[1:]  # the constant times itself is one
    n = asked[rows, columns]
    aim = guess[rows, columns]
    noise = 1.0 / (rate**2 * np.maximum(n, 0.5))
    heard = np.where(n > 0, (2 * ones[rows, columns] / np.maximum(n, 1) - 1) / rate, aim)
    matrix, other = guess.copy(), guess.copy()
    variances, confident, raw = np.zeros((3, d, d))
    raw[rows, columns] = noise
    square = rows == columns
    for group, (believed, possible) in (
        (square, SQUARES),
        (~square & (rows == 0), CROSSES),
        (~square & (rows > 0), CROSSES),
    ):
        i, j, away, v = rows[group], columns[group], (heard - aim)[group], noise[group]
        weight = pull(spread_about(away, v, believed), v)
        matrix[i, j] = aim[group] + weight * away
        confident[i, j] = weight * v
        weight = pull(spread_about(away, v, possible), v)
        other[i, j] = aim[group] + weight * away
        variances[i, j] = weight * v
    return Moments(
        _possible(_mirrored(matrix), _mirrored(confident)),
        _mirrored(variances),
        _mirrored(confident),
        _mirrored(raw),
        _possible(_mirrored(other), np.zeros((d, d))),
    )


def certain(matrix: Floats) -> Moments:
    """Return moments that need not be learnt."""
    nothing = np.zeros(matrix.shape)
    return Moments(matrix, nothing, nothing, nothing, matrix)


def _mirrored(upper: Floats) -> Floats:
    return np.asarray(np.triu(upper) + np.triu(upper, 1).T)


def _possible(matrix: Floats, variances: Floats) -> Floats:
    """Return a matrix near the given one that can be E x x': the constant stays one, and no direction is empty.

    No eigenvalue of the correlations is believed to be smaller than the noise of the entries, whose ``variances`` are
    given: what is empty by chance alone would make the steps along it wild.
    """
    deviation = np.sqrt(np.maximum(np.diag(matrix), SMALLEST_SQUARE))
    scale = np.outer(deviation, deviation)
    correlations = matrix / scale
    np.fill_diagonal(correlations, 1.0)
    noise = float(np.sqrt((variances / scale**2).sum(axis=1).max()))
    least = min(max(SMALLEST_ROOT, noise), LARGEST_ROOT)
    eigenvalues, eigenvectors = np.linalg.eigh(correlations)
    if eigenvalues[0] < least:
        correlations = (eigenvectors * np.maximum(eigenvalues, least)) @ eigenvectors.T
        unit = np.sqrt(np.diag(correlations))
        correlations = (1 - SMALLEST_ROOT) * correlations / np.outer(unit, unit) + SMALLEST_ROOT * np.eye(len(unit))
    return np.asarray(correlations * scale)


def whitener(matrix: Floats) -> Floats:
    """Return the symmetric inverse root of a matrix."""
    eigenvalues, eigenvectors = np.linalg.eigh(matrix)
    return np.asarray((eigenvectors / np.sqrt(eigenvalues)) @ eigenvectors.T)


def whitened(variances: Floats, root: Floats) -> Floats:
    """Return about how the variances of a matrix's entries look after whitening it."""
    return np.asarray(root**2 @ variances @ (root**2).T)


def spread_about(
    deviations: Floats, variances: Floats, prior: float, extra: Floats | float = 0.0, trust: float = 1.0
) -> float:
    """Return the variance of a group of entries about their guess, beyond their noise and ``extra`` variance.

    ``prior`` is the standard deviation believed in without evidence; it weighs as much as ``trust`` noiseless entries.

    >>> import numpy as np
    >>> round(spread_about(np.array([0.5, -0.5]), np.array([1e9, 1e9]), 0.1), 6)
    0.01
    """
    weights = prior**4 / (variances + extra + prior**2) ** 2
    beyond = float(np.sum(weights * (deviations**2 - variances - extra)))
    found = (trust * prior**2 + beyond) / (trust + float(np.sum(weights)))
    return max(found, LEAST * prior**2)


def pull(between: Floats | float, variances: Floats) -> Floats:
    """Return the weight of the data: entries vary by ``between`` about the guess, by ``variances`` about the truth."""
    return np.asarray(between / (between + variances))

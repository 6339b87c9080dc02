"""The moments E x x' of the covariates, learnt from one-bit answers and shrunk towards the public guess.

A bit tells of the mean of one product: of two covariates, or of two combinations of them, u'x w'x. Both are linear in
the entries of the moments, so the answers of all looks make one Gaussian posterior. The means, the squares and the
cross products are shrunk as three groups, each towards a mean and by a spread that its own entries suggest (empirical
Bayes, Morris 1983, doi:10.1080/01621459.1983.10477920): covariates that are all alike correlated are not shrunk
towards none; products are counted from those of the means. The letters of people at the point tell of single entries,
too (`overheard`). It is done twice: as the guess is believed, for the steps, and with an open mind, for the intervals.
"""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.dithered.declared import Declared, Frame, frame_of
from sottovoce.protocol.regression.dithered.spread import apart, carried, is_apart, nothing
from sottovoce.protocol.regression.dithered.vech import packed, places, unpacked

# how far squares, means and crosses lie from their mean: believed, for the steps (decision 0020), and possible, for the
# intervals (decision 0076)
BELIEVED, POSSIBLE = (0.03, 0.05, 0.05), (0.15, 0.4, 0.15)
STEPS, CLOSE = 6, 0.03  # at most, until mean and spread of the groups have settled, and what counts as settled
SMALLEST_SQUARE, SMALLEST_ROOT = 0.005, 0.01  # of a square moment, and of an eigenvalue of the correlations
LARGEST_ROOT = 0.5  # what noise may lift that eigenvalue to
# for the intervals an eigenvalue within its noise is halved noise, so that nothing is known along it (decision 0090)
NOISE, LEAST_ROOT, LEAST_SQUARE = 0.5, 1e-6, 1e-8
RAREST = 0.02  # that a bit is believed to be one, or zero
WIDE = 1e9  # as a range: of letters, whose variance is not that of a bit
CUT = 3.0  # standard errors by which letters contradict an answer that is not read: its range cuts what is rare
LEAST = 0.01  # of the prior variance: no group of entries is believed to agree with its guess better


class BitAnswers(NamedTuple):
    """What bits say of linear combinations of the packed moments: coefficients, values, and their precisions."""

    combinations: Floats  # (answers, entries)
    values: Floats
    precisions: Floats
    low: Floats | None = None  # of the ranges, for a prediction of the bits
    high: Floats | None = None


class Moments(NamedTuple):
    """The matrix and the covariance of its packed entries, with an open mind, and as the guess is believed."""

    matrix: Floats
    covariance: Floats
    steady: Floats
    steady_covariance: Floats


def values_of(asked: Floats, ones: Floats, low: Floats, high: Floats, rate: float) -> tuple[Floats, Floats]:
    """Return the means that bits about values within ranges tell, and their precisions."""
    n = np.maximum(asked, 1e-300)
    said = np.where(asked > 0, ones / n, 0.5)
    values = low + (high - low) * ((said - 0.5) / rate + 0.5)
    return np.asarray(values), np.asarray(4 * rate**2 * asked / (high - low) ** 2)


def heard_of(sums: Floats, rounding: float) -> tuple[Floats, Floats]:
    """Return what letters tell of the packed moments without the first, and with what precision.

    ``sums`` are those of `overheard.overhear`; squares are off by rounding to a grid, which many people do not lessen.
    """
    rows, columns, _ = (part[1:] for part in places(sums.shape[-1]))
    precisions, told = sums[0, rows, columns], sums[1, rows, columns]
    values = np.where(precisions > 0, told / np.maximum(precisions, 1e-300), 0.0)
    return values, np.where(rows == columns, precisions / (1 + precisions * rounding**2), precisions)


def learn_moments(
    products: Floats,
    rate: float,
    guess: Floats,
    pairs: BitAnswers,
    letters: tuple[Floats, Floats] | None = None,
    declared: Declared | None = None,
) -> Moments:
    """Return the moments from how many were asked about each product (upper triangle) and said one, and from pairs.

    ``letters`` is what the letters of all others tell of them, at no cost. With columns of which something is
    ``declared``, only what is free of the moments is learnt.

    >>> import numpy as np
    >>> nobody = np.zeros((2, 2, 2))
    >>> nothing = BitAnswers(np.zeros((0, 3)), np.zeros(0), np.zeros(0))
    >>> learn_moments(nobody, 1.0, np.diag([1.0, 0.3]), nothing).matrix.round(6).tolist()
    [[1.0, 0.0], [0.0, 0.3]]
    """
    d = len(guess)
    rows, columns, _ = (part[1:] for part in places(d))  # the constant times itself is one
    square = rows == columns
    groups = np.where(square, 0, np.where(rows == 0, 1, 2))
    aim = packed(guess)[1:]
    low = np.where(square, 0.0, -1.0)
    values, precisions = values_of(
        products[0, rows, columns], products[1, rows, columns], low, np.ones(len(rows)), rate
    )
    if letters is None:
        letters = np.zeros(len(rows)), np.zeros(len(rows))
    pairs = _uncut(pairs, *letters)
    if declared is not None and not is_apart(d):
        wide = np.full(len(rows), WIDE)
        each = np.eye(1 + len(aim))[1:]
        every = BitAnswers(
            np.concatenate([each, each, pairs.combinations]),
            np.concatenate([values, letters[0], pairs.values]),
            np.concatenate([precisions, letters[1], pairs.precisions]),
            np.concatenate([low, -wide, np.zeros(0) if pairs.low is None else pairs.low]),
            np.concatenate([np.ones(len(rows)), wide, np.zeros(0) if pairs.high is None else pairs.high]),
        )
        return _learn_free(every, rate, guess, declared)
    values = (precisions * values + letters[1] * letters[0]) / np.maximum(precisions + letters[1], 1e-300)
    precisions = precisions + letters[1]
    # products are counted from those of the means, as far as these are known
    means = np.zeros(d)
    about = precisions[: d - 1] / (precisions[: d - 1] + 1 / POSSIBLE[1] ** 2)
    means[1:] = aim[: d - 1] + about * (values[: d - 1] - aim[: d - 1])
    aim = aim + np.where(groups == 2, means[rows] * means[columns] - guess[0, rows] * guess[0, columns], 0.0)
    # everything is counted from the guess
    information, heard = precisions, precisions * (values - aim)
    if not is_apart(d):
        told = pairs.combinations[:, 1:]
        weighted = told * pairs.precisions[:, None]
        information = weighted.T @ told
        information[np.diag_indices(len(aim))] += precisions
        heard = heard + weighted.T @ (pairs.values - pairs.combinations[:, 0] - told @ aim)
    (found, steady), (covariance, believed) = _shrunk(information, heard, groups, np.array([POSSIBLE, BELIEVED]))
    noise = unpacked(np.concatenate(([0.0], _variances(believed))), d)
    spread = _padded(covariance)
    return Moments(
        invertible(unpacked(np.concatenate(([1.0], aim + found)), d), spread),
        spread,
        _possible(unpacked(np.concatenate(([1.0], aim + steady)), d), noise),
        _padded(believed),
    )


def _uncut(pairs: BitAnswers, values: Floats, precisions: Floats) -> BitAnswers:
    """Return the answers that letters do not contradict, which are never cut at the ends of a range."""
    told, noise = pairs.combinations[:, 1:], 1 / np.maximum(precisions, 1e-300)
    off = pairs.combinations[:, 0] + told @ values - pairs.values
    spread = np.square(told) @ noise + 1 / np.maximum(pairs.precisions, 1e-300)
    return pairs._replace(precisions=np.where(np.abs(off) <= CUT * np.sqrt(spread), pairs.precisions, 0.0))


def _learn_free(answers: BitAnswers, rate: float, guess: Floats, declared: Declared) -> Moments:
    """Return the moments where some of them are known: first as the guess is believed, then with an open mind.

    Bits about what is rare vary far less than bits could, by as much as the moments found first predict.
    """
    d, about = len(guess), guess[0, 1:]
    for _ in range(2):  # products are counted from the means, which are found first
        steady, steady_covariance = _solved(answers, frame_of(declared, guess, about), BELIEVED)
        about = np.clip(unpacked(steady, d)[0, 1:], -1.0, 1.0)
    low, high = np.asarray(answers.low), np.asarray(answers.high)
    part = np.clip((answers.combinations @ steady - low) / (high - low), 0.0, 1.0)
    said = np.clip(0.5 + rate * (part - 0.5), RAREST, 1 - RAREST)
    sharper = answers._replace(precisions=answers.precisions / (4 * said * (1 - said)))
    found, covariance = _solved(sharper, frame_of(declared, guess, about), POSSIBLE)
    return Moments(
        invertible(unpacked(found, d), covariance),
        covariance,
        _possible(unpacked(steady, d), unpacked(np.diag(steady_covariance), d)),
        steady_covariance,
    )


def _solved(answers: BitAnswers, frame: Frame, prior: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Return posterior mean and covariance of all packed moments, of which some are free."""
    aim = frame.fixed + frame.free @ frame.guess
    told = answers.combinations @ frame.free
    weighted = told * answers.precisions[:, None]
    heard = weighted.T @ (answers.values - answers.combinations @ aim)
    [found], [covariance] = _shrunk(weighted.T @ told, heard, frame.groups, np.array([prior]))
    return aim + frame.free @ found, np.asarray(frame.free @ covariance @ frame.free.T)


def _shrunk(
    information: Floats, heard: Floats, groups: np.ndarray[tuple[int], np.dtype[np.int64]], priors: Floats
) -> tuple[Floats, Floats]:
    """Return posterior means and covariances, one for each row of ``priors``, which are of the groups.

    Each group has a mean and a spread, which weigh one entry beforehand.
    """
    members = (groups == np.arange(priors.shape[1])[:, None]).astype(np.float64)
    counts, least = members.sum(axis=1), LEAST * priors**2
    centres, spreads = np.zeros_like(priors), priors**2
    diagonal, settled = np.arange(len(heard)), False
    for step in range(STEPS + 1):
        precision = (1 / spreads)[:, groups]
        aims = heard + precision * centres[:, groups]
        if information.ndim == 1:  # of entries that are told of one by one
            covariance = 1 / (information + precision)
            variances, found = covariance, covariance * aims
        else:
            total = np.repeat(information[None], len(priors), axis=0)
            total[:, diagonal, diagonal] += precision
            covariance = np.asarray(np.linalg.inv(total), dtype=np.float64)
            variances, found = covariance[:, diagonal, diagonal], (covariance @ aims[:, :, None])[:, :, 0]
        if settled or step == STEPS:
            break
        centres = found @ members.T / (1 + counts)
        # the fixed point of expectation and maximisation, reached faster (MacKay 1992)
        learnt = np.maximum(counts - variances @ members.T / spreads, 0.0)
        beyond = np.square(found - centres[:, groups]) @ members.T
        before, spreads = spreads, np.maximum((priors**2 + beyond) / (1 + learnt), least)
        settled = bool((np.abs(spreads - before) <= CLOSE * before).all())
    return np.asarray(found), np.asarray(covariance)


def _variances(covariance: Floats) -> Floats:
    return np.asarray(covariance if covariance.ndim == 1 else np.diag(covariance))


def _padded(covariance: Floats) -> Floats:
    """Return the covariance with the entry that is known: the constant times itself."""
    if covariance.ndim == 1:
        return apart(np.concatenate(([0.0], covariance)), np.zeros(1 + len(covariance)))
    found = np.zeros((len(covariance) + 1,) * 2)
    found[1:, 1:] = covariance
    return found


def certain(matrix: Floats) -> Moments:
    """Return moments that need not be learnt."""
    known = nothing(len(matrix))
    return Moments(matrix, known, matrix, known)


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


def invertible(matrix: Floats, spread: Floats) -> Floats:
    """Return the matrix with a positive number along every direction: where it is within its noise, half of that.

    Columns whose bounds are far too wide, or a column beside its square, leave directions that are nearly empty. They
    stay as empty as they are seen to be: an interval by a fuller one would be too short.

    >>> known, noisy = np.diag([0.0, -1e-20, 0.0]), np.diag([0.0, 0.0, 1e-4])
    >>> matrices = [invertible(np.diag([1.0, square]), spread) for square, spread in ((0.3, known), (1e-3, noisy))]
    >>> [float(matrix[1, 1].round(6)) for matrix in matrices]
    [0.3, 0.005]
    """
    axes = np.eye(len(matrix))
    squares = np.diag(matrix)
    noise = np.sqrt(np.maximum(carried(axes, axes, spread), 0.0))
    deviation = np.sqrt(np.maximum(np.where(squares > noise, squares, NOISE * noise), LEAST_SQUARE))
    scale = np.outer(deviation, deviation)
    correlations = matrix / scale
    np.fill_diagonal(correlations, 1.0)
    eigenvalues, eigenvectors = np.linalg.eigh(correlations)
    ways = eigenvectors.T / deviation
    noise = np.sqrt(np.maximum(carried(ways, ways, spread), 0.0))
    if (eigenvalues > np.maximum(noise, LEAST_ROOT)).all():
        return np.asarray(correlations * scale)
    kept = np.maximum(np.where(eigenvalues > noise, eigenvalues, NOISE * noise), LEAST_ROOT)
    correlations = (eigenvectors * kept) @ eigenvectors.T
    unit = np.sqrt(np.diag(correlations))
    return np.asarray(correlations / np.outer(unit, unit) * scale)


def roots(matrix: Floats) -> tuple[Floats, Floats]:
    """Return the symmetric root of a matrix, and its inverse."""
    eigenvalues, eigenvectors = np.linalg.eigh(matrix)
    root = np.sqrt(eigenvalues)
    return np.asarray((eigenvectors * root) @ eigenvectors.T), np.asarray((eigenvectors / root) @ eigenvectors.T)


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

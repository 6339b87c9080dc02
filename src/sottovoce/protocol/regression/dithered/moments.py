"""The moments E x x' of the covariates, learnt from one-bit answers and shrunk towards the public guess.

A bit tells of the mean of one product: of two covariates, or of two combinations of them, u'x w'x. Both are linear in
the entries of the moments, so the answers of all looks make one Gaussian posterior. The means, the squares and the
cross products are shrunk as three groups, each towards a mean and by a spread that its own entries suggest (empirical
Bayes, Morris 1983, doi:10.1080/01621459.1983.10477920): covariates that are all alike correlated are not shrunk
towards none. It is done twice: as the guess is believed, for the steps, and with an open mind, for the intervals.
"""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.dithered.declared import Declared, Frame, frame_of
from sottovoce.protocol.regression.dithered.vech import packed, places, unpacked

# how far squares, means and crosses lie from their mean: believed, for the steps (decision 0020), and possible, for the
# intervals (decision 0076)
BELIEVED, POSSIBLE = (0.03, 0.05, 0.05), (0.15, 0.15, 0.15)
STEPS = 6  # until mean and spread of the groups have settled
SMALLEST_SQUARE, SMALLEST_ROOT = 0.005, 0.01  # of a square moment, and of an eigenvalue of the correlations
LARGEST_ROOT = 0.5  # what noise may lift that eigenvalue to
RAREST = 0.02  # that a bit is believed to be one, or zero
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


def learn_moments(
    asked: Floats, ones: Floats, rate: float, guess: Floats, pairs: BitAnswers, declared: Declared | None = None
) -> Moments:
    """Return the moments from how many were ``asked`` about each product (upper triangle) and said one, and from pairs.

    With columns of which something is ``declared``, only what is free of the moments is learnt.

    >>> import numpy as np
    >>> nobody = np.zeros((2, 2))
    >>> nothing = BitAnswers(np.zeros((0, 3)), np.zeros(0), np.zeros(0))
    >>> learn_moments(nobody, nobody, 1.0, np.diag([1.0, 0.3]), nothing).matrix.round(6).tolist()
    [[1.0, 0.0], [0.0, 0.3]]
    """
    d = len(guess)
    rows, columns, _ = (part[1:] for part in places(d))  # the constant times itself is one
    square = rows == columns
    groups = np.where(square, 0, np.where(rows == 0, 1, 2))
    aim = packed(guess)[1:]
    low = np.where(square, 0.0, -1.0)
    values, precisions = values_of(asked[rows, columns], ones[rows, columns], low, np.ones(len(rows)), rate)
    if declared is not None:
        every = BitAnswers(
            np.concatenate([np.eye(1 + len(aim))[1:], pairs.combinations]),
            np.concatenate([values, pairs.values]),
            np.concatenate([precisions, pairs.precisions]),
            np.concatenate([low, np.zeros(0) if pairs.low is None else pairs.low]),
            np.concatenate([np.ones(len(rows)), np.zeros(0) if pairs.high is None else pairs.high]),
        )
        return _learn_free(every, rate, guess, declared)
    told = pairs.combinations[:, 1:]
    weighted = told * pairs.precisions[:, None]
    information = weighted.T @ told
    information[np.diag_indices(len(aim))] += precisions
    # everything is counted from the guess
    heard = precisions * (values - aim) + weighted.T @ (pairs.values - pairs.combinations[:, 0] - told @ aim)
    found, covariance = _shrunk(information, heard, groups, POSSIBLE)
    steady, steady_covariance = _shrunk(information, heard, groups, BELIEVED)
    noise = unpacked(np.concatenate(([0.0], np.diag(steady_covariance))), d)
    return Moments(
        _possible(unpacked(np.concatenate(([1.0], aim + found)), d), np.zeros((d, d))),
        _padded(covariance),
        _possible(unpacked(np.concatenate(([1.0], aim + steady)), d), noise),
        _padded(steady_covariance),
    )


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
        _possible(unpacked(found, d), np.zeros((d, d))),
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
    found, covariance = _shrunk(weighted.T @ told, heard, frame.groups, prior)
    return aim + frame.free @ found, np.asarray(frame.free @ covariance @ frame.free.T)


def _shrunk(
    information: Floats, heard: Floats, groups: np.ndarray[tuple[int], np.dtype[np.int64]], prior: tuple[float, ...]
) -> tuple[Floats, Floats]:
    """Return posterior mean and covariance; each group has a mean and a spread, which weigh one entry beforehand."""
    members = [groups == group for group in range(len(prior))]
    counts = [int(np.count_nonzero(own)) for own in members]
    centres, spreads = np.zeros(len(prior)), np.square(prior)
    covariance, found = np.zeros_like(information), np.zeros(len(heard))
    for step in range(STEPS + 1):
        total = information.copy()
        precision = 1 / spreads[groups]
        total[np.diag_indices(len(heard))] += precision
        covariance = np.asarray(np.linalg.inv(total), dtype=np.float64)
        found = covariance @ (heard + precision * centres[groups])
        if step == STEPS:
            break
        variances = np.diag(covariance)
        for group, (own, count) in enumerate(zip(members, counts, strict=True)):
            if count:
                centre = float(found[own].sum()) / (1 + count)
                # the fixed point of expectation and maximisation, reached faster (MacKay 1992)
                learnt = max(count - float(variances[own].sum()) / spreads[group], 0.0)
                beyond = float(np.square(found[own] - centre).sum())
                centres[group] = centre
                spreads[group] = max((prior[group] ** 2 + beyond) / (1 + learnt), LEAST * prior[group] ** 2)
    return found, covariance


def _padded(covariance: Floats) -> Floats:
    """Return the covariance with the entry that is known: the constant times itself."""
    return np.pad(covariance, ((1, 0), (1, 0)))


def certain(matrix: Floats) -> Moments:
    """Return moments that need not be learnt."""
    entries = len(packed(matrix))
    nothing = np.zeros((entries, entries))
    return Moments(matrix, nothing, matrix, nothing)


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

"""What a run knows after some segments of people: moments, noise, slope and curvature of every level."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.questions import FAR, TIGHT
from sottovoce.server.regression.dithered.gain import curvature_prior
from sottovoce.server.regression.dithered.moments import Moments, certain, learn_moments, whitened, whitener
from sottovoce.server.regression.dithered.slope import Dithers, Slope, learn_slope
from sottovoce.server.regression.dithered.study import DitheredStudy, DitheredTerms
from sottovoce.server.regression.dithered.sums import PRODUCT, Sums, no_sums
from sottovoce.server.regression.shrinkage import spread_about

DROPPED = 0.03  # of the people: the first, whose points were far off, are left out of the root (decision 0016)
CAUTION = 2.4  # times: the guessed square of the size over the one believed in; a square 4 times too large cost up to
# 26 % of error where information is small, one too small is soon corrected (decision 0022)
TRUST = 0.4  # noiseless coefficients that the guessed size weighs (decision 0022)
PRIOR_PEOPLE = 20  # people a coefficient that the predicted noise of a gradient weighs


class LookSegment(NamedTuple):
    """The people between two looks: how many came before and up to them, their sums, and how they were dithered."""

    first: int
    last: int
    sums: Sums
    directions: Floats  # (levels, d, d)
    sizes: Floats  # (2, levels)


class Knowledge(NamedTuple):
    """Moments of the covariates; noise and slope of the gradient at each level."""

    moments: Moments
    omegas: Floats  # (levels, d, d)
    slopes: tuple[Slope, ...]
    dithers: tuple[Dithers, ...]
    window: Sums  # without the first people
    whole: Sums

    def relative_variance(self, level: int, contrast: Floats, confident: bool = False) -> float:
        """Return the relative variance of the standard error of a contrast, from what is not known of the slope.

        ``confident`` believes the guesses, and takes the density for known.
        """
        return float(self.relative_variances(level, contrast[:, None], confident)[0])

    def relative_variances(self, level: int, contrasts: Floats, confident: bool = False) -> Floats:
        """Return that relative variance for each column of ``contrasts``."""
        slope, omega = self.slopes[level], self.omegas[level]
        variances = (slope.confident if confident else slope.variances) * slope.density**2
        carried = _carried(slope.matrix, omega, slope.root, variances, contrasts)
        return carried + (0.0 if confident else slope.density_variance)

    def moment_variances(self, level: int, contrasts: Floats) -> Floats:
        """Return the same relative variances if the slope followed from the moments, as the bits alone tell them."""
        root = whitener(self.moments.open_minded)
        variances = whitened(self.moments.raw, root)
        return _carried(self.moments.open_minded, self.omegas[level], root, variances, contrasts)

    def worst_relative_sd(self, confident: bool = False) -> float:
        """Return the largest relative standard deviation of a coefficient's standard error."""
        axes = np.eye(self.omegas.shape[1])
        return float(
            np.sqrt(max(self.relative_variances(level, axes, confident).max() for level in range(len(self.slopes))))
        )


def _carried(slope: Floats, omega: Floats, root: Floats, variances: Floats, contrasts: Floats) -> Floats:
    """Carry the variances of the whitened slope's entries over to the relative variance of standard errors.

    With u = H^-1 a and w = H^-1 Omega u the variance of a contrast is s = u' Omega u, and ds = -2 u' dH w; dH is
    symmetric, so an entry off the diagonal counts with u_j w_k + u_k w_j.
    """
    u = np.linalg.solve(slope, contrasts)
    w = np.linalg.solve(slope, omega @ u)
    back = np.linalg.inv(root)
    left, right = back @ u, back @ w
    both = left * right
    apart = variances - np.diag(np.diag(variances))
    entries = np.einsum("ja,jk,ka->a", left**2, apart, right**2) + np.einsum("ja,jk,ka->a", both, apart, both)
    entries += np.diag(variances) @ both**2
    return np.asarray(entries / np.einsum("ja,jk,ka->a", u, omega, u) ** 2)


def total(segments: Sequence[LookSegment], levels: int, d: int, since: float = -1.0) -> Sums:
    """Add the sums of all segments that end after ``since``."""
    sums = no_sums(levels, d)
    for segment in segments:
        if segment.last > since:
            for into, part in zip(sums, segment.sums, strict=True):
                into += part
    return sums


def learn_all(study: DitheredStudy, segments: Sequence[LookSegment]) -> Knowledge:
    """Return what the segments tell."""
    levels, d = study.levels, study.d
    people = segments[-1].last if segments else 0
    whole = total(segments, levels, d)
    window = total(segments, levels, d, DROPPED * people)
    weight = PRIOR_PEOPLE * d
    products = window.squares[PRODUCT] + np.transpose(np.tril(window.squares[PRODUCT], -1), (0, 2, 1))
    omegas = (products + weight * study.omega) / (window.counts[TIGHT] + weight)
    if study.exact:  # the exact score is x times its first coordinate, so its noise shows the moments
        tau = study.channel.taus[0]
        moments = certain(omegas[0] / (tau * (1 - tau)))
    elif study.known:
        moments = certain(study.moments)
    else:
        moments = learn_moments(whole.moments[0], whole.moments[1], study.bit_rate, study.moments)
    dithers = tuple(_dithers(segments, level, d) for level in range(levels))
    slopes = tuple(
        learn_slope(dithers[level], omegas[level], moments, float(study.density[level]), curvature_prior(float(tail)))
        for level, tail in enumerate(study.tails)
    )
    return Knowledge(moments, omegas, slopes, dithers, window, whole)


def coefficients_size(study: DitheredTerms, knowledge: Knowledge, level: int) -> float:
    """Return the length of the coefficients about the start: the guess, corrected by what is known of the root.

    Less than half of the guessed square is believed in: too large a guess would let noise through while little is
    known, and too small a one is soon corrected.
    """
    sums, slope, d = knowledge.whole, knowledge.slopes[level], study.d
    n = float(sums.counts[: FAR + 1].sum())
    prior = study.size / np.sqrt(CAUTION * d)
    if n == 0:
        return float(prior * np.sqrt(d))
    point, gradient = sums.vectors[:, :, level].sum(axis=0) / n
    inverse = np.linalg.inv(slope.matrix)
    variances = np.diag(inverse @ knowledge.omegas[level] @ inverse.T) / n
    return float(np.sqrt(d * spread_about(point - inverse @ gradient, variances, prior, trust=TRUST)))


def _dithers(segments: Sequence[LookSegment], level: int, d: int) -> Dithers:
    people, cross, gram, square, fourth = (
        np.zeros(2),
        np.zeros((2, d, d)),
        np.zeros((2, d, d)),
        np.zeros(2),
        np.zeros(2),
    )
    for segment in segments:
        for size in range(2):
            n, h, turn = segment.sums.counts[1 + size], segment.sizes[size, level], segment.directions[level]
            people[size] += n
            cross[size] += h * segment.sums.squares[size, level] @ turn.T
            gram[size] += n * h**2 * turn @ turn.T
            square[size] += n * h**2
            fourth[size] += n * h**4
    return Dithers(people, cross, gram, fourth / np.maximum(square, 1e-300))

"""What a run knows after some segments of people: moments, noise, slope and curvature of every level.

The slope is learnt from the people who were asked beside the point. A gradient D asked at point + dither has mean H
dither, so sum(D dither') against sum(dither dither') is H: dithers are public and random, which spares it the bias that
the trajectory's own movements would bring. Two sizes of dither tell how the density changes with the distance, f(h) =
f (1 + curvature h^2), and the curvature is taken out. Whitened by the moments, H / f is close to the identity, and its
entries are shrunk towards it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.dithered.moments import (
    Moments,
    certain,
    learn_moments,
    pull,
    spread_about,
    whitened,
    whitener,
)
from sottovoce.protocol.regression.dithered.step import PRODUCT, Sums, no_sums
from sottovoce.protocol.regression.dithered.study import DitheredStudy, DitheredTerms
from sottovoce.protocol.regression.questions import FAR, TIGHT

FEW = 5  # people of one size of dither without whom it says nothing
# spread of the whitened entries, believed and thought possible: set on the catalogue's tuning designs (decision 0020)
DIAGONAL, CROSSES = (0.15, 0.3), (0.06, 0.15)
DENSITY_SD = 0.5  # relative standard deviation of the guessed density: guesses are wrong by a factor 2 (decision 0017)
LOWEST, HIGHEST = 0.2, 8.0  # the density, in units of its guess
CURVATURE = (-0.6, 1.5)  # the density's curvature at the far dither, which no usual distribution leaves (decision 0018)
FLATTEST = 0.1  # eigenvalue of the whitened slope: a smaller one is noise (decision 0020)
# the far dither moves the distribution function by at most so much, of tau and in all: larger ones saw the density rise
# at tau .9 and covered .85 to .90 (decision 0018)
STEEP, FARTHEST = 0.55, 0.25


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


def reach(tail: float) -> float:
    """Return by how much the far dither moves the distribution function; ``tail`` is min(tau, 1 - tau)."""
    return min(FARTHEST, STEEP * tail)


def curvature_prior(tail: float) -> tuple[float, float]:
    """Return mean and standard deviation of how much denser it is at the far dither, before anybody has answered.

    Distributions are peaked, and thin out in the tails: the line through ratios (F(h) - F(-h)) / 2hf of common ones at
    tail .5, .25 and .1, in units of the squared reach (decision 0018).
    """
    steep = (reach(tail) / tail) ** 2
    return (0.85 - 3.2 * tail) * steep, 0.6 * steep + 0.05


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


def total(segments: Sequence[LookSegment], levels: int, d: int) -> Sums:
    """Add the sums of segments."""
    sums = no_sums(levels, d)
    for segment in segments:
        for into, part in zip(sums, segment.sums, strict=True):
            into += part
    return sums


def learn_all(study: DitheredStudy, *runs: Sequence[LookSegment]) -> Knowledge:
    """Return what the segments of one run tell, or those of several runs together."""
    levels, d = study.levels, study.d
    segments = [segment for run in runs for segment in run]
    whole = total(segments, levels, d)
    late = [segment for run in runs for segment in run if segment.last > DROPPED * run[-1].last]
    window = total(late, levels, d)
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

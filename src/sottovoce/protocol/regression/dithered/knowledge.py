"""What a run knows after some segments of people: moments, noise and slope of every level, and its doubt of them.

The standard error of a contrast ``a`` is sqrt(u' Omega u / n) with u = H^-1 a. An error dH of the slope changes its
logarithm by -u' dH w / (u' Omega u), w = H^-1 Omega u: one number of H for each coefficient. Its variance is the
contrast's doubt, which decides what people are asked, and how much wider an interval is.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.dithered.density import learn_density, reach
from sottovoce.protocol.regression.dithered.functionals import answers, banned
from sottovoce.protocol.regression.dithered.moments import Moments, certain, learn_moments, spread_about
from sottovoce.protocol.regression.dithered.segments import (
    INTERCEPT_WAYS,
    Beside,
    LookSegment,
    Stacked,
    Tight,
    beside,
    noise,
    stacked,
    tight,
)
from sottovoce.protocol.regression.dithered.slope import Heard, Slope, learn_slope, scaled_slope
from sottovoce.protocol.regression.dithered.spread import carried, is_apart
from sottovoce.protocol.regression.dithered.step import SIGNED
from sottovoce.protocol.regression.dithered.study import DitheredStudy, DitheredTerms

# parts of the people, the first: their points were far off, and one of these is left out of the root, by what it costs
DROPS = (0.03, 0.1, 0.2, 0.35, 0.5)
CAUTION = 2.4  # times: the guessed square of the size over the one believed in; a square 4 times too large cost up to
# 26 % of error where information is small, one too small is soon corrected (decision 0022)
TRUST = 0.4  # noiseless coefficients that the guessed size weighs (decision 0022)
PRIOR_PEOPLE = 20  # people a coefficient that the predicted noise of a gradient weighs
KURTOSIS = 2.0  # of a way along the covariates: it sees more of the bend than its length says
TOO_FAR = 4.0  # times the square of the far distance: what people say of a way is not read, if it was longer
BENT = (0.4, 2.5)  # the density at a way's end over that at the point, at most


class Functionals(NamedTuple):
    """For each contrast a: u = H^-1 a, w = H^-1 Omega u, and u' Omega u; its standard error depends on u' H w."""

    u: Floats  # (contrasts, d)
    w: Floats
    variances: Floats  # (contrasts,)

    def doubt(self, spread: Floats) -> Floats:
        """Return the variances of the logarithms of the standard errors, if H is known within a spread."""
        return carried(self.u, self.w, spread) / np.square(self.variances)


class Knowledge(NamedTuple):
    """Moments of the covariates; noise and slope of the gradient at each level; sums of all people and of the late."""

    moments: Moments
    omegas: Floats  # (levels, d, d)
    slopes: tuple[Slope, ...]
    windows: tuple[Tight, ...]  # without the first people, by each of the drops
    whole: Tight
    beside: Beside
    banned: tuple[bool, ...]  # pairs whose products are not moved to a range any more

    def functionals(self, level: int, contrasts: Floats, steady: bool = False) -> Functionals:
        """Return what of H the standard errors of contrasts, the columns, depend on."""
        slope, omega = self.slopes[level], self.omegas[level]
        inverse = np.linalg.inv(slope.steady if steady else slope.matrix)
        u = inverse @ contrasts
        w = inverse @ (omega @ u)
        return Functionals(u.T, w.T, np.asarray((u * (omega @ u)).sum(axis=0)))

    def relative_variances(self, level: int, contrasts: Floats) -> Floats:
        """Return the doubt of each contrast: the relative variance of its standard error."""
        return self.functionals(level, contrasts).doubt(self.slopes[level].covariance)

    def relative_variance(self, level: int, contrast: Floats) -> float:
        """Return the doubt of a contrast."""
        return float(self.relative_variances(level, contrast[:, None])[0])

    def worst_relative_sd(self) -> float:
        """Return the largest relative standard deviation of a coefficient's standard error."""
        axes = np.eye(self.omegas.shape[1])
        return float(np.sqrt(max(self.relative_variances(level, axes).max() for level in range(len(self.slopes)))))

    def steady_sd(self, level: int) -> float:
        """Return the same of one level, if the guesses are believed and the density is known."""
        found = self.functionals(level, np.eye(self.omegas.shape[1]), steady=True)
        return float(np.sqrt(found.doubt(self.slopes[level].steady_covariance).max()))


def learn_all(study: DitheredStudy, *runs: Sequence[LookSegment], drops: Sequence[float] = DROPS[:1]) -> Knowledge:
    """Return what the segments of one run tell, or those of several runs together.

    A look needs one of the ``drops`` only, and a root all of them.
    """
    levels, d = study.levels, study.d
    told = stacked([segment for run in runs for segment in run], levels, d)
    windows = tuple(tight(late(runs, drop), levels, d) for drop in drops)
    weight = PRIOR_PEOPLE * d
    omegas = (noise(windows[0]) + weight * study.omega) / (windows[0].people + weight)
    moments, without = _moments(study, omegas, told)
    slopes = tuple(_slope(study, level, omegas[level], moments, told) for level in range(levels))
    return Knowledge(
        moments,
        omegas,
        slopes,
        windows,
        tight([segment for run in runs for segment in run], levels, d),
        beside(told, moments.matrix),
        without,
    )


def late(runs: Sequence[Sequence[LookSegment]], drop: float) -> list[LookSegment]:
    """Return the segments without a part of each run's people, the first."""
    return [segment for run in runs for segment in run if segment.last > drop * run[-1].last]


def _moments(study: DitheredStudy, omegas: Floats, told: Stacked) -> tuple[Moments, tuple[bool, ...]]:
    """Return the moments, and which pairs are asked within their whole range alone."""
    without = banned(told, study.bit_rate)
    if study.exact:  # the exact score is x times its first coordinate, so its noise shows the moments
        tau = study.channel.taus[0]
        return certain(omegas[0] / (tau * (1 - tau))), without
    if study.known:
        return certain(study.moments), without
    heard = answers(told, without, study.bit_rate)
    found = learn_moments(told.products[0], told.products[1], study.bit_rate, study.moments, heard, study.declared)
    return found, without


def _slope(study: DitheredStudy, level: int, omega: Floats, moments: Moments, told: Stacked) -> Slope:
    """Return the slope of one level."""
    tail, ways = float(study.tails[level]), told.ways[:, :, level]
    signed, intercept = told.besides[:, SIGNED, :, level], slice(0, INTERCEPT_WAYS)
    sizes = ways[:, intercept, 0].ravel()
    density = learn_density(
        told.people[:, intercept].ravel(),
        np.where(sizes > 0, sizes, 1.0),
        signed[:, intercept, 0].ravel(),
        float(omega[0, 0]),
        float(study.density[level]),
        tail,
    )
    if is_apart(study.d):  # the density alone is asked for, and told
        return scaled_slope(moments, density)
    far = ((ways @ moments.matrix) * ways).sum(axis=2) * (density.value / reach(tail)) ** 2
    heard = told.people * (far < TOO_FAR)
    signed = signed * (far < TOO_FAR)[:, :, None]
    far[:, INTERCEPT_WAYS:] *= KURTOSIS
    bent = np.clip(1 + density.bend * far, *BENT)
    flat, weights = ways.reshape(-1, study.d), (heard * bent**2).ravel()
    gradients = (signed * bent[:, :, None]).reshape(-1, study.d)
    return learn_slope(Heard(flat.T * weights @ flat, gradients.T @ flat), omega, moments, density)


def coefficients_size(study: DitheredTerms, knowledge: Knowledge, level: int) -> float:
    """Return the length of the coefficients about the start: the guess, corrected by what is known of the root.

    Less than half of the guessed square is believed in: too large a guess would let noise through while little is
    known, and too small a one is soon corrected.
    """
    d, whole, others = study.d, knowledge.whole, knowledge.beside
    n = whole.people + others.people
    prior = study.size / np.sqrt(CAUTION * d)
    if n == 0:
        return float(prior * np.sqrt(d))
    point, gradient = (whole.vectors[:, level] + others.vectors[:, level]) / n
    inverse = np.linalg.inv(knowledge.slopes[level].steady)
    variances = np.diag(inverse @ knowledge.omegas[level] @ inverse.T) / n
    return float(np.sqrt(d * spread_about(point - inverse @ gradient, variances, prior, trust=TRUST)))

"""What a run knows after some segments of people: moments, noise and slope of every level, and its doubt of them.

The standard error of a contrast ``a`` is sqrt(u' Omega u / n) with u = H^-1 a. An error dH of the slope changes its
logarithm by -u' dH w / (u' Omega u), w = H^-1 Omega u: one number of H for each coefficient. Its variance is the
contrast's doubt, which decides what people are asked, and how much wider an interval is.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.dithered.density import FARTHEST_SEEN, SWING, learn_density, reach
from sottovoce.protocol.regression.dithered.functionals import answers, banned
from sottovoce.protocol.regression.dithered.moments import Moments, certain, heard_of, learn_moments, spread_about
from sottovoce.protocol.regression.dithered.segments import (
    INTERCEPT_WAYS,
    LookSegment,
    Stacked,
    Tight,
    noise,
    stacked,
    swings,
    tight,
)
from sottovoce.protocol.regression.dithered.slope import Heard, Slope, learn_slope, scaled_slope
from sottovoce.protocol.regression.dithered.spread import carried, is_apart
from sottovoce.protocol.regression.dithered.step import POINT
from sottovoce.protocol.regression.dithered.study import DitheredStudy, DitheredTerms
from sottovoce.protocol.regression.dithered.turned import Curve, curve_of, turned
from sottovoce.protocol.regression.dithered.vech import packed

# parts of the people, the first: their points were far off, and one of these is left out of the root, by what it costs
DROPS = (0.03, 0.1, 0.2, 0.35, 0.5)
CAUTION = 2.4  # times: the guessed square of the size over the one believed in; a square 4 times too large cost up to
# 26 % of error where information is small, one too small is soon corrected (decision 0022)
TRUST = 0.4  # noiseless coefficients that the guessed size weighs (decision 0022)
PRIOR_PEOPLE = 20  # people a coefficient that the predicted noise of a gradient weighs, among so many
SURE = 0.5  # doubt, as a standard deviation, up to which steps go by the slope that the people tell
TOO_FAR = 4.0  # times the square of the far distance: what people say of a way is not read, if it was longer


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
    curves: tuple[Curve, ...]  # of the first coordinate of each level
    banned: tuple[bool, ...]  # pairs whose products are not moved to a range any more

    def without_joint(self) -> "Knowledge":
        """Return the same without what only asks people, which is large."""
        nothing_of = np.zeros((0, 0))
        return self._replace(slopes=tuple(slope._replace(joint=nothing_of) for slope in self.slopes))

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

    def believed(self, level: int) -> Floats:
        """Return the slope that steps go by: as the guess is believed, until no coefficient's is much in doubt."""
        slope = self.slopes[level]
        return (
            slope.matrix if self.relative_variances(level, np.eye(len(slope.matrix))).max() < SURE**2 else slope.steady
        )

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
    weight = (PRIOR_PEOPLE * d) ** 2 / (PRIOR_PEOPLE * d + windows[0].people)
    omegas = (noise(windows[0]) + weight * study.omega) / (windows[0].people + weight)
    moments, without = _moments(study, omegas, told)
    settled = np.concatenate([_settled(run, drops[0], levels, d) for run in runs if run] or [np.zeros((1, levels, d))])
    found = [_slope(study, level, omegas[level], moments, told, settled[:, level]) for level in range(levels)]
    return Knowledge(
        moments,
        omegas,
        tuple(slope for slope, _ in found),
        windows,
        tight([segment for run in runs for segment in run], levels, d),
        tuple(curve for _, curve in found),
        without,
    )


def _settled(run: Sequence[LookSegment], drop: float, levels: int, d: int) -> Floats:
    """Return for each segment of a run where the run's late points lie."""
    sums = tight(late([run], drop), levels, d)
    return np.repeat(sums.vectors[POINT][None] / max(sums.people, 1.0), len(run), axis=0)


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
    letters = heard_of(told.overheard, study.overheard.rounding)
    found = learn_moments(told.products, study.bit_rate, study.moments, heard, letters, study.declared)
    return found, without


def _slope(
    study: DitheredStudy, level: int, omega: Floats, moments: Moments, told: Stacked, settled: Floats
) -> tuple[Slope, Curve]:
    """Return slope and curvature of one level; ``settled`` is where the late points of each segment's run lie."""
    tail, tau, intercept = float(study.tails[level]), study.taus[level], slice(0, INTERCEPT_WAYS)
    found = turned(told, level, tau, study.bit_rate, packed(moments.matrix), study.exact)
    curve = curve_of(told, found, level, tau, omega)
    swing = SWING * swings(told, level, settled, moments.matrix)[:, None]
    sizes = np.maximum(found.steps[:, intercept], 1e-300)
    density = learn_density(
        (found.values[:, intercept] / sizes).ravel(),
        (found.precisions[:, intercept] * sizes**2).ravel(),
        (sizes**2 + swing).ravel(),
        float(study.density[level]),
        tail,
    )
    if is_apart(study.d):  # the density alone is asked for, and told
        return scaled_slope(moments, density), curve
    unit = (density.value / reach(tail)) ** 2
    squares = found.steps**2
    used = (squares * unit < TOO_FAR) & (found.precisions > 0)
    distances = np.minimum(unit * (squares + swing), FARTHEST_SEEN)[used]
    sides = np.zeros(squares.shape)
    sides[:, intercept] = 1.0
    heard = Heard(found.combinations[used], distances, found.values[used], found.precisions[used], sides[used])
    return learn_slope(heard, omega, moments, density), curve


def coefficients_size(study: DitheredTerms, knowledge: Knowledge, level: int) -> float:
    """Return the length of the coefficients about the start: the guess, corrected by what is known of the root.

    Less than half of the guessed square is believed in: too large a guess would let noise through while little is
    known, and too small a one is soon corrected.
    """
    d, whole = study.d, knowledge.whole
    n = whole.people
    prior = study.size / np.sqrt(CAUTION * d)
    if n == 0:
        return float(prior * np.sqrt(d))
    point, gradient = whole.vectors[:, level] / n
    inverse = np.linalg.inv(knowledge.believed(level))
    variances = np.diag(inverse @ knowledge.omegas[level] @ inverse.T) / n
    return float(np.sqrt(d * spread_about(point - inverse @ gradient, variances, prior, trust=TRUST)))

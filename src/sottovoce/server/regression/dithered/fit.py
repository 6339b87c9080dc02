"""The estimate of a dithered run, and its intervals.

Point: the root of the regression over all people (without the first ones, once there are plenty), shrunk towards the
start by as much as the guess is worth.
Interval: the root over all but the first people (`root`), with the noise of a gradient carried through H^-1. What is
not known of H makes the standard error itself uncertain: with its logarithm off by a normal error of variance
``doubt``, the half-length z s exp((z^2 - 1) / 2 doubt) covers as it should to second order. So an interval grows with
the doubt; where nothing is known of its direction, or the points have not settled yet, it has no ends.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri
from scipy.stats import chi2

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.inference.regression.region import Ellipsoid, normal_ellipsoid
from sottovoce.protocol.regression.dithered.knowledge import Knowledge, coefficients_size
from sottovoce.protocol.regression.dithered.state import DitheredState, gain, know
from sottovoce.protocol.regression.dithered.step import GRADIENT, POINT
from sottovoce.protocol.regression.dithered.study import DitheredStudy, DitheredTerms
from sottovoce.server.regression.dithered.root import Root, find_root, square_about
from sottovoce.server.regression.dithered.runs import know_runs

PLENTY = 20  # times the people who are worth the guess: from then on the first ones may be left out (decision 0017)
# times the people who are worth the guess: an interval's need shows, and is, typically (decision 0021)
SETTLED, TYPICAL = 10, 130
FAR_OFF = 0.3  # of the dithers' square: up to there they see the same curvature as the points (decision 0021)
APART = 1.5  # standard errors between a point and the middle of its interval, at most (decision 0081)
EARLIEST = 1000  # people: fewer are never said to be enough
HOLLOW = 0.35  # more than a usual density it bends: seen in none of 29 designs (decision 0090)
DETERMINED = 0.45  # doubt, as a standard deviation, up to which a coefficient counts as determined (decision 0076)
NOTHING = 2.0  # and from which on nothing is known of it, and its interval has no ends (decision 0081)
LONGEST = 300.0  # times: a doubt that makes an interval longer leaves it no ends either
# people needed, in those so far, at the doubt up to which a coefficient is determined; by what power of the doubt they
# grow, and up to what doubt: early doubts differ by a factor 10 between two studies that need as many (decision 0081)
MORE, FALL, LARGEST = 1.6, 0.25, 7.2


@dataclass(frozen=True, eq=False)
class DitheredFit:
    """Estimate and intervals after some people: the terms of the study, and what the people tell."""

    study: DitheredTerms
    people: int
    knowledge: Knowledge

    @staticmethod
    def of(study: DitheredStudy, *states: DitheredState) -> "DitheredFit":
        """Return the fit to all people so far; of several runs, the mean of their roots, each by its people."""
        found = know(study, states[0]) if len(states) == 1 else know_runs(study, states)
        return DitheredFit(study, sum(state.people for state in states), found.without_joint())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what the user should know of the fit."""
        hollow = [
            f"{tau:g}"
            for tau, slope in zip(self.study.taus, self.knowledge.slopes, strict=True)
            if slope.density.bend - slope.density.prior > HOLLOW
        ]
        if not hollow:
            return ()
        return (
            f"responses are denser on both sides of the quantile at tau {' and '.join(hollow)} than at it, as between "
            "two groups: intervals there may be too short; add what tells the groups apart as a covariate",
        )

    @cached_property
    def roots(self) -> tuple[Root, ...]:
        """Return the root of every level."""
        return tuple(find_root(self.study, self.knowledge, level) for level in range(self.study.levels))

    @cached_property
    def point(self) -> Floats:
        """Return the point estimates, (levels, d)."""
        return np.array([self._point(level) for level in range(self.study.levels)])

    def doubt(self, index: int, contrast: Floats) -> float:
        """Return the relative standard deviation of a contrast's standard error."""
        return math.sqrt(self.knowledge.relative_variance(index, contrast))

    def determined(self, index: int, contrast: Floats) -> bool:
        """Tell whether the people tell enough of a contrast to rely on its estimate."""
        return self._settled(index) and self.doubt(index, contrast) <= DETERMINED

    def _settled(self, index: int) -> bool:
        """Tell whether the points have had the people to settle."""
        return self.people >= SETTLED * float(np.mean(_worth(self.study, index)))

    def _point(self, level: int) -> Floats:
        study, knowledge, slope = self.study, self.knowledge, self.knowledge.believed(level)
        size = coefficients_size(study, knowledge, level)
        left, _, need = gain(slope, knowledge.omegas[level], size)
        sums = knowledge.windows[0] if self.people > PLENTY * need.max() else knowledge.whole
        n, curve = sums.people, knowledge.curves[level]
        if n == 0:
            return np.asarray(study.start[level])
        mean = sums.vectors[:, level] / n
        off = mean[POINT] - np.linalg.solve(slope, mean[GRADIENT])
        square = square_about(sums, level, off, knowledge.moments.steady)
        if square < FAR_OFF * curve.half:  # else the curvature that is seen beside the point is not the points'
            off = off + np.linalg.solve(slope, self.roots[level].gradient * square)
        point = study.start[level] + left @ (n / (n + need) * np.linalg.solve(left, off))
        return self._near_root(level, point)

    def _near_root(self, level: int, point: Floats) -> Floats:
        """Keep the coefficients that are determined within some standard errors of the middle of their interval."""
        root = self.roots[level]
        known = self.knowledge.relative_variances(level, np.eye(self.study.d)) <= DETERMINED**2
        reach = np.where(known, APART * np.sqrt(np.diag(root.covariance)), np.inf)
        return np.clip(point, root.place - reach, root.place + reach)

    def needed(self, index: int | None = None, contrast: Floats | None = None) -> int:
        """Return about how many people determine a contrast of one level (None: every coefficient, or every level).

        At most as many as there are if it is determined; else about the same between studies alike, within a factor 2.
        """
        axes = np.eye(self.study.d) if contrast is None else contrast[:, None]
        levels = range(self.study.levels) if index is None else [index]
        return max(self._people_for(level, axes) for level in levels)

    def _people_for(self, index: int, contrasts: Floats) -> int:
        if not self._settled(index):  # too early to tell from the people
            worth = float(np.mean(_worth(self.study, index)))
            return two_digits(max(TYPICAL * worth, 1.2 * self.people, EARLIEST))
        own, all_ = (
            np.sqrt(self.knowledge.relative_variances(index, each)) for each in (contrasts, np.eye(self.study.d))
        )
        if own.max() <= DETERMINED:
            return self.people
        doubts = np.concatenate([own, all_])
        # what is in doubt is so for the same reason: their mean differs less between studies than each of them
        pooled = np.log(np.minimum(doubts[~(doubts <= DETERMINED)], LARGEST) / DETERMINED).mean()
        return two_digits(MORE * math.exp(FALL * float(pooled)) * self.people)

    def interval(self, index: int, contrast: Floats, level: float) -> tuple[float, float]:
        """Return the interval of a contrast of one level's coefficients; without ends where nothing is known of it."""
        if not np.any(contrast):
            raise BadInput("a contrast of zeros has no interval; give a vector with an entry that is not zero.")
        z, doubt = float(ndtri((1 + level) / 2)), self.doubt(index, contrast)
        longer = (z**2 - 1) / 2 * doubt**2
        if not self._known(index, doubt) or longer > math.log(LONGEST):
            return -math.inf, math.inf
        root = self.roots[index]
        middle = float(contrast @ root.place)
        half = z * math.sqrt(float(contrast @ root.covariance @ contrast)) * math.exp(longer)
        return middle - half, middle + half

    def missing(self, index: int, contrast: Floats | None = None) -> str:
        """Say why a contrast's interval has no ends, or all coefficients have no ellipsoid, and what would help."""
        return (
            f"{self.people:,} people tell nothing of it yet, which needs about {self.needed(index, contrast):,}, "
            "within a factor of 2; ask more people, or allow a larger epsilon."
        )

    def ellipsoid(self, index: int, level: float) -> Ellipsoid:
        """Return the ellipsoid of one level's coefficients, which the worst doubt of them widens; or refuse.

        All of space is no ellipsoid.
        """
        d, root = self.study.d, self.roots[index]
        doubt = float(self.knowledge.relative_variances(index, np.eye(d)).max())
        longer = (float(chi2.ppf(level, d)) - d) * doubt
        if not self._known(index, math.sqrt(doubt)) or longer > 2 * math.log(LONGEST):
            raise Infeasible(self.missing(index))
        return normal_ellipsoid(root.place, root.covariance * math.exp(longer), level)

    def _known(self, index: int, doubt: float) -> bool:
        """Tell whether an interval says anything, and can be relied on."""
        return doubt < NOTHING and self._settled(index)


def _worth(study: DitheredTerms, level: int) -> Floats:
    """Return the people whom the public guess is worth, along each direction."""
    return gain(study.density[level] * study.moments, study.omega[level], study.size)[2]


def two_digits(people: float) -> int:
    """Return a number of people to two digits, rounded up.

    >>> two_digits(20_913), two_digits(97), two_digits(100)
    (21000, 97, 100)
    """
    unit = int(10 ** max(math.floor(math.log10(max(people, 1.0))) - 1, 0))
    return math.ceil(people / unit) * unit

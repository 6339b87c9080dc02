"""The estimate of a dithered run, and its intervals.

Point: the root of the regression over all people (without the first ones, once there are plenty), shrunk towards the
start by as much as the guess is worth.
Interval: the root ``mean point - H^-1 (mean gradient - curvature)`` over all but the first people, with the noise of a
gradient carried through H^-1. What is not known of H widens it as in Fieller's method: by
1 / sqrt(1 - z^2 v) with v the relative variance of a standard error (Fieller 1954). Curvature is that which dithers
saw, times half the mean of (x'(point - root))^2: points that swing see a bent distribution function, and people asked
farther off see more of its curvature.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.inference.regression.region import Ellipsoid, normal_ellipsoid
from sottovoce.protocol.regression.dithered.knowledge import Knowledge, coefficients_size
from sottovoce.protocol.regression.dithered.state import DitheredState, gain, know
from sottovoce.protocol.regression.dithered.step import GRADIENT, LOOKED, POINT, SPREAD, Sums
from sottovoce.protocol.regression.dithered.study import DitheredStudy, DitheredTerms
from sottovoce.protocol.regression.questions import FAR, NEAR, TIGHT
from sottovoce.server.regression.dithered.runs import know_runs

# of the dithers' square: the points' own, up to which the curvature they see is the dithers' (decision 0021)
FAR_OFF = 0.3
STEEPNESS = 1.5  # the density's slope, in units of density^2 / min(tau, 1 - tau), thought possible


@dataclass(frozen=True)
class Root:
    """Where the mean gradient of one level is zero, with the covariance of that place."""

    place: Floats
    covariance: Floats
    gradient: Floats  # what curvature adds to the mean gradient, per unit of square
    nearness: float  # square of the points over square of the dithers
    square: float  # of the points


def square_about(sums: Sums, level: int, place: Floats, knowledge: Knowledge) -> float:
    """Return half the mean square of x'(point - place) over the tight people; places are counted from the start."""
    spread = sums.squares[SPREAD, level] / max(float(sums.counts[LOOKED]), 1.0)
    spread = spread + np.tril(spread, -1).T
    mean = sums.vectors[TIGHT, POINT, level] / max(float(sums.counts[TIGHT]), 1.0)
    about = spread - np.outer(mean, place) - np.outer(place, mean) + np.outer(place, place)
    return max(0.5 * float(np.trace(knowledge.moments.matrix @ about)), 0.0)


def find_root(study: DitheredTerms, knowledge: Knowledge, level: int) -> Root:
    """Return the root of the regression, the curvature that the dithers saw taken out."""
    sums, slope, omega = knowledge.window, knowledge.slopes[level], knowledge.omegas[level]
    n = max(float(sums.counts[TIGHT]), 1.0)
    point, gradient = sums.vectors[TIGHT, :, level] / n
    inverse = np.linalg.inv(slope.matrix)
    place, curve, left = point - inverse @ gradient, np.zeros(study.d), np.zeros(study.d)
    dithers = knowledge.dithers[level]
    far = float(dithers.people @ dithers.square) / 2 / max(float(dithers.people.sum()), 1.0)
    steep = STEEPNESS * slope.density**2 / float(study.tails[level])
    possible = steep**2 * np.diag(knowledge.moments.matrix)
    square = nearness = 0.0
    for _ in range(3):
        square = square_about(sums, level, place, knowledge)
        nearness = square / far if far > 0 else math.inf
        seen, weight = np.zeros(study.d), 0.0
        for size in range(2):
            people, half = float(dithers.people[size]), float(dithers.square[size]) / 2
            if people > 0:
                theirs = knowledge.whole.vectors[1 + size, :, level] / people
                beyond = theirs[GRADIENT] - gradient - slope.matrix @ (theirs[POINT] - point)
                seen += people * half * beyond
                weight += people * half**2
        noise = np.diag(omega) / max(weight, 1e-300)
        left = possible / (1 + possible / noise)
        curve = seen / max(weight, 1e-300) / (1 + noise / possible) if nearness < FAR_OFF else np.zeros(study.d)
        place = point - inverse @ (gradient - curve * square)
    covariance = inverse @ (omega / n + np.diag(left) * square**2) @ inverse.T
    return Root(study.start[level] + place, covariance, curve, nearness, square)


LEAST_ROOM = 0.1  # of 1 - z^2 v: an interval three times as long as with a known slope (decision 0021)
PLENTY = 20  # times the people who are worth the guess: from then on the first ones may be left out (decision 0017)
# times the people who are worth the guess: an interval's need shows, and is, typically (decision 0021)
SETTLED, TYPICAL = 10, 130
APART = 0.6  # standard errors between a point and the middle of its interval (decision 0021)
# min(tau, 1 - tau), and relative standard deviation, from which on coverage is known to be lower (decision 0018)
THIN, SHAKY = 0.2, 0.18
EARLIEST = 1000  # people: fewer are never said to be enough
READY = 0.28  # relative standard deviation of a standard error up to which it is given (decision 0021)
VAGUE = 0.07  # relative variance of a standard error, by the moments as the bits alone tell them, likewise


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
        return DitheredFit(study, sum(state.people for state in states), found)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return where these intervals are known to cover less than they say."""
        near = max(root.nearness for root in self.roots) > FAR_OFF / 2
        uncertain = self.knowledge.worst_relative_sd() > SHAKY
        far = [f"{tau:g}" for tau, tail in zip(self.study.taus, self.study.tails, strict=True) if tail < THIN]
        if not far or not (near or uncertain):
            return ()
        return (
            f"intervals at tau {', '.join(far)} with {self.people:,} people have covered 87 to 93 % instead of 95 % on "
            "skewed or heavy-tailed responses; ask more people before relying on them.",
        )

    @cached_property
    def roots(self) -> tuple[Root, ...]:
        """Return the root of every level."""
        return tuple(find_root(self.study, self.knowledge, level) for level in range(self.study.levels))

    @cached_property
    def point(self) -> Floats:
        """Return the point estimates, (levels, d)."""
        return np.array([self._point(level) for level in range(self.study.levels)])

    def _point(self, level: int) -> Floats:
        study, knowledge, slope = self.study, self.knowledge, self.knowledge.slopes[level]
        size = coefficients_size(study, knowledge, level)
        left, _, need = gain(slope.matrix, knowledge.omegas[level], size)
        sums = knowledge.window if self.people > PLENTY * need.max() else knowledge.whole
        n = float(sums.counts[[TIGHT, NEAR, FAR]].sum())
        if n == 0:
            return np.asarray(study.start[level])
        place = self.roots[level].place - study.start[level]
        square = square_about(sums, level, place, knowledge) * float(sums.counts[TIGHT]) / n
        square += float(sums.counts[[NEAR, FAR]] @ knowledge.dithers[level].square) / 2 / n
        mean = sums.vectors[:, :, level].sum(axis=0) / n
        curve = self._shared_curve(level)
        off = mean[POINT] - np.linalg.solve(slope.matrix, mean[GRADIENT] - curve * square)
        point = study.start[level] + left @ (n / (n + need) * np.linalg.solve(left, off))
        return self._near_root(level, point)

    def _near_root(self, level: int, point: Floats) -> Floats:
        """Keep the coefficients whose interval can be given within some standard errors of its middle."""
        root = self.roots[level]
        known = self._excess(level, np.eye(self.study.d)) <= 1
        reach = np.where(known, APART * np.sqrt(np.diag(root.covariance)), np.inf)
        return np.clip(point, root.place - reach, root.place + reach)

    def _shared_curve(self, level: int) -> Floats:
        """Return the curvature as if it did not depend on the covariates: one number for all coordinates."""
        way = self.knowledge.moments.matrix[0]
        precision = np.linalg.solve(self.knowledge.omegas[level], way)
        return np.asarray(way * float(precision @ self.roots[level].gradient) / float(precision @ way))

    def needed(self, index: int = 0, contrast: Floats | None = None) -> int:
        """Return about how many people an interval of a contrast needs (None: of every coefficient of every level).

        At most as many as there are if the interval can be given.
        """
        if contrast is not None:
            return self._people_for(index, float(self._excess(index, contrast[:, None])[0]))
        axes = np.eye(self.study.d)
        return max(
            self._people_for(level, float(self._excess(level, axes).max())) for level in range(self.study.levels)
        )

    def _excess(self, index: int, contrasts: Floats) -> Floats:
        """Return how far the columns of ``contrasts`` are from being told well enough; at most one: they are."""
        variances = self.knowledge.relative_variances(index, contrasts) / READY**2
        vague = self.knowledge.moment_variances(index, contrasts) / VAGUE
        return np.maximum(np.maximum(variances, vague), self.roots[index].nearness / FAR_OFF)

    def _people_for(self, index: int, excess: float) -> int:
        if excess <= 1:
            return self.people
        worth = float(np.mean(_worth(self.study, index)))
        if self.people < SETTLED * worth or not math.isfinite(excess):  # too early to tell from the people
            return _rounded_up(max(TYPICAL * worth, 1.2 * self.people, EARLIEST))
        return _rounded_up(1.2 * excess * self.people)

    def interval(self, index: int, contrast: Floats, level: float) -> tuple[float, float]:
        """Return the interval of a contrast of one level's coefficients; refuse where too little is known."""
        if not np.any(contrast):
            raise BadInput("a contrast of zeros has no interval; give a vector with an entry that is not zero.")
        self._check_ready(self.needed(index, contrast))
        z = float(ndtri((1 + level) / 2))
        room = 1 - z**2 * self.knowledge.relative_variance(index, contrast)
        if room < LEAST_ROOM:
            needed = _rounded_up(1.2 * self.people * (1 - room) / (1 - LEAST_ROOM))
            raise Infeasible(
                f"an interval at level {level:g} needs about {needed:,} people, and {self.people:,} were asked; "
                "ask more people, or for a lower level."
            )
        root = self.roots[index]
        half = z * math.sqrt(float(contrast @ root.covariance @ contrast) / room)
        middle = float(contrast @ root.place)
        return middle - half, middle + half

    def ellipsoid(self, index: int, level: float) -> Ellipsoid:
        """Return the ellipsoid of one level's coefficients."""
        axes, root = np.eye(self.study.d), self.roots[index]
        self._check_ready(self._people_for(index, float(self._excess(index, axes).max())))
        variance = float(self.knowledge.relative_variances(index, axes).max())
        room = 1 - float(ndtri((1 + level) / 2)) ** 2 * variance
        if room < LEAST_ROOM:
            raise Infeasible(
                f"an ellipsoid at level {level:g} needs more than the {self.people:,} people asked; "
                "ask more people, or for a lower level."
            )
        return normal_ellipsoid(root.place, root.covariance / room, level)

    def _check_ready(self, needed: int) -> None:
        if needed > self.people:
            raise Infeasible(
                f"{self.people:,} people tell too little for an interval, which needs about {needed:,}; "
                "ask more people, or allow a larger epsilon."
            )


def _worth(study: DitheredTerms, level: int) -> Floats:
    """Return the people whom the public guess is worth, along each direction."""
    return gain(study.density[level] * study.moments, study.omega[level], study.size)[2]


def _rounded_up(people: float) -> int:
    """Return a number of people to two digits, rounded up."""
    unit = int(10 ** max(math.floor(math.log10(max(people, 1.0))) - 1, 0))
    return math.ceil(people / unit) * unit

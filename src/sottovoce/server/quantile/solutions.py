"""What each method leaves behind, seen alike: an estimate, an interval at any level, a test, a trajectory."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sottovoce.inference.common import normal
from sottovoce.inference.common.measured import p_value as student_p_value
from sottovoce.inference.common.measured import t_value
from sottovoce.inference.quantile import error_budgets, inversion, logit_curve, wealth
from sottovoce.inference.self_normalised import memory as self_normalised
from sottovoce.inference.self_normalised.critical_values import critical_value
from sottovoce.inference.self_normalised.critical_values import p_value as self_normalised_p_value
from sottovoce.inference.self_normalised.memory import Path, normaliser
from sottovoce.server.description import Interval
from sottovoce.server.quantile.certified.protocol import Certificate
from sottovoce.server.quantile.certified.sequence import Sequel
from sottovoce.server.quantile.fence import touching
from sottovoce.server.quantile.recursion import regression_root
from sottovoce.server.quantile.recursion import walk as sgd
from sottovoce.server.quantile.recursion.walk import Estimating, Row, Trajectory, WalkState, WalkStudy
from sottovoce.server.quantile.scarce import PRIOR, Fitted
from sottovoce.server.quantile.staged import Local

REMEMBERED = 12.0  # chosen on N(0,1) at rate .25, where it lifts coverage from .87-.94 to .94-.955
PROFILED = 12.0  # degrees of freedom of a likelihood ratio for each of the slope's: it has met most of its noise


class Solution(Protocol):
    """A finished method."""

    @property
    def point(self) -> float:
        """Return the estimate."""

    def interval(self, level: float) -> Interval:
        """Return the interval at a confidence level."""

    def p_value(self, value: float, alternative: str) -> float:
        """Return the p-value of a supposed quantile."""

    def trajectory(self, level: float) -> list[Row]:
        """Return the estimates and intervals on the way."""


@dataclass(frozen=True)
class StagedSolution:
    """The staged design: the test inverted on its stages.

    Where the last stage spoke against a smooth density and nobody was left to ask, the interval goes on to the fence
    (`server.quantile.fence`).
    """

    local: Local

    @property
    def point(self) -> float:
        """Return the root of the weighted stages."""
        return inversion.root(self.local.stages, self.local.centre, self.local.reach)

    def interval(self, level: float) -> Interval:
        """Invert the test at a level."""
        z, fence = normal.two_sided(level), self.local.fence
        found = inversion.invert(self.local.stages, self.local.centre, self.local.reach, z)
        smooth = Interval(found.low, found.high)
        return smooth if fence is None else fence.around(smooth, z)

    def p_value(self, value: float, alternative: str) -> float:
        """Return the p-value that agrees with the interval."""
        z = inversion.evidence(self.local.stages, self.local.centre, self.local.reach, value)
        if self.local.fence is not None and z != 0:
            z = math.copysign(touching(self.interval, value, abs(z)), z)
        return normal.p_value(-z, alternative)

    def trajectory(self, level: float) -> list[Row]:
        """Return what the first stages alone would have said, stage by stage."""
        z, rows = normal.two_sided(level), []
        for i, mark in enumerate(self.local.milestones, start=1):
            seen = inversion.invert(self.local.stages[:i], mark.centre, mark.reach, z)
            rows.append(Row(mark.rounds, mark.reports, seen.point, seen.low, seen.high))
        return rows


@dataclass(frozen=True)
class FittedSolution:
    """Pairs of points where records are scarce: the likelihood ratio of the curve, inverted; with a fence as above."""

    fitted: Fitted

    @property
    def point(self) -> float:
        """Return the root of the curve."""
        return self.fitted.measured.estimate

    def interval(self, level: float) -> Interval:
        """Invert the likelihood ratio at a level."""
        left = self.fitted
        low, high = logit_curve.invert(left.answers, PRIOR, left.curve, t_value(level, self._df))
        smooth = Interval(left.origin + left.unit * low, left.origin + left.unit * high)
        return smooth if left.fence is None else left.fence.around(smooth, normal.two_sided(level))

    def p_value(self, value: float, alternative: str) -> float:
        """Return the p-value that agrees with the interval."""
        left = self.fitted
        t = logit_curve.evidence(left.answers, PRIOR, left.curve, (value - left.origin) / left.unit)
        if left.fence is not None and t != 0:
            return normal.p_value(-math.copysign(touching(self.interval, value, math.inf), t), alternative)
        return student_p_value(-t, self._df, alternative)

    @property
    def _df(self) -> float:
        """Return the degrees of freedom of the likelihood ratio's signed root."""
        return PROFILED * self.fitted.measured.df

    def trajectory(self, level: float) -> list[Row]:
        """Return what was known after each pair: Student's intervals, and at last the answer."""
        marks = self.fitted.milestones
        ends = [mark.measured.interval(level) for mark in marks[:-1]] + [self.interval(level)]
        return [Row(m.rounds, m.reports, m.measured.estimate, *end) for m, end in zip(marks, ends, strict=True)]


@dataclass(frozen=True)
class CertifiedSolution:
    """The certified interval: error budgets folded over the evidence, at any level."""

    certificate: Certificate

    @property
    def point(self) -> float:
        """Return the estimate of the guide, from all answers."""
        return self.certificate.estimate

    def interval(self, level: float) -> Interval:
        """Return the certified interval; an end without a certificate is the bound, or infinite."""
        return self._within(error_budgets.interval(self.certificate.evidence, self.certificate.success, 1 - level))

    def p_value(self, value: float, alternative: str) -> float:
        """Return the p-value that agrees with the interval at every level."""
        evidence, success, (least, most) = self.certificate.evidence, self.certificate.success, self.certificate.bounds
        if not least < value <= most:
            low, high = (0.0, 1.0) if value <= least else (1.0, 0.0)
            return {"greater": low, "less": high}.get(alternative, 0.0)
        sides = {"greater": (-1,), "less": (1,)}.get(alternative, (-1, 1))
        return min(error_budgets.p_value(evidence, success, value, side) for side in sides)

    def trajectory(self, level: float) -> list[Row]:
        """Return estimate and interval after each round that was evidence."""
        rows, classes, seen = [], error_budgets.opened(np.array([1 - level])), 0
        for mark in self.certificate.milestones:
            for piece in self.certificate.evidence[seen : mark.evidence]:
                classes = error_budgets.heard(classes, piece, self.certificate.success)
            seen = mark.evidence
            ends = self._within(error_budgets.hull(classes))
            before = self.certificate.rounds_before, self.certificate.reports_before
            rows.append(Row(before[0] + mark.rounds, before[1] + mark.reports, mark.estimate, *ends))
        return rows

    def _within(self, ends: tuple[float, float]) -> Interval:
        """Keep an interval within the public bounds."""
        low, high = self.certificate.bounds
        return Interval(max(ends[0], low), min(ends[1], high))


@dataclass(frozen=True)
class SequenceSolution:
    """The confidence sequence: the wealth of classes after all wagers, which serves every level."""

    sequel: Sequel

    @property
    def point(self) -> float:
        """Return the estimate of the guide, from all answers."""
        return self.sequel.milestones[-1].estimate

    def interval(self, level: float) -> Interval:
        """Return the interval after the last round; an end without a certificate is the bound, or infinite."""
        return Interval(*self.sequel.interval(1 - level))

    def p_value(self, value: float, alternative: str) -> float:
        """Return the p-value that agrees with the interval at every level; it holds at every time."""
        if not self.sequel.bounds[0] < value <= self.sequel.bounds[1]:
            low, high = (0.0, 1.0) if value <= self.sequel.bounds[0] else (1.0, 0.0)
        else:
            low, high = wealth.p_values(wealth.told(self.sequel.wagers), value)
        return {"greater": low, "less": high}.get(alternative, min(low, high))

    def trajectory(self, level: float) -> list[Row]:
        """Return estimate and interval after each round, those of the sequence that it goes on from included."""
        rows, fortunes, seen = [], wealth.OPENING, 0
        for mark in self.sequel.milestones:
            fortunes, seen = wealth.told(self.sequel.wagers[seen : mark.wagers], fortunes), mark.wagers
            ends = self.sequel.within(wealth.reached(fortunes, 1 - level))
            rows.append(Row(mark.rounds, mark.reports, mark.estimate, *ends))
        return rows


DefaultSolution = StagedSolution | FittedSolution | CertifiedSolution


def staged_solution(left: Local | Fitted | Certificate) -> DefaultSolution:
    """Wrap what the default method left behind."""
    if isinstance(left, Certificate):
        return CertifiedSolution(left)
    return FittedSolution(left) if isinstance(left, Fitted) else StagedSolution(left)


@dataclass(frozen=True)
class Walked:
    """A finished walk: the last state, a few on the way, and the reports that the search before it took."""

    study: WalkStudy
    state: WalkState
    rows: tuple[WalkState, ...]
    searched: int

    @property
    def reports(self) -> int:
        """Return how many records answered, the search included."""
        return self.searched + sgd.reports(self.study, self.state)

    def _trajectory(self, estimate: Estimating, level: float) -> list[Row]:
        """Write a row for each kept state; rounds and reports of the search come first."""
        trajectory = Trajectory(self.study, estimate, level)
        for state in self.rows:
            trajectory(state)
        first, before = self.study.first, self.searched
        return [row._replace(round=row.round + first, reports=row.reports + before) for row in trajectory.rows]


@dataclass(frozen=True)
class RegressionSolution(Walked):
    """The root of the regression of reports on queries."""

    @property
    def point(self) -> float:
        """Return where the fitted line crosses."""
        return regression_root.estimate(self.study, self.state).point

    def interval(self, level: float) -> Interval:
        """Return the Fieller interval."""
        found = regression_root.estimate(self.study, self.state, level)
        return Interval(found.low, found.high)

    def p_value(self, value: float, alternative: str) -> float:
        """Return the p-value of the test that the interval inverts."""
        return regression_root.p_value(self.study, self.state, value, alternative)

    def trajectory(self, level: float) -> list[Row]:
        """Return the estimates and intervals on the way."""
        return self._trajectory(regression_root.estimate, level)


@dataclass(frozen=True)
class SelfNormalisedSolution(Walked):
    """The averaged recursion with the self-normalised interval, in the L2, sup or L1 norm."""

    norm: str = "l2"
    path: Path | None = None
    relaxation: float = 0.0

    @property
    def point(self) -> float:
        """Return the average of the merged points."""
        return float(self_normalised.average(self.state.memory))

    def interval(self, level: float) -> Interval:
        """Return the average plus and minus the critical value times the self-normaliser."""
        half = critical_value(level, sgd.own_clock(self.study, self.state), self.norm) * self._spread
        return Interval(self.point - half, self.point + half) if half > 0 else Interval(-math.inf, math.inf)

    def p_value(self, value: float, alternative: str) -> float:
        """Return the p-value of the self-normalised statistic; its law is symmetric."""
        statistic = (self.point - value) / self._spread if self._spread > 0 else 0.0
        both = float(self_normalised_p_value(abs(statistic), sgd.own_clock(self.study, self.state), self.norm))
        if alternative == "two-sided":
            return both
        return both / 2 if (statistic > 0) == (alternative == "greater") else 1 - both / 2

    def trajectory(self, level: float) -> list[Row]:
        """Return the estimates and intervals on the way, always in the L2 norm."""

        def widened(row: Row) -> Row:
            half = (row.high - row.average) * self._widening
            return row._replace(low=row.average - half, high=row.average + half)

        return [widened(row) for row in self._trajectory(sgd.estimate, level)]

    @property
    def _spread(self) -> float:
        """Return the self-normaliser in the chosen norm, widened."""
        if self.path is not None:
            return normaliser(self.path, self.norm) * self._widening
        return math.sqrt(float(self_normalised.variance(self.state.memory))) * self._widening

    @property
    def _widening(self) -> float:
        """Return the factor for a run of few relaxation times; the critical values hold in the limit of many.

        Over a part ``relaxation`` of the run the points still remember where they were, so that their path wanders less
        than a Brownian one and the self-normaliser is too small.
        """
        return math.sqrt(1 + REMEMBERED * self.relaxation)

"""A finished fit in the units of the raw covariates: coefficients, intervals, ellipsoids and tests.

Raw coefficients are a linear map of scaled ones, ``raw = T scaled``; so the interval of a raw contrast ``a`` is that of
the scaled contrast ``T'a``, and an ellipsoid is carried over by ``T``.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sottovoce.api.regression.recursions import Fit
from sottovoce.core.arrays import Floats
from sottovoce.core.bounds import Bounds
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.inference.regression.region import Ellipsoid, vector

ONE_SIGMA = math.erf(math.sqrt(0.5))  # the level of an interval of one standard error to each side
INTERCEPT = "intercept"
SMALLEST = 1e-9  # p-values below it are not told apart


@dataclass(frozen=True, eq=False)
class Answers:
    """What a regression found at each level: a fit, and the number of the level in it."""

    taus: tuple[float, ...]
    fits: tuple[tuple[Fit, int], ...]
    bounds: Bounds

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the coefficients."""
        return (INTERCEPT, *self.bounds.names)

    @property
    def scaled(self) -> Floats:
        """Return the coefficients of scaled covariates, (levels, d)."""
        return np.array([fit.point[index] for fit, index in self.fits])

    @property
    def raw(self) -> Floats:
        """Return the coefficients of raw covariates, (levels, d), intercept first."""
        intercepts, slopes = self.bounds.unscale_coefficients(self.scaled)
        return np.column_stack([intercepts, slopes])

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what the fits warn of, each sentence once."""
        return tuple(dict.fromkeys(warning for fit, _ in self.fits for warning in fit.warnings))

    def predict(self, features: Floats) -> Floats:
        """Return the fitted quantiles of raw covariates, (n, levels), rearranged so that they never cross."""
        scaled, beta = self.bounds.scale(features), self.scaled
        # a product row by row: the sum of one person must not depend on who else is asked for
        fitted = beta[:, 0] + np.einsum("ij,lj->il", scaled, beta[:, 1:])
        return np.asarray(np.sort(fitted, axis=1))

    def level_of(self, tau: Any) -> int:
        """Return the number of a level that was fitted; None means the only one."""
        if tau is None and len(self.taus) == 1:
            return 0
        for index, known in enumerate(self.taus):
            if isinstance(tau, int | float) and math.isclose(tau, known, rel_tol=1e-12):
                return index
        wrong = "several levels were fitted" if tau is None else f"tau {tau!r} was not fitted"
        raise BadInput(f"{wrong}; give tau as one of {', '.join(f'{known:g}' for known in self.taus)}.")

    def interval(self, level: int, contrast: Any, confidence: float) -> tuple[float, float]:
        """Return the interval of a contrast of raw coefficients, or refuse."""
        a = vector(contrast, len(self.bounds.low) + 1, "contrast")
        fit, index = self.fits[level]
        return fit.interval(index, self.bounds.to_raw.T @ a, confidence)

    def intervals(self, level: int, confidence: float) -> tuple[Floats, dict[str, str]]:
        """Return the intervals of all coefficients, (d, 2), and why some are NaN, by name; refuse if none is given."""
        rows: list[tuple[float, float]] = []
        reasons: dict[str, str] = {}
        for name, axis in zip(self.names, np.eye(len(self.names)), strict=True):
            try:
                rows.append(self.interval(level, axis, confidence))
            except Infeasible as refusal:
                reasons[name] = str(refusal)
                rows.append((math.nan, math.nan))
        if len(reasons) == len(rows):
            raise Infeasible(reasons[self.names[-1]])
        return np.array(rows), reasons

    def ellipsoid(self, tau: Any, confidence: float) -> Ellipsoid:
        """Return the ellipsoid of the raw coefficients of a level, or refuse."""
        fit, index = self.fits[self.level_of(tau)]
        centre, shape, radius2 = fit.ellipsoid(index, confidence)
        turn = self.bounds.to_raw
        return Ellipsoid(turn @ centre, turn @ shape @ turn.T, radius2)

    def row(self, level: int, coefficient: int, confidence: float) -> "Row":
        """Return a coefficient with standard error and interval, or with the reason why there is none."""
        axis = np.eye(len(self.bounds.low) + 1)[coefficient]
        value = float(self.raw[level, coefficient])
        try:
            low, high = self.interval(level, axis, ONE_SIGMA)
            ends = self.interval(level, axis, confidence)
        except Infeasible as refusal:
            return Row(value, None, None, str(refusal))
        return Row(value, (high - low) / 2, ends, None)

    def p_value(self, tau: Any, contrast: Any, value: float) -> float:
        """Return one less the largest confidence at which the interval of a contrast leaves a value out."""
        level = self.level_of(tau)
        self.interval(level, contrast, 0.5)  # refuses where no interval is given at all

        def leaves_out(p: float) -> bool:
            try:
                low, high = self.interval(level, contrast, 1 - p)
            except Infeasible:  # so confident that the interval would have no ends
                return False
            return not low <= value <= high

        if leaves_out(SMALLEST):
            return SMALLEST
        if not leaves_out(1 - SMALLEST):
            return 1.0
        inside, outside = math.log(SMALLEST), 0.0
        for _ in range(50):
            middle = (inside + outside) / 2
            inside, outside = (inside, middle) if leaves_out(math.exp(middle)) else (middle, outside)
        return math.exp(outside)


@dataclass(frozen=True)
class Row:
    """A line of the table: a coefficient, its standard error and interval, or why they are missing."""

    value: float
    error: float | None
    interval: tuple[float, float] | None
    reason: str | None

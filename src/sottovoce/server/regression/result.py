"""A finished regression in the units of the raw covariates: coefficients, intervals, ellipsoids and tests; no record.

Raw coefficients are a linear map of scaled ones, ``raw = T scaled``; so the interval of a raw contrast ``a`` is that of
the scaled contrast ``T'a``, and an ellipsoid is carried over by ``T``.
"""

import math
import os
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from sottovoce.core import codec
from sottovoce.core.arrays import Bools, Floats
from sottovoce.core.bounds import Bounds
from sottovoce.core.checks import confidence
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.inference.regression.region import Ellipsoid, vector
from sottovoce.protocol.regression.blocks import Open, RegressionChannel
from sottovoce.protocol.regression.carried import CarriedChannel, channel_of
from sottovoce.server.description import Description
from sottovoce.server.picture import check_path, save
from sottovoce.server.regression.dithered.fit import DitheredFit, two_digits
from sottovoce.server.regression.fits import RegressionFit, SearchingFit, SplitFit, StoredFit, restored, stored
from sottovoce.server.regression.kept import is_kept
from sottovoce.server.regression.plot import draw
from sottovoce.server.regression.summary import CoefficientRow, RegressionFacts, describe, headline, sentence_of_doubt
from sottovoce.server.stored import StoredResult

ONE_SIGMA = math.erf(math.sqrt(0.5))  # the level of an interval of one standard error to each side
INTERCEPT = "intercept"
SMALLEST = 1e-9  # p-values below it are not told apart


class StoredRegression(NamedTuple):
    """A regression as it is stored."""

    facts: RegressionFacts
    bounds: Bounds
    fits: tuple[StoredFit, ...]
    through: tuple[CarriedChannel, ...] = ()  # none: stored before they were kept


@dataclass(frozen=True, eq=False, repr=False)
class RegressionResult(StoredResult):
    """What a private quantile regression found; print it, or `summary()`, for a table.

    Parameters
    ----------
    facts
        How it was run.
    bounds
        The public bounds of the covariates, with their names.
    fits
        A fit a channel, in the order of the levels.
    clipped
        For whoever holds the rows alone: how many were moved to the bounds. It is never shown, pickled or stored.
    through
        The channels that people answered through, with the integers that epsilon follows from.
    """

    facts: RegressionFacts
    bounds: Bounds
    fits: tuple[RegressionFit, ...] = field(repr=False)
    clipped: int = field(default=0, repr=False)
    through: tuple[CarriedChannel, ...] = field(default=(), repr=False)

    kind: ClassVar[str] = "regression"

    @property
    def taus(self) -> tuple[float, ...]:
        """Return the quantile levels, ascending."""
        return self.facts.taus

    @property
    def epsilon(self) -> float:
        """Return the realised epsilon of a report."""
        return self.facts.epsilon

    @property
    def private(self) -> bool:
        """Tell whether the run protects its people."""
        return self.facts.private

    @property
    def channels(self) -> list[RegressionChannel | Open]:
        """Return the channels that people answered through; refuse one that costs more than is stated."""
        return [channel_of(each, self.epsilon) if each.blocks else Open() for each in self.through]

    @property
    def people(self) -> int:
        """Return how many people were asked."""
        return self.facts.people

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the coefficients."""
        return (INTERCEPT, *self.bounds.names)

    @cached_property
    def _levels(self) -> list[tuple[RegressionFit, int]]:
        """Return, for each level, a fit and the number of the level in it."""
        return [(fit, level) for fit in self.fits for level in range(len(fit.point))]

    @property
    def scaled(self) -> Floats:
        """Return the coefficients of scaled covariates, (levels, d)."""
        return np.concatenate([fit.point for fit in self.fits])

    @property
    def raw(self) -> Floats:
        """Return the coefficients of raw covariates, (levels, d), intercept first."""
        intercepts, slopes = self.bounds.unscale_coefficients(self.scaled)
        return np.column_stack([intercepts, slopes])

    @property
    def hints(self) -> tuple[str, ...]:
        """Return what was noticed in the rows themselves: for whoever holds them, and never passed on."""
        if not self.clipped:
            return ()
        return (f"not to be passed on: {self.clipped:,} of {self.people:,} rows were moved to the bounds",)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Return what the fits warn of, each sentence once; worked out when somebody asks, as some take a second."""
        doubtful = sentence_of_doubt(self.facts, self.names, self.determined, self._needed)
        return tuple(dict.fromkeys([*(warning for fit in self.fits for warning in fit.warnings), *doubtful]))

    @cached_property
    def determined(self) -> Bools:
        """Return which raw coefficients the reports tell enough of to rely on them, (levels, d), intercept first."""
        turn = self.bounds.to_raw
        return np.array([[fit.determined(index, axis) for axis in turn] for fit, index in self._levels])

    @property
    def _needed(self) -> int | None:
        """Return about how many people determine every raw coefficient, to two digits; None where no method says."""
        beside = self.facts.people - sum(fit.people for fit in self.fits)  # asked by a search
        told = [
            fit.needed(index, axis)
            for fit, index in self._levels
            if isinstance(fit, DitheredFit | SplitFit)
            for axis in self.bounds.to_raw
        ]
        return two_digits(max(told) + beside) if told else None

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
        """Return the interval of a contrast of raw coefficients; without ends where nothing is known, or refuse."""
        a = vector(contrast, len(self.bounds.low) + 1, "contrast")
        fit, index = self._levels[level]
        return fit.interval(index, self.bounds.to_raw.T @ a, confidence)

    def missing(self, level: int, contrast: Any, ends: tuple[float, float]) -> str | None:
        """Say why an interval has no ends; None if it has."""
        fit, index = self._levels[level]
        if math.isfinite(ends[0]) or math.isfinite(ends[1]) or not isinstance(fit, DitheredFit | SplitFit):
            return None
        return fit.missing(index, self.bounds.to_raw.T @ vector(contrast, len(self.bounds.low) + 1, "contrast"))

    def intervals(self, level: int, confidence: float) -> tuple[Floats, dict[str, str]]:
        """Return the intervals of all coefficients, (d, 2), and why some are NaN or have no ends, by name.

        Refuse if all are NaN.
        """
        rows: list[tuple[float, float]] = []
        reasons: dict[str, str] = {}
        for name, axis in zip(self.names, np.eye(len(self.names)), strict=True):
            try:
                rows.append(self.interval(level, axis, confidence))
            except Infeasible as refusal:
                reasons[name] = str(refusal)
                rows.append((math.nan, math.nan))
            else:
                if reason := self.missing(level, axis, rows[-1]):
                    reasons[name] = reason
        ends = np.array(rows)
        if np.isnan(ends).all():
            raise Infeasible(reasons[self.names[-1]])
        return ends, reasons

    def ellipsoid(self, tau: Any, confidence: float) -> Ellipsoid:
        """Return the ellipsoid of the raw coefficients of a level, or refuse."""
        fit, index = self._levels[self.level_of(tau)]
        centre, shape, radius2 = fit.ellipsoid(index, confidence)
        turn = self.bounds.to_raw
        return Ellipsoid(turn @ centre, turn @ shape @ turn.T, radius2)

    def row(self, level: int, coefficient: int, confidence: float) -> CoefficientRow:
        """Return a coefficient with standard error and interval, or with the reason why there is none."""
        axis = np.eye(len(self.bounds.low) + 1)[coefficient]
        value = float(self.raw[level, coefficient])
        try:
            low, high = self.interval(level, axis, ONE_SIGMA)
            ends = self.interval(level, axis, confidence)
        except Infeasible as refusal:
            return CoefficientRow(value, None, None, str(refusal), determined=False)
        sure, reason = bool(self.determined[level, coefficient]), self.missing(level, axis, ends)
        return CoefficientRow(value, (high - low) / 2, ends, reason, determined=sure)

    def tables(self, confidence: float) -> list[dict[str, CoefficientRow]]:
        """Return the rows of each level by name, the intercept first."""
        return [
            {name: self.row(at, j, confidence) for j, name in enumerate(self.names)} for at in range(len(self.taus))
        ]

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

    def describe(self, level: float | None = None) -> Description:
        """Return what the result says of itself, with intervals at a level."""
        wanted = self.facts.level if level is None else confidence(level)
        return self.with_cost(describe(self.facts, self.tables(wanted), self.warnings, wanted))

    def summary(self, level: float | None = None) -> str:
        """Return a table that a statistician reads at a glance."""
        return self.describe(level).text()

    def to_dict(self, level: float | None = None) -> dict[str, Any]:
        """Return everything as plain values, ready for strict JSON; `from_dict` reads it back."""
        return {**super().to_dict(), **self.describe(level).values}

    def plot(self, path: str | os.PathLike[str], level: float | None = None) -> Path:
        """Draw the coefficients with their intervals; of several levels, against tau."""
        wanted = self.facts.level if level is None else confidence(level)
        target = check_path(path)
        return save(self.draw(wanted), target)

    def draw(self, level: float | None = None) -> Any:
        """Return the picture of `plot`, as a figure of matplotlib."""
        wanted = self.facts.level if level is None else confidence(level)
        return draw(self.facts, self.bounds, self.tables(wanted), wanted)

    @property
    def headline(self) -> str:
        """Return the result in one line."""
        rows = {name: self.row(0, j, self.facts.level) for j, name in enumerate(self.names)}
        return headline(self.facts, rows, self.facts.level)

    def __getstate__(self) -> dict[str, Any]:
        """Leave at home what is for whoever holds the rows, and what can be computed again."""
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"clipped": 0}

    def to_state(self) -> StoredRegression:
        """Return the plain state the result is made from."""
        return StoredRegression(self.facts, self.bounds, tuple(stored(fit) for fit in self.fits), self.through)

    @classmethod
    def from_state(cls, plain: Any) -> Self:
        """Make the result again from what JSON kept of its state."""
        facts, bounds, fits, through = codec.from_plain(plain, StoredRegression)
        try:
            whole = is_kept(facts, bounds, fits)
            made = cls(facts, bounds, tuple(map(restored, fits)) if whole else (), through=through)
            whole = whole and made._whole()
        except (ValueError, IndexError, ArithmeticError):  # a BadInput and numpy's LinAlgError are ValueErrors
            whole = False
        if not whole:
            raise BadInput("this is not a stored regression: its parts do not fit each other; store it again.")
        return made

    def _whole(self) -> bool:
        """Tell whether the parts fit each other: the channels' integers, and what can be said of the coefficients."""
        levels = [tau for each in self.through for tau in each.taus]
        costs = [math.inf if isinstance(each, Open) else each.epsilon for each in self.channels]
        if self.through and (
            levels != list(self.taus) or {each.p for each in self.through} != {len(self.bounds.names)}
        ):
            return False
        if max(costs, default=0.0) > self.epsilon:
            return False
        fitted = all(isinstance(fit, SearchingFit) or np.isfinite(fit.point).all() for fit in self.fits)
        return fitted and bool(self.tables(self.facts.level) and self.warnings is not None)

"""From scaled to raw units: against a fit whose law is known."""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from sottovoce.core.bounds import read_bounds
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.inference.regression.region import Ellipsoid, normal_ellipsoid
from sottovoce.server.regression.result import SMALLEST, RegressionResult
from sottovoce.server.regression.summary import RegressionFacts

BOUNDS = read_bounds([(0, 10), (1e8, 1e8 + 4)], ("a", "b"))
POINT = np.array([[3.0, 2.0, -1.0], [4.0, 2.5, -1.0]])
COVARIANCE = np.array([[0.04, 0.01, 0.0], [0.01, 0.09, 0.02], [0.0, 0.02, 0.01]])


@dataclass
class Known:
    """A normal fit; it may refuse one slope, everything, or everything above a level."""

    people: int = 100
    point: Any = None
    warnings: tuple[str, ...] = ("mind the gap",)
    highest: float = 1.0
    silent: bool = False
    without: int | None = None

    def interval(self, index: int, contrast: Any, level: float) -> tuple[float, float]:
        left_out = self.without is not None and contrast[self.without] != 0 and contrast[0] == 0
        if self.silent or level > self.highest or left_out:
            raise Infeasible("an interval needs about 9,000 people.")
        middle = float(contrast @ POINT[index])
        half = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(contrast @ COVARIANCE @ contrast)
        return middle - half, middle + half

    def ellipsoid(self, index: int, level: float) -> Ellipsoid:
        return normal_ellipsoid(POINT[index], COVARIANCE, level)


FACTS = RegressionFacts((0.25, 0.75), True, "dithered", 1.0, True, 100, "lp", "given", 38, False)


def answers(**options: Any) -> RegressionResult:
    return RegressionResult(FACTS, BOUNDS, (Known(point=POINT, **options),))


def test_coefficients_and_intervals_are_carried_over() -> None:
    found, turn = answers(), BOUNDS.to_raw
    assert np.allclose(found.raw, POINT @ turn.T)
    raw = turn @ COVARIANCE @ turn.T
    z = NormalDist().inv_cdf(0.95)
    ends, reasons = found.intervals(1, 0.9)
    assert reasons == {}
    assert np.allclose(ends.mean(axis=1), found.raw[1])
    assert np.allclose(np.ptp(ends, axis=1) / 2, z * np.sqrt(np.diag(raw)))
    region = found.ellipsoid(0.75, 0.9)
    assert np.allclose(region.centre, found.raw[1])
    assert np.allclose(region.shape, raw)


def test_contrasts_in_raw_units_keep_their_digits_far_from_zero() -> None:
    # the fitted value in the middle of the bounds is the scaled intercept, though the raw one is about 5e7
    low, high = answers().interval(0, [1.0, 5.0, 1e8 + 2], 0.9)
    assert (low + high) / 2 == pytest.approx(3.0, abs=1e-6)
    assert answers().predict(np.array([[5.0, 1e8 + 2]])).tolist() == [[3.0, 4.0]]


def test_predictions_never_cross() -> None:
    # at a = -30 the lines cross: 3 - 14 against 4 - 17.5
    fitted = answers().predict(np.array([[-30.0, 1e8 + 2], [5.0, 1e8 + 2]]))
    assert np.all(np.diff(fitted, axis=1) > 0)
    assert fitted[0].tolist() == [-13.5, -11.0]


def test_p_values_are_those_of_the_normal_law() -> None:
    axis = np.array([0.0, 1.0, 0.0])
    error = 0.3 / 5
    for away in (0.5, 1.96, 4.0):
        expected = 2 * NormalDist().cdf(-away)
        assert answers().p_value(0.25, axis, 2.0 / 5 + away * error) == pytest.approx(expected, rel=1e-6)
    assert answers().p_value(0.25, axis, 2.0 / 5) == pytest.approx(1.0)
    assert answers().p_value(0.25, axis, 99.0) == SMALLEST


def test_an_interval_without_ends_leaves_nothing_out() -> None:
    axis = np.array([0.0, 1.0, 0.0])
    assert answers(highest=0.99).p_value(0.25, axis, 99.0) == pytest.approx(0.01, rel=1e-6)
    with pytest.raises(Infeasible, match="9,000"):
        answers(silent=True).p_value(0.25, axis, 0.0)


def test_rows_say_why_there_is_no_interval() -> None:
    row = answers().row(0, 1, 0.95)
    assert row.error == pytest.approx(0.06)
    assert row.interval is not None
    assert row.reason is None
    silent = answers(silent=True).row(0, 1, 0.95)
    assert silent.value == pytest.approx(0.4)
    assert silent.error is None
    assert silent.interval is None
    assert silent.reason == "an interval needs about 9,000 people."
    assert answers().warnings == ("mind the gap",)


def test_an_interval_that_is_missing_is_nan_with_its_reason() -> None:
    ends, reasons = answers(without=2).intervals(0, 0.9)
    assert np.isnan(ends).tolist() == [[False, False], [False, False], [True, True]]
    assert reasons == {"b": "an interval needs about 9,000 people."}
    with pytest.raises(Infeasible, match="9,000"):
        answers(silent=True).intervals(0, 0.9)


def test_a_level_is_found_by_its_number() -> None:
    assert answers().level_of(0.75) == 1
    for wrong in (None, 0.5, "half"):
        with pytest.raises(BadInput, match=r"give tau as one of 0\.25, 0\.75"):
            answers().level_of(wrong)

"""The curve fitted to a few noisy values: exact where it is true, equivariant, and finite whatever it is given."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import expit

from sottovoce.inference.quantile.inversion import through
from sottovoce.inference.quantile.logit_curve import (
    LogitCurve,
    Prior,
    Readings,
    allowed,
    evidence,
    expected,
    fit,
    invert,
    measure,
)
from sottovoce.sim.randomness import dice

Floats = npt.NDArray[np.float64]
OPEN = Prior(0.0, 4.0, 0.0, 2.0, 0.7)
POINTS = np.array([-1.2, -0.4, 0.1, 0.9, 1.6])


def logistic(points: Floats, tau: float, root: float, slope: float, curvature: float = 0.0) -> Floats:
    """Return the function with a logit that is curved as the module says."""
    seen = np.array([through(slope * (float(point) - root), 0.0, 2 * curvature) for point in points])
    return np.asarray(expit(math.log(tau / (1 - tau)) + seen))


def answered(
    points: Floats, values: Floats, tau: float, curved: bool, prior: Prior = OPEN, n: float = 1e12
) -> LogitCurve:
    """Fit to values as ``n`` truthful records a point would tell them."""
    return fit(
        Readings(points, values, np.full(len(points), 0.25 / n), np.full(len(points), 1 / n), tau), prior, curved
    )


@pytest.mark.parametrize("tau", [0.02, 0.25, 0.5, 0.9])
@pytest.mark.parametrize(("root", "slope"), [(0.3, 1.0), (-1.1, 0.4), (0.8, 2.5)])
def test_a_logistic_is_recovered_exactly(tau: float, root: float, slope: float) -> None:
    curve = answered(POINTS, logistic(POINTS, tau, root, slope), tau, curved=False)
    assert (curve.root, curve.slope, curve.curvature) == pytest.approx((root, slope, 0.0), abs=1e-5)
    assert curve.misfit < 1e-3
    assert expected(curve, POINTS, tau) == pytest.approx(logistic(POINTS, tau, root, slope), abs=1e-5)


@pytest.mark.parametrize("curvature", [-0.3, -0.05, 0.1, 0.25])
def test_a_bend_is_recovered_where_it_may_be(curvature: float) -> None:
    values = logistic(POINTS, 0.3, 0.2, 1.1, curvature)
    bent, straight = (answered(POINTS, values, 0.3, curved=curved) for curved in (True, False))
    assert (bent.root, bent.slope, bent.curvature) == pytest.approx((0.2, 1.1, curvature), abs=1e-4)
    assert straight.curvature == 0.0
    assert straight.misfit > 100 * max(bent.misfit, 1.0)


def test_the_function_rises_to_tau_at_the_root() -> None:
    curve = LogitCurve(0.7, math.log(2.0), 0.4, np.eye(3), 0.0, 0.0)
    assert float(expected(curve, np.array([0.7]), 0.9)[0]) == pytest.approx(0.9)
    assert np.all(np.diff(expected(curve, np.linspace(-9, 9, 200), 0.9)) >= 0)


def test_the_derivatives_of_the_likelihood_vanish_at_the_fit() -> None:
    # seen from outside: no small step of root or slope fits better, for records that lie with probability 1/4
    tau, n, rate = 0.6, 4000.0, 0.5
    values = logistic(POINTS, tau, 0.1, 1.3) + np.array([0.02, -0.01, 0.015, -0.02, 0.01])
    curve = fit(Readings(POINTS, values, np.full(5, 0.25 / (rate**2 * n)), np.full(5, 1 / n), tau), OPEN, False)

    def loss(root: float, log_slope: float) -> float:
        heard = (1 - rate) / 2 + rate * values
        told = (1 - rate) / 2 + rate * logistic(POINTS, tau, root, math.exp(log_slope))
        return float(
            (root / 4) ** 2 / 2
            + (log_slope / 2) ** 2 / 2
            - n * np.sum(heard * np.log(told) + (1 - heard) * np.log1p(-told))
        )

    here = loss(curve.root, curve.log_slope)
    for root, log_slope in ((1e-3, 0.0), (-1e-3, 0.0), (0.0, 1e-3), (0.0, -1e-3)):
        assert loss(curve.root + root, curve.log_slope + log_slope) > here


def test_without_answers_the_prior_is_left_and_with_many_it_is_forgotten() -> None:
    prior = Prior(2.0, 0.5, 1.0, 0.3, 0.7)
    nothing = fit(Readings(np.empty(0), np.empty(0), np.empty(0), np.empty(0), 0.5), prior, True)
    assert (nothing.root, nothing.log_slope, nothing.curvature) == (2.0, 1.0, 0.0)
    assert np.diag(nothing.covariance) == pytest.approx([0.25, 0.09, 0.49])
    values = logistic(POINTS, 0.5, -0.5, 0.8)
    roots = [answered(POINTS, values, 0.5, False, prior, n).root for n in (10.0, 1e3, 1e9)]
    assert 2.0 > roots[0] > roots[1] > roots[2] == pytest.approx(-0.5, abs=1e-5)


@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize(("location", "scale"), [(1e8, 1.0), (0.0, 1e8), (-3.0, 1e-8), (1e8, 1e8)])
def test_another_unit_gives_the_same_curve(location: float, scale: float, curved: bool) -> None:
    values = logistic(POINTS, 0.7, 0.2, 1.2) + np.array([0.01, -0.02, 0.0, 0.02, -0.01])
    moved = Prior(location, 4.0 * scale, -math.log(scale), 2.0, 0.7)
    plain = answered(POINTS, values, 0.7, curved, n=1e4)
    other = answered(location + scale * POINTS, values, 0.7, curved, moved, n=1e4)
    assert (other.root - location) / scale == pytest.approx(plain.root, abs=1e-6)
    assert other.slope * scale == pytest.approx(plain.slope, rel=1e-6)
    assert other.curvature == pytest.approx(plain.curvature, abs=1e-6)
    one, two = measure(plain, 5), measure(other, 5)
    assert (two.std_error / scale, two.df) == pytest.approx((one.std_error, one.df), rel=1e-5)


def test_the_error_is_that_of_repeated_fits() -> None:
    # 400 fits: the ratio of a standard deviation to its expectation lies within 5 x .035 but once in 1e6
    source, n, tau, rate = dice(3).generator(), 2000, 0.8, 0.5
    truth = logistic(POINTS, tau, 0.2, 1.0)
    seen = []
    for _ in range(400):
        values = (source.binomial(n, (1 - rate) / 2 + rate * truth) / n - (1 - rate) / 2) / rate
        curve = fit(Readings(POINTS, values, np.full(5, 0.25 / (rate**2 * n)), np.full(5, 1 / n), tau), OPEN, False)
        seen.append((curve.root, math.sqrt(float(curve.covariance[0, 0]))))
    roots, errors = np.array(seen).T
    assert float(np.std(roots)) / float(np.sqrt(np.mean(errors**2))) == pytest.approx(1.0, abs=0.18)


def test_a_misfit_lengthens_and_a_doubtful_slope_costs_degrees() -> None:
    covariance = np.diag([0.04, 0.005, 1.0])
    fine, poor = LogitCurve(1.0, 0.0, 0.0, covariance, 3.0, 0.0), LogitCurve(1.0, 0.0, 0.0, covariance, 12.0, 0.0)
    assert measure(fine, 5) == pytest.approx((1.0, 0.2, 100.0))
    assert measure(poor, 5).std_error == pytest.approx(0.2 * 2)
    doubtful = LogitCurve(1.0, 0.0, 0.0, np.diag([0.04, 7.0, 1.0]), 0.0, 0.0)
    assert measure(doubtful, 2) == pytest.approx((1.0, 0.2, 1.0))


DEGENERATE = {
    "all zero": (POINTS, np.zeros(5)),
    "all one": (POINTS, np.ones(5)),
    "all one half": (POINTS, np.full(5, 0.5)),
    "falling": (POINTS, np.array([0.9, 0.7, 0.5, 0.3, 0.1])),
    "outside": (POINTS, np.array([-0.6, -0.1, 0.5, 1.2, 1.9])),
    "a step": (POINTS, np.array([0.0, 0.0, 1.0, 1.0, 1.0])),
    "one point": (np.zeros(5), np.array([0.1, 0.9, 0.5, 0.4, 0.6])),
    "huge points": (np.array([-1e300, -1e150, 0.0, 1e150, 1e300]), np.linspace(0, 1, 5)),
    "huge on one side": (np.full(5, 1e300), np.full(5, 0.2)),
    "tiny points": (POINTS * 1e-300, np.linspace(0, 1, 5)),
    "two far apart": (np.array([-1e9, 1e9]), np.array([0.0, 1.0])),
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("tau", [0.02, 0.5, 0.98])
@pytest.mark.parametrize("rate", [0.05, 1.0])
@pytest.mark.parametrize("curved", [False, True])
def test_degenerate_answers_give_finite_numbers(name: str, tau: float, rate: float, curved: bool) -> None:
    points, values = DEGENERATE[name]
    for n in (1.0, 500.0, 1e9):
        many = len(points)
        answers = Readings(points, values, np.full(many, 0.25 / (rate**2 * n)), np.full(many, 1 / n), tau)
        curve = fit(answers, OPEN, curved)
        measured = measure(curve, many)
        assert np.all(np.isfinite([*measured, curve.slope, curve.curvature, curve.misfit]))
        assert measured.std_error > 0
        assert measured.df >= 1
        if curved:
            low, high = invert(answers, OPEN, curve, 1.96)
            assert -math.inf < low < curve.root < high < math.inf
        assert np.all((expected(curve, points, tau) > 0) & (expected(curve, points, tau) < 1))


def test_a_point_nobody_answered_at_is_left_out() -> None:
    values = logistic(POINTS, 0.4, 0.2, 1.0)
    whole = fit(Readings(POINTS, values, np.full(5, 1e-4), np.full(5, 1e-4), 0.4), OPEN, False)
    points, seen = np.append(POINTS, 3.0), np.append(values, 1.0)
    ceilings, drops = np.append(np.full(5, 1e-4), 0.0), np.append(np.full(5, 1e-4), 0.0)
    again = fit(Readings(points, seen, ceilings, drops, 0.4), OPEN, False)
    assert (again.root, again.slope, again.misfit) == (whole.root, whole.slope, whole.misfit)


def scarce(tau: float, curvature: float) -> tuple[Readings, LogitCurve]:
    """Return answers of few records to four points around the root of a curve, and the fit to them."""
    points = np.array([-0.9, -0.4, 0.4, 0.9])
    values = logistic(points, tau, 0.0, 1.0, curvature)
    answers = Readings(points, values, np.full(4, 1e-3), np.full(4, 1e-4), tau)
    return answers, fit(answers, OPEN, True)


@pytest.mark.parametrize("curvature", [0.0, 0.2, 0.4])
def test_an_interval_is_longer_on_the_side_where_the_function_is_flatter(curvature: float) -> None:
    answers, curve = scarce(0.1, curvature)
    low, high = invert(answers, OPEN, curve, 1.96)
    assert curve.root - low > 1.1 * (high - curve.root)
    answers, curve = scarce(0.9, -curvature)  # mirrored
    assert invert(answers, OPEN, curve, 1.96) == pytest.approx((-high, -low), rel=1e-6)


def test_evidence_grows_away_from_the_root_and_is_z_at_the_edges() -> None:
    answers, curve = scarce(0.25, -0.2)
    values = curve.root + np.linspace(-3, 3, 25)
    seen = [evidence(answers, OPEN, curve, float(value)) for value in values]
    assert np.all(np.diff(seen) > 0)
    for z in (0.01, 0.7, 1.96, 3.0):
        low, high = invert(answers, OPEN, curve, z)
        assert evidence(answers, OPEN, curve, low) == pytest.approx(-z, abs=1e-7)
        assert evidence(answers, OPEN, curve, high) == pytest.approx(z, abs=1e-7)


def test_what_is_far_from_the_middle_counts_for_less() -> None:
    answers, _ = scarce(0.25, 0.0)
    less = allowed(answers, 0.1, 1.0)
    factors = less.ceilings / answers.ceilings
    assert factors == pytest.approx(less.drops / answers.drops)
    assert factors[1] == pytest.approx(1 + (0.6 * 0.5**3 * 0.1875) ** 2 / (1e-3 - 1e-4 / 16))
    assert factors[0] == pytest.approx(1 + (0.6 * 0.1875) ** 2 / (1e-3 - 1e-4 / 16))  # a logit off: no more than that
    nobody = allowed(answers._replace(ceilings=np.zeros(4), drops=np.zeros(4)), 0.1, 1.0)
    assert np.all(nobody.ceilings == 0)

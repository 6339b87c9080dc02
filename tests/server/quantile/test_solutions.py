"""All methods seen alike: point in interval, p-values that agree with it, a trajectory that ends there."""

import math
import os

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.api.quantile.planning import METHODS
from sottovoce.inference.common.measured import SiteEstimate
from sottovoce.inference.quantile.logit_curve import Readings, fit
from sottovoce.server.quantile.certified.protocol import Certificate
from sottovoce.server.quantile.result import QuantileResult
from sottovoce.server.quantile.scarce import PRIOR, Fitted, Mark
from sottovoce.server.quantile.solutions import (
    CertifiedSolution,
    FittedSolution,
    SequenceSolution,
    Solution,
    StagedSolution,
    staged_solution,
)
from sottovoce.server.quantile.staged import Local
from sottovoce.sim.randomness import dice

pytestmark = [
    pytest.mark.filterwarnings("ignore:the .* quantile is barely supported:UserWarning"),
    pytest.mark.skipif(
        os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="whole studies take minutes when not compiled"
    ),
]


VALUES = dice(21).generator().normal(3.0, 2.0, (3, 15_000))
RESULTS: dict[str, QuantileResult] = {}


PAIRS = "staged, in pairs"


@pytest.fixture(params=[*METHODS, PAIRS])
def solution(request: pytest.FixtureRequest) -> Solution:
    name = request.param
    if name not in RESULTS:
        # s / t0 = .062 in pairs
        values, tau, method = (VALUES[:, :600], 0.75, "staged") if name == PAIRS else (VALUES, 0.6, name)
        RESULTS[name] = sv.federated_quantile(list(values), tau, 2.0, method=method, randomness=dice(22))
    return RESULTS[name].solution


def test_few_records_are_asked_in_pairs_and_the_result_says_what_that_takes_for_granted(
    solution: Solution, request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.params["solution"]
    assert isinstance(solution, FittedSolution) == (name == PAIRS)
    warned = ["takes the density to be smooth around the quantile" in text for text in RESULTS[name].warnings]
    assert warned == ([False, True] if name == PAIRS else [])  # the first is the gate's


def fitted() -> FittedSolution:
    """Return a fit to four points of a curve whose root lies at 10, one logit being 2."""
    places = np.array([-0.9, -0.4, 0.4, 0.9])
    answers = Readings(places, 1 / (1 + np.exp(math.log(9) - places)), np.full(4, 1e-3), np.full(4, 1e-4), 0.1)
    curve = fit(answers, PRIOR, True)
    known = SiteEstimate(10 + 2 * curve.root, 2 * math.sqrt(curve.covariance[0, 0]), 9.0)
    marks = (Mark(3, 50, SiteEstimate(9.0, 4.0, 2.0)), Mark(4, 90, known))
    return FittedSolution(Fitted(known, marks, 1.0, 2, answers, curve, 10.0, 2.0))


def test_a_fit_has_the_interval_of_its_likelihood_and_the_p_values_that_agree_with_it() -> None:
    found = fitted()
    low, high = found.interval(0.95)
    assert found.point == pytest.approx(10.0, abs=0.1)
    assert (high - low) / 2 == pytest.approx(1.96 * found.fitted.measured.std_error, rel=0.1)
    assert found.point - low > 1.1 * (high - found.point)  # below its lowest tenth the function is flatter
    assert found.p_value(low, "two-sided") == pytest.approx(0.05)
    assert found.p_value(low, "greater") == pytest.approx(0.025)  # the quantile is greater than the lower end
    assert found.p_value(high, "less") == pytest.approx(0.025)
    assert found.p_value(found.point, "two-sided") == pytest.approx(1.0)
    rows = found.trajectory(0.95)
    assert [(row.round, row.reports, row.average) for row in rows] == [(3, 50, 9.0), (4, 90, found.point)]
    assert (rows[0].low, rows[0].high) == pytest.approx((9 - 4 * 4.302653, 9 + 4 * 4.302653))  # Student's, of 2 degrees
    assert (rows[-1].low, rows[-1].high) == (low, high)


def test_what_the_default_left_is_wrapped_by_its_kind() -> None:
    left = fitted().fitted
    assert staged_solution(left) == FittedSolution(left)
    local = Local((), 0.0, 1.0, (), False)
    assert staged_solution(local) == StagedSolution(local)
    certificate = Certificate((), 0.5, 0.0, (), (-math.inf, math.inf), 0.05)
    assert staged_solution(certificate) == CertifiedSolution(certificate)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_the_edges_have_the_p_value_of_their_level(solution: Solution, level: float) -> None:
    low, high = solution.interval(level)
    if isinstance(solution, CertifiedSolution | SequenceSolution):  # sets (low, high], whose p-values go in steps
        inside, outside = math.nextafter(low, math.inf), math.nextafter(high, math.inf)
        assert solution.p_value(low, "greater") <= 1 - level < solution.p_value(inside, "two-sided")
        assert solution.p_value(outside, "less") <= 1 - level < solution.p_value(high, "two-sided")
        return
    assert low < solution.point < high
    for edge, alternative in ((low, "greater"), (high, "less")):
        assert solution.p_value(edge, "two-sided") == pytest.approx(1 - level, rel=1e-3)
        assert solution.p_value(edge, alternative) == pytest.approx((1 - level) / 2, rel=1e-3)
        other = "less" if alternative == "greater" else "greater"
        assert solution.p_value(edge, other) == pytest.approx((1 + level) / 2, rel=1e-3)


def test_p_values_fall_on_both_sides(solution: Solution) -> None:
    assert solution.p_value(solution.point, "two-sided") == pytest.approx(1.0, abs=1e-3)
    half = solution.interval(0.95).high - solution.point
    for side in (-1, 1):
        values = [solution.p_value(solution.point + side * far * half, "two-sided") for far in (0.2, 0.7, 1.5)]
        assert values == sorted(values, reverse=True)
        assert values[0] > values[-1]


def test_the_trajectory_ends_at_the_answer(solution: Solution) -> None:
    rows = solution.trajectory(0.95)
    rounds, reports = [row.round for row in rows], [row.reports for row in rows]
    assert rounds == sorted(set(rounds))
    assert reports == sorted(set(reports))
    low, high = solution.interval(0.95)
    assert (rows[-1].average, rows[-1].low, rows[-1].high) == pytest.approx((solution.point, low, high), rel=1e-6)
    lengths = [row.high - row.low for row in rows]
    assert lengths[-1] < np.median([length for length in lengths if math.isfinite(length)])

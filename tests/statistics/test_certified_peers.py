"""The populations on which certified intervals are compared are what they say, and the sets of others hold on them."""

import numpy as np
import pytest
from benchmarks.certified_peers import WAYS, best, simulate, simulate_many
from benchmarks.certified_populations import CASES, Case
from scipy.stats import binom

import sottovoce as sv

FALSE_ALARM = 1e-6
every_case = pytest.mark.parametrize("case", CASES, ids=[f"{case.name} {case.tau}" for case in CASES])


@every_case
def test_the_quantile_is_the_quantile(case: Case) -> None:
    truth, near = case.truth, 1e-6 * (case.bounds[1] - case.bounds[0])
    assert case.bounds[0] <= truth <= case.bounds[1]
    assert float(case.cdf(truth)) >= case.tau - 1e-9
    assert float(case.cdf(truth - near)) < case.tau
    if case.density is not None:
        slope = float(case.cdf(truth + near) - case.cdf(truth - near)) / (2 * near)
        assert float(case.density(truth)) == pytest.approx(slope, rel=1e-3)


@every_case
def test_records_follow_the_distribution_function(case: Case) -> None:
    records = case.sample(sv.sim.dice(5).generator(), 40_000)
    assert case.bounds[0] <= records.min() <= records.max() <= case.bounds[1]
    for level in (0.2, case.tau, 0.95):
        at = float(case.quantile(level))
        # six standard deviations: a false alarm in 2e-9 of the runs
        assert abs(float(np.mean(records <= at)) - float(case.cdf(at))) < 6 * 0.5 / 200


@every_case
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stages", [1, 3])
def test_their_sets_cover(case: Case, way: str, stages: int) -> None:
    runs = 400
    low, high = simulate_many(
        case.cdf, case.tau, 20_000, 0.76, case.bounds, sv.sim.dice(stages).generator(), runs, 12, stages, way
    )
    assert np.all(low < high)
    assert binom.cdf(int(np.sum(case.covers(low, high))), runs, 0.95) > FALSE_ALARM / (2 * len(CASES) * len(WAYS))


def test_a_set_shrinks_with_the_records_and_the_points_are_chosen_for_them() -> None:
    case = CASES[0]
    low, high = simulate(case.cdf, case.tau, 10**6, 0.76, case.bounds, sv.sim.dice(1).generator(), points=8, stages=4)
    assert -0.5 < low < 0 < high < 0.5
    assert best(case, 20_000, 0.76, "in order", (1,), 20).length < best(case, 20_000, 0.76, "union", (1,), 20).length

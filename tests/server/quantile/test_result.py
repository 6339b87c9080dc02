"""A result answers every question a statistician has, consistently."""

import itertools
import json
import math
import os
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.api.quantile.planning import METHODS
from sottovoce.server.quantile.result import QuantileResult
from sottovoce.sim.randomness import dice

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="whole studies take minutes when not compiled"
)


VALUES = dice(51).generator().normal(10.0, 2.0, (2, 20_000))
STEPS = ("certified", "sequence")  # sets (low, high], whose p-values go in steps
KEPT: dict[str, QuantileResult] = {}


@pytest.fixture(params=METHODS)
def result(request: pytest.FixtureRequest) -> QuantileResult:
    name = request.param
    if name not in KEPT:
        KEPT[name] = sv.federated_quantile(
            {"a": VALUES[0], "b": VALUES[1]}, 0.4, 2.0, method=name, level=0.9, randomness=dice(52)
        )
    return KEPT[name]


def test_intervals_at_higher_levels_contain_those_at_lower_ones(result: QuantileResult) -> None:
    ends = [result.interval_at(level) for level in (0.5, 0.8, 0.9, 0.95, 0.99)]
    assert all(two.low <= one.low < one.high <= two.high for one, two in itertools.pairwise(ends))
    if result.method not in STEPS:  # whose ends are among the points that were asked
        assert all(two.low < one.low < one.high < two.high for one, two in itertools.pairwise(ends))
    assert ends[-1].low < ends[0].low
    assert ends[0].high < ends[-1].high
    assert result.interval == ends[2]


def test_tests_agree_with_intervals(result: QuantileResult) -> None:
    low, high = result.interval_at(0.95)
    inner, outer = low + 0.01 * (high - low), low - 0.01 * (high - low)
    assert result.test(inner).pvalue > 0.05 > result.test(outer).pvalue
    assert result.test(str(low)) == result.test(low)
    assert result.test(low).alternative == "two-sided"
    if result.method in STEPS:
        # the interval (low, high] has jumps of the p-value at its ends, and each side has the whole error
        assert result.test(low).pvalue == result.test(low, "greater").pvalue <= 0.05
        assert result.test(high).pvalue == result.test(high, "less").pvalue > 0.05
        beyond = math.nextafter(high, math.inf)
        assert result.test(beyond).pvalue == result.test(beyond, "less").pvalue <= 0.05
        assert result.test(low, "less").pvalue > 0.5 < result.test(high, "greater").pvalue
        return
    assert result.test(low).pvalue == pytest.approx(0.05, rel=1e-3)
    assert result.test(high).pvalue == pytest.approx(0.05, rel=1e-3)
    assert result.test(low, "greater").pvalue == pytest.approx(0.025, rel=1e-3)
    assert result.test(high, "less").pvalue == pytest.approx(0.025, rel=1e-3)
    assert result.test(low, "less").pvalue == pytest.approx(0.975, rel=1e-3)


def test_impossible_tests_and_levels_are_refused(result: QuantileResult) -> None:
    with pytest.raises(sv.BadInput, match="alternative 'both' is unknown"):
        result.test(1.0, "both")
    for value in (math.nan, "soon", None):
        with pytest.raises(sv.BadInput, match="the value to test"):
            result.test(value)
    for level in (0, 1, 95, "0.9", math.nan):
        with pytest.raises(sv.BadInput, match="level must"):
            result.interval_at(level)  # type: ignore[arg-type]


def test_plain_values_are_complete_and_survive_json(result: QuantileResult) -> None:
    plain: dict[str, Any] = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain == result.to_dict()
    assert plain["estimate"] == result.estimate
    assert plain["tau"] == 0.4
    assert plain["method"] == result.method
    assert plain["interval"] == {"low": result.interval.low, "high": result.interval.high, "level": 0.9}
    assert plain["epsilon"] == dict(result.epsilon)
    assert plain["shares"] == {"a": 0.5, "b": 0.5}
    assert plain["records"] == {"a": 20_000, "b": 20_000}
    assert plain["reports"] == result.reports
    assert 39_000 < result.reports <= 40_000 if result.method in STEPS else result.reports == 40_000  # by lot, or all
    assert plain["private"] is False
    assert plain["promise"] == result.promise
    assert plain["estimand"] == result.estimand
    assert plain["dropped"] == {"a": 0, "b": 0}
    assert plain["left_out"] == plain["unplaced"] == 0
    assert plain["rounds"] == result.rounds
    assert plain["resolution"] is None
    assert plain["warnings"] == []
    assert plain["support"] == pytest.approx(result.plan.support.ratio)
    assert sum(plain["drivers"].values()) == 1.0
    places = 1 - math.floor(math.log10(result.interval.high - result.interval.low))
    assert plain["text"]["estimate"] == result.format(result.estimate) == f"{result.estimate:.{places}f}"


def test_the_trajectory_has_its_columns_and_ends_at_the_answer(result: QuantileResult) -> None:
    columns = result.trajectory
    assert list(columns) == ["round", "reports", "average", "low", "high"]
    assert len({len(column) for column in columns.values()}) == 1
    assert len(columns["round"]) > 1
    assert columns["round"].dtype == columns["reports"].dtype == np.int64
    assert columns["low"].dtype == np.float64
    assert np.all(np.diff(columns["reports"]) > 0)
    last = [float(columns[name][-1]) for name in ("average", "low", "high")]
    assert last == pytest.approx([result.estimate, *result.interval], rel=1e-6)


@pytest.mark.parametrize(
    ("shares", "sites", "words"),
    [
        ("pooled", 2, "0.4 of all records of the 2 sites lie (pooled)"),
        ("equal", 2, "0.4 lies when each of the 2 sites counts the same (equal)"),
        ({"site 1": 0.3, "site 2": 0.7}, 2, "when the 2 sites count by their given shares (custom)"),
        ("pooled", 1, "0.4 of the records of site 1 lie"),
    ],
    ids=str,
)
def test_the_estimand_is_said_in_words(shares: Any, sites: int, words: str) -> None:
    made = sv.federated_quantile(list(VALUES[:sites]), 0.4, 2.0, shares=shares, randomness=dice(1))
    assert words in made.estimand
    assert "average" not in made.estimand


def test_what_is_infinite_is_none_in_the_plain_values() -> None:
    few = sv.federated_quantile(
        {"a": VALUES[0], "b": VALUES[1]},
        0.4,
        {"a": 2.0, "b": math.inf},
        method="regression",
        schedule=[1] * 500,
        level=1 - 1e-9,
        randomness=dice(1),
    )
    assert few.interval == (-math.inf, math.inf)
    plain: dict[str, Any] = json.loads(json.dumps(few.to_dict(), allow_nan=False))
    assert plain["interval"] == {"low": None, "high": None, "level": 1 - 1e-9}
    assert plain["text"]["low"] == "-inf"
    assert plain["epsilon"] == {"a": few.epsilon["a"], "b": None}


def test_open_ends_have_words() -> None:
    made = sv.federated_quantile(list(VALUES), 0.4, 2.0, randomness=dice(1))
    assert made.format(math.inf) == "inf"
    assert made.format(-math.inf) == "-inf"


def test_with_a_resolution_one_sided_tests_respect_the_half_step() -> None:
    made = sv.federated_quantile([np.round(VALUES[0])], 0.5, 3.0, resolution=1, randomness=dice(2))
    assert made.estimate == 10.0
    assert made.test(10).pvalue == 1.0
    assert made.test(9, "greater").pvalue < 1e-3
    assert made.test(11, "less").pvalue < 1e-3
    assert made.test(10, "greater").pvalue > 0.5
    assert made.test(10, "less").pvalue > 0.5

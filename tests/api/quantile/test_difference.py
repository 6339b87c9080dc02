"""The difference of two groups: the formula by hand, symmetry, a test that agrees, and refusals."""

import json
import math
import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.api.quantile.planning import origin
from sottovoce.client.quantile.site import Site
from sottovoce.server.quantile.result import QuantileResult
from sottovoce.sim.randomness import dice

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="whole studies take minutes when not compiled"
)


SOURCE = dice(71).generator()
HERE, THERE = SOURCE.exponential(1.0, 30_000), 0.15 + SOURCE.exponential(1.0, 30_000)


@pytest.fixture(scope="module")
def pair() -> tuple[QuantileResult, QuantileResult]:
    return (
        sv.federated_quantile({"here": HERE}, 0.5, 3.0, randomness=dice(72)),
        sv.federated_quantile({"there": THERE}, 0.5, 2.0, level=0.9, randomness=dice(73)),
    )


def test_the_interval_is_the_formula_by_hand(pair: tuple[QuantileResult, QuantileResult]) -> None:
    one, two = pair
    difference = sv.compare(one, two)
    (low1, high1), (low2, high2) = one.interval_at(0.95), two.interval_at(0.95)
    gap = one.estimate - two.estimate
    low = gap - math.sqrt((one.estimate - low1) ** 2 + (high2 - two.estimate) ** 2)
    high = gap + math.sqrt((high1 - one.estimate) ** 2 + (two.estimate - low2) ** 2)
    assert difference.estimate == gap
    assert difference.level == 0.95
    assert difference.interval == pytest.approx((low, high), rel=1e-12)
    assert difference.interval_at(1 - 6e-7).low < -0.15 < difference.interval_at(1 - 6e-7).high


def test_turning_the_groups_round_turns_the_answer_round(pair: tuple[QuantileResult, QuantileResult]) -> None:
    one, two = sv.compare(*pair, level=0.9), sv.compare(pair[1], pair[0])
    assert two.level == 0.9
    assert two.estimate == -one.estimate
    assert (two.interval.low, two.interval.high) == pytest.approx((-one.interval.high, -one.interval.low))
    assert two.pvalue == pytest.approx(one.pvalue)
    assert two.test(0.1, "greater").pvalue == pytest.approx(one.test(-0.1, "less").pvalue)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_the_test_agrees_with_the_interval(pair: tuple[QuantileResult, QuantileResult], level: float) -> None:
    difference = sv.compare(*pair)
    low, high = difference.interval_at(level)
    assert difference.test(low).pvalue == pytest.approx(1 - level, rel=1e-5)
    assert difference.test(high).pvalue == pytest.approx(1 - level, rel=1e-5)
    assert difference.test(low, "greater").pvalue == pytest.approx((1 - level) / 2, rel=1e-5)
    assert difference.test(high, "less").pvalue == pytest.approx((1 - level) / 2, rel=1e-5)
    assert difference.test(difference.estimate).pvalue == 1.0
    assert difference.test(50.0).pvalue < 1e-14
    assert difference.test(50.0, "greater").pvalue > 1 - 1e-14


def test_a_resolution_widens_by_half_a_step_each(pair: tuple[QuantileResult, QuantileResult]) -> None:
    plain = sv.compare(*pair)
    one, two = (
        replace(result, plan=replace(result.plan, resolution=step))
        for result, step in zip(pair, (0.2, 0.1), strict=True)
    )
    wide = sv.compare(one, two)
    assert wide.interval.low == pytest.approx(plain.interval.low - 0.15)
    assert wide.interval.high == pytest.approx(plain.interval.high + 0.15)
    assert wide.pvalue > plain.pvalue


def test_the_same_records_twice_are_refused(pair: tuple[QuantileResult, QuantileResult]) -> None:
    one, _two = pair
    with pytest.raises(sv.BadInput, match="one and the same"):
        sv.compare(one, one)
    with pytest.raises(sv.BadInput, match="share records"):
        sv.compare(one, replace(one, level=0.5))
    split = sv.federated_quantiles(origin(one), [0.4, 0.6], 3.0, randomness=dice(74))
    with pytest.raises(sv.BadInput, match="share records"):
        sv.compare(one, split.results[0])


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no record answer."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("a record answered before all input was checked")

    for door in ("tally", "answer", "hand_over"):
        monkeypatch.setattr(Site, door, refuse)


@pytest.mark.usefixtures("closed")
@pytest.mark.parametrize("part", [slice(None), slice(29_998, None), slice(5, 20_000)], ids=str)
def test_one_array_in_both_groups_is_refused(part: slice) -> None:
    with pytest.raises(sv.BadInput, match="the two groups share records, so they are not independent"):
        sv.quantile_difference({"a": HERE}, {"c": THERE, "b": HERE[part]}, 0.5, 3.0, randomness=dice(1))


def test_two_parts_of_one_array_share_nothing() -> None:
    halves = sv.quantile_difference([HERE[:15_000]], [HERE[15_000:]], 0.5, 3.0, randomness=dice(1))
    assert halves.interval_at(1 - 6e-7).low < 0 < halves.interval_at(1 - 6e-7).high


def test_different_kinds_and_levels_are_refused(pair: tuple[QuantileResult, QuantileResult]) -> None:
    days = np.datetime64("2020-01-01", "D") + (10 * THERE).astype(np.int64).astype("timedelta64[D]")
    dated = sv.federated_quantile([days], 0.5, 3.0, randomness=dice(75))
    with pytest.raises(sv.BadInput, match=r"measures numbers and the second dates; compare like with like"):
        sv.compare(pair[0], dated)
    with pytest.raises(sv.BadInput, match="level must lie"):
        sv.compare(*pair, level=1.0)
    with pytest.raises(sv.BadInput, match="alternative 'both' is unknown"):
        sv.compare(*pair).test(0.0, "both")


def test_dates_differ_by_days() -> None:
    start = np.datetime64("2020-01-01", "D")
    here, there = ([start + (20 * values).astype(np.int64).astype("timedelta64[D]")] for values in (HERE, 4 * THERE))
    difference = sv.quantile_difference(here, there, 0.5, 4.0, randomness=dice(76))
    assert difference.format(-3.0) == "-3 days"
    assert "days" in difference.summary()
    assert (
        difference.interval_at(1 - 6e-7).low
        < 20 * math.log(2) - 80 * (math.log(2) + 0.15)
        < difference.interval_at(1 - 6e-7).high
    )


def test_from_records_to_p_value() -> None:
    difference = sv.quantile_difference([HERE], [THERE], 0.5, 3.0, level=0.9, randomness=dice(77))
    assert difference.level == 0.9
    assert not difference.private
    assert difference.interval_at(1 - 6e-7).low < -0.15 < difference.interval_at(1 - 6e-7).high
    assert difference.pvalue < 0.01
    text = difference.summary()
    assert str(difference) == text
    assert "0.9 interval" in text
    assert f"p = {difference.pvalue:.3g}" in text
    plain: dict[str, Any] = json.loads(json.dumps(difference.to_dict(), allow_nan=False))
    assert plain["estimate"] == difference.estimate
    assert plain["pvalue"] == difference.pvalue
    assert plain["interval"] == {"low": difference.interval.low, "high": difference.interval.high, "level": 0.9}
    assert plain["first"]["estimate"] - plain["second"]["estimate"] == plain["estimate"]


def test_both_groups_have_dice_of_their_own() -> None:
    # values that differ by less than the search can see, so that the same dice would give the same answers
    one = sv.quantile_difference([HERE], [HERE + 1e-9], 0.5, 3.0, randomness=dice(78))
    assert abs(one.first.estimate - one.second.estimate) > 1e-6


def test_without_dice_both_are_private() -> None:
    assert sv.quantile_difference([HERE], [THERE], 0.5, 3.0).private


def test_one_mapping_of_budgets_serves_both_groups() -> None:
    made = sv.quantile_difference({"a": HERE}, {"b": THERE}, 0.5, {"a": 3.0, "b": 2.0}, randomness=dice(1))
    assert made.first.epsilon == {"a": pytest.approx(3.0, abs=1e-8)}
    assert made.second.epsilon == {"b": pytest.approx(2.0, abs=1e-8)}


def test_one_mapping_of_levels_serves_both_groups() -> None:
    made = sv.quantile_difference({"a": HERE}, {"b": THERE}, {"b": 0.4, "a": 0.6}, 3.0, randomness=dice(1))
    assert (made.first.tau, made.second.tau) == (0.6, 0.4)


DAYS = np.datetime64("2020-01-01", "D") + (10 * THERE).astype(np.int64).astype("timedelta64[D]")


@pytest.mark.usefixtures("closed")
@pytest.mark.parametrize(
    ("second", "epsilon", "options", "sentence"),
    [
        ([[1.0, math.nan, 3.0]], 3.0, {}, "row 2"),
        ([DAYS], 3.0, {}, "measures numbers and the second dates; compare like with like"),
        ({"b": THERE}, {"a": 3.0, "b": 2.0, "c": 1.0}, {}, "epsilon names 'c', which is a site of neither group"),
        ({"b": THERE}, {"a": 3.0}, {}, "epsilon says nothing of site 'b'"),
        ({"b": THERE}, {"a": 3.0, "b": -1.0}, {}, "epsilon of site 'b' must be positive"),
        ([THERE[:15]], 3.0, {}, "0.5 quantile needs about"),
        ([THERE], 3.0, {"level": 2.0}, "level must lie"),
        ([THERE], 3.0, {"method": "magic"}, "method 'magic' is unknown"),
    ],
    ids=["missing value", "kind", "neither group", "no budget", "budget", "gate", "level", "method"],
)
def test_a_bad_second_group_spends_nothing_of_the_first(
    second: Any, epsilon: Any, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(sv.BadInput, match=sentence):
        sv.quantile_difference({"a": HERE}, second, 0.5, epsilon, randomness=dice(1), **options)


def test_infinite_ends_are_none_in_the_plain_values() -> None:
    few = {"method": "regression", "schedule": [1] * 500}
    made = sv.quantile_difference([HERE], [THERE], 0.5, 2.0, level=1 - 1e-9, randomness=dice(1), **few)
    assert made.interval == (-math.inf, math.inf)
    plain: dict[str, Any] = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    assert plain["interval"] == {"low": None, "high": None, "level": 1 - 1e-9}

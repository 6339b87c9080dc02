"""One quantile over many sites, end to end: any method, any container, any order of records, the stated estimand."""

import math
import os
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sottovoce as sv
from sottovoce.api.quantile.federated import pooled_quantile
from sottovoce.api.quantile.planning import METHODS
from sottovoce.client.reading.table import read_sites
from sottovoce.server.quantile.certified.lottery import Lottery
from sottovoce.server.quantile.method import OPEN, TURNED
from sottovoce.server.quantile.result import QuantileResult
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.populations import blend, population

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="whole studies take minutes when not compiled"
)


LEVEL = 1 - 1e-6  # of the intervals that must cover: the stated false-alarm rate
SOURCE = dice(31).generator()
NORTH, SOUTH = SOURCE.gamma(2.0, 10.0, 20_000), SOURCE.gamma(2.0, 10.0, 20_000)
SITES = {"north": NORTH, "south": SOUTH}
MEDIAN = 16.7834699


def covers(result: QuantileResult, truth: float) -> bool:
    low, high = result.interval_at(LEVEL)
    return low <= truth <= high


def numbers(result: QuantileResult) -> tuple[float, float, float]:
    return result.estimate, result.interval.low, result.interval.high


def all_answered(reports: int, result: QuantileResult) -> bool:
    """Tell whether all records answered; of a certified study, all that the lottery between its sites can use."""
    if result.method not in ("certified", "sequence"):
        return reports == int(result.plan.crowd.sizes.sum())
    most = Lottery(result.plan.crowd, b"").planned
    return 0.98 * most < reports <= most


@pytest.mark.parametrize("method", METHODS)
def test_each_method_covers_and_fills_its_result(method: str) -> None:
    result = sv.federated_quantile(SITES, 0.5, {"north": 2.0, "south": 3.0}, method=method, randomness=dice(1))
    assert covers(result, MEDIAN)
    assert result.interval.low < result.estimate < result.interval.high
    assert result.interval.high - result.interval.low < 2.0
    assert (result.tau, result.level, result.method, result.private) == (0.5, 0.95, method, False)
    assert all_answered(result.reports, result)
    assert result.rounds > 5
    assert result.epsilon == {"north": pytest.approx(2.0, abs=1e-8), "south": pytest.approx(3.0, abs=1e-8)}
    assert result.shares == {"north": 0.5, "south": 0.5}
    assert sum(result.variance_shares.values()) == pytest.approx(1.0)
    assert result.variance_shares["north"] > result.variance_shares["south"]


@pytest.mark.parametrize("method", METHODS)
def test_the_same_dice_give_the_same_numbers_and_others_do_not(method: str) -> None:
    first, again, other = (sv.federated_quantile(SITES, 0.5, 2.0, method=method, randomness=dice(s)) for s in (1, 1, 2))
    assert numbers(first) == numbers(again) != numbers(other)


@pytest.mark.parametrize(
    "wrap",
    [list, tuple, pd.Series, pl.Series, pa.array, lambda values: pa.chunked_array([values[:7], values[7:]])],
    ids=["list", "tuple", "pandas", "polars", "arrow", "chunked"],
)
def test_every_container_gives_the_same_numbers(wrap: Any) -> None:
    plain = sv.federated_quantile(SITES, 0.5, 2.0, randomness=dice(1))
    wrapped = {name: wrap(values) for name, values in SITES.items()}
    assert numbers(sv.federated_quantile(wrapped, 0.5, 2.0, randomness=dice(1))) == numbers(plain)
    assert numbers(sv.federated_quantile(list(wrapped.values()), 0.5, 2.0, randomness=dice(1))) == numbers(plain)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("order", ["up", "down", "blocks"])
def test_a_sorted_file_is_as_good_as_a_shuffled_one(method: str, order: str) -> None:
    # each estimate within five standard errors (false alarm 6e-7), and their mean too: a drift would add up
    arranged = [
        {"up": np.sort(v), "down": np.sort(v)[::-1].copy(), "blocks": np.sort(v).reshape(4, -1)[[2, 0, 3, 1]].ravel()}[
            order
        ]
        for v in SITES.values()
    ]
    scores = []
    for seed in range(5):
        result = sv.federated_quantile(arranged, 0.5, 2.0, method=method, randomness=dice(seed))
        low, high = result.interval_at(0.6826895)
        scores.append((result.estimate - MEDIAN) / ((high - low) / 2))
    assert max(map(abs, scores)) < 5
    # the records are the same in every run: their own error, at this budget under half of the variance, stays
    assert abs(np.mean(scores)) < 5 * math.sqrt(0.5 + 0.5 / 5)


def test_the_order_of_the_sites_does_not_matter() -> None:
    turned = {"south": SOUTH + 1e-9, "north": NORTH + 1e-9}  # the same records would not be compared
    one = sv.federated_quantile(SITES, 0.5, {"north": 1.0, "south": 4.0}, randomness=dice(1))
    two = sv.federated_quantile(turned, 0.5, {"north": 1.0, "south": 4.0}, randomness=dice(2))
    assert covers(one, MEDIAN)
    assert covers(two, MEDIAN)
    assert one.variance_shares == pytest.approx(two.variance_shares)
    assert one.shares == two.shares
    assert sv.compare(one, two).interval_at(LEVEL).low < 0 < sv.compare(one, two).interval_at(LEVEL).high


SIZES = (24_000, 6_000)
APART = {
    "low": dice(41).generator().normal(0.0, 1.0, SIZES[0]),
    "high": dice(42).generator().normal(1.5, 1.0, SIZES[1]),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("shares", "weight"), [("pooled", 0.8), ("equal", 0.5), ({"low": 0.35, "high": 0.65}, 0.35)], ids=str
)
def test_the_stated_estimand_is_the_one_estimated(method: str, shares: Any, weight: float) -> None:
    def truth(share: float) -> float:
        low, high = population("normal"), population("normal").moved(1.5)
        return float(blend([low, high], [share, 1 - share]).quantile(0.5))

    telling = 0
    for seed in (3, 4, 5):
        # a certified study is planned for its level
        result = sv.federated_quantile(
            APART, 0.5, 4.0, level=0.999, shares=shares, method=method, randomness=dice(seed)
        )
        assert covers(result, truth(weight))
        assert result.shares == {"low": pytest.approx(weight), "high": pytest.approx(1 - weight)}
        low, high = result.interval
        # in 3 runs of 100 the regression's line is not known to rise, and its infinite interval tells nothing
        if np.isfinite(high - low):
            telling += 1
            assert not any(low <= truth(other) <= high for other in {0.8, 0.5, 0.35} - {weight})
    assert telling >= (2 if method == "regression" else 3)


def test_an_average_of_site_quantiles_it_is_not() -> None:
    mean_of_medians = 0.8 * 0.0 + 0.2 * 1.5
    large = {name: np.tile(values, 4) for name, values in APART.items()}
    result = sv.federated_quantile(large, 0.9, 8.0, randomness=dice(4))
    assert not covers(result, mean_of_medians + 1.2816)


@pytest.mark.parametrize("method", METHODS)
def test_a_level_for_each_site(method: str) -> None:
    # the estimand is at the weighted sum of the levels: (.3 + .7) / 2
    result = sv.federated_quantile(SITES, {"north": 0.3, "south": 0.7}, 3.0, method=method, randomness=dice(5))
    assert result.tau == pytest.approx(0.5)
    assert covers(result, MEDIAN)


def test_extreme_levels_are_covered() -> None:
    values = dice(6).generator().exponential(1.0, 60_000)
    for tau in (0.1, 0.9):
        result = sv.federated_quantile([values], tau, 3.0, randomness=dice(6))
        assert covers(result, -math.log1p(-tau))


def test_public_knowledge_saves_rounds_and_still_covers() -> None:
    far = {name: 1e6 + values for name, values in SITES.items()}
    rounds = {}
    for name, public in (("none", {}), ("bounds", {"bounds": (1e6, 1e6 + 100)}), ("scale", {"scale": 10.0})):
        made = [sv.federated_quantile(far, 0.5, 2.0, randomness=dice(s), **public) for s in range(8)]
        assert all(covers(result, 1e6 + MEDIAN) for result in made)
        rounds[name] = sum(result.rounds for result in made) / 8
    assert rounds["bounds"] < rounds["none"]
    assert rounds["scale"] < rounds["none"] + 3


def test_only_the_systems_dice_and_a_finite_budget_are_private() -> None:
    assert sv.federated_quantile(SITES, 0.5, 2.0).private
    assert not sv.federated_quantile(SITES, 0.5, 2.0, randomness=dice(1)).private
    assert not sv.federated_quantile(SITES, 0.5, math.inf).private
    assert not sv.federated_quantile(SITES, 0.5, {"north": 2.0, "south": math.inf}).private


@pytest.mark.parametrize("method", METHODS)
def test_without_noise_the_answer_is_close_to_the_sample_quantile(method: str) -> None:
    result = sv.federated_quantile(SITES, 0.5, math.inf, method=method, randomness=dice(1))
    sample = float(np.median(np.concatenate([NORTH, SOUTH])))
    assert result.interval_at(0.999).low < sample < result.interval_at(0.999).high
    assert result.interval.high - result.interval.low < (1.2 if method in ("certified", "sequence") else 0.8)


def test_the_systems_dice_cover_too() -> None:
    assert covers(sv.federated_quantile(SITES, 0.5, 2.0), MEDIAN)


def test_nothing_of_a_private_result_shows_a_record() -> None:
    marked = {name: values + 123_456_000.0 for name, values in SITES.items()}
    result = sv.federated_quantile(marked, 0.5, 2.0)
    shown = repr(result) + repr(result.plan)
    assert not any(f"{value:.3f}" in shown or repr(float(value)) in shown for value in marked["north"][:500])


@pytest.mark.parametrize("method", METHODS)
def test_progress_counts_every_record_once(method: str) -> None:
    told: list[int] = []
    result = sv.federated_quantile(SITES, 0.5, 2.0, method=method, randomness=dice(1), progress=told.append)
    assert sum(told) == result.reports
    assert all_answered(sum(told), result)
    assert 39_500 < sum(told) <= 40_000
    assert min(told) > 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"schedule": "every:5"}, "belong to method 'regression' or 'self-normalised'"),
        ({"participation": 0.5}, "belong to method 'regression' or 'self-normalised'"),
        ({"method": "regression", "participation": 0.0}, "participation must lie in"),
        ({"method": "regression", "participation": 1.5}, "participation must lie in"),
        ({"method": "regression", "schedule": "often"}, "schedule 'often' is not known"),
        ({"method": "self-normalised", "schedule": [0, 1]}, "integers of at least 1"),
        ({"method": "self-normalised", "schedule": [50_000]}, "shorten it"),
    ],
    ids=str,
)
def test_what_does_not_belong_together_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(sv.BadInput, match=sentence):
        sv.federated_quantile(SITES, 0.5, 2.0, randomness=dice(1), **options)


def turned(result: QuantileResult) -> bool:
    return result.method == "certified" and TURNED[True] in result.warnings


def test_most_of_the_records_at_one_value_are_certified() -> None:
    values = np.where(dice(7).generator().random(40_000) < 0.9, 5.0, NORTH[0])
    result = sv.federated_quantile([values], 0.5, 3.0, randomness=dice(1))
    assert turned(result)
    assert covers(result, 5.0)
    low, high = result.interval
    assert low < 5.0 <= high
    assert high - low < 1e-3


def test_an_atom_far_from_zero_within_bounds_is_certified() -> None:
    values = np.where(dice(7).generator().random(200_000) < 0.98, 1e9, 1e9 + 1)
    result = sv.federated_quantile([values], 0.5, 4.0, bounds=(1e9 - 10, 1e9 + 10), randomness=dice(1))
    assert turned(result)
    assert covers(result, 1e9)
    assert 1e9 - 1e-3 < result.interval.low < 1e9 <= result.interval.high < 1e9 + 1e-3


def test_data_beyond_the_range_of_the_search_have_an_open_end() -> None:
    values = 1e300 * dice(7).generator().normal(size=200_000)
    result = sv.federated_quantile([values], 0.9, 4.0, randomness=dice(1))
    assert turned(result)
    assert OPEN in result.warnings
    assert covers(result, 1.2815516e300)
    assert result.interval.high == math.inf
    assert math.isfinite(result.estimate)


def test_a_recursion_that_did_not_arrive_gives_no_estimate_as_if_it_had() -> None:
    source = dice(7).generator()
    values = np.where(source.random(200_000) < 0.6, 0.0, source.exponential(1.0, 200_000))
    with pytest.raises(
        sv.SearchFailed, match=r"the recursion for the 0.9 quantile ran away; .* resolution= if many .* tied"
    ):
        sv.federated_quantile([values], 0.9, 4.0, method="regression", randomness=dice(1))


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.93])
def test_the_estimate_is_the_order_statistic_of_all_records(tau: float) -> None:
    values = dice(1).generator().normal(size=1001)
    found = pooled_quantile(read_sites([values[:300], values[300:]]), tau)
    assert found.estimate == np.quantile(values, tau, method="inverted_cdf")
    assert found.low < found.estimate < found.high


def test_the_interval_holds_the_right_number_of_records() -> None:
    values = np.arange(10_000.0)
    found = pooled_quantile(read_sites([values]), 0.3, 0.9)
    assert found.high - found.low == pytest.approx(2 * 1.644854 * (10_000 * 0.21) ** 0.5, abs=2)


def test_ranks_stay_among_the_records() -> None:
    found = pooled_quantile(read_sites([[1.0, 2.0, 3.0]]), 0.5, 0.999999)
    assert (found.low, found.high) == (1.0, 3.0)

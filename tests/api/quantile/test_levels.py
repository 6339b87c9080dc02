"""Several levels at once: joint coverage, no crossing, every record for one level only, one search for all."""

import json
import math
import os
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.api.quantile.planning import prepare
from sottovoce.client.quantile.site import Site
from sottovoce.inference.common.normal import two_sided
from sottovoce.server.quantile.asking import SiteProfile
from sottovoce.server.quantile.feasibility import support
from sottovoce.server.quantile.levels import QuantilesResult, split_of
from sottovoce.sim.randomness import dice

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="whole studies take minutes when not compiled"
)


SOURCE = dice(61).generator()
SITES = {"a": SOURCE.exponential(30.0, 40_000), "b": SOURCE.exponential(30.0, 20_000)}
TAUS = [0.25, 0.5, 0.75]
TRUTH = [-30 * math.log1p(-tau) for tau in TAUS]


@pytest.fixture(scope="module")
def made() -> QuantilesResult:
    return sv.federated_quantiles(SITES, TAUS, 3.0, level=0.9, randomness=dice(62))


def test_all_quantiles_are_covered_in_order(made: QuantilesResult) -> None:
    # five standard errors each
    for result, truth in zip(made.results, TRUTH, strict=True):
        low, high = result.interval_at(1 - 6e-7)
        assert low < truth < high
    assert made.taus == tuple(TAUS)
    assert list(made.estimates) == sorted(made.estimates)
    assert [low for low, _ in made.intervals] == sorted(low for low, _ in made.intervals)
    assert [high for _, high in made.intervals] == sorted(high for _, high in made.intervals)


def test_joint_intervals_are_those_of_the_divided_level(made: QuantilesResult) -> None:
    for joint, result in zip(made.intervals, made.results, strict=True):
        alone = result.interval_at(0.9)
        assert joint.low < alone.low < alone.high < joint.high
        assert joint == result.interval_at(1 - 0.1 / 3)
    assert two_sided(1 - 0.1 / 3) == pytest.approx(2.128, abs=1e-3)


def test_every_record_answers_for_one_level_only(made: QuantilesResult, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: dict[int, int] = {}
    plain = Site.tally

    def count(self: Site, query: Any) -> Any:
        rounds[query.round] = rounds.get(query.round, 0) + sum(query.counts)
        return plain(self, query)

    monkeypatch.setattr(Site, "tally", count)
    told: list[int] = []
    again = sv.federated_quantiles(SITES, TAUS, 3.0, level=0.9, randomness=dice(62), progress=told.append)
    assert again.estimates == made.estimates
    # what the levels asked and the one search before them are all there is, and no more than the records
    assert sum(rounds.values()) == sum(told) <= 60_000
    search = sum(told) - sum(result.reports for result in again.results)
    assert 0 < search < 6_000
    assert sum(told) > 60_000 - 2 * len(TAUS) - 1  # rounding leaves less than a record a level and site


def test_one_search_serves_all_levels(made: QuantilesResult) -> None:
    alone = [sv.federated_quantile(SITES, tau, 3.0, randomness=dice(63)).rounds for tau in TAUS]
    assert made.results[0].rounds == made.results[2].rounds < sum(alone)


def test_parts_are_as_told(made: QuantilesResult) -> None:
    assert made.split == pytest.approx((1 / 3,) * 3)
    own = sv.federated_quantiles(SITES, TAUS, 3.0, split=[0.5, 0.3, 0.2], randomness=dice(64))
    reports = np.array([result.reports for result in own.results])
    assert reports / reports.sum() == pytest.approx([0.5, 0.3, 0.2], abs=1e-3)


def test_an_extreme_level_gets_more_records_where_equal_parts_would_not_do() -> None:
    crowd = prepare(SITES, 0.5, 3.0).plan.crowd
    s = support(crowd, 0.5).ratio / 2
    needs = [(s / (0.15 * 0.02)) ** 2, (s / 0.02) ** 2]  # noise over tail of .15, and noise of .02 in the search
    split = split_of(None, [0.02, 0.5], crowd)
    assert split == pytest.approx([need + (1 - sum(needs)) / 2 for need in needs])
    assert 0.6 < split[0] < 0.9
    assert split_of(None, [0.2, 0.5, 0.8], crowd) == pytest.approx([1 / 3] * 3)
    few = SiteProfile(crowd.shares, crowd.rates, crowd.sizes // 1000)  # more is needed than there is: half goes by need
    starved = split_of(None, [0.02, 0.5], few)
    assert sum(starved) == pytest.approx(1)
    assert min(starved) > 1 / 4
    assert split_of(None, [0.1, 0.5], crowd)[0] > 0.5


@pytest.mark.filterwarnings("ignore:the .* quantile is barely supported:UserWarning")
def test_an_equal_split_answers_where_the_median_would_have_starved() -> None:
    made = sv.federated_quantiles([dice(3).generator().gamma(2.0, 10.0, 20_000)], TAUS, 1.0, randomness=dice(4))
    assert made.split == pytest.approx((1 / 3,) * 3)
    # five standard errors each
    for result, truth in zip(made.results, (9.612788, 16.783470, 26.926345), strict=True):
        low, high = result.interval_at(1 - 6e-7)
        assert low < truth < high


def test_the_table_and_the_plain_values_are_complete(made: QuantilesResult) -> None:
    text = made.summary()
    assert str(made) == text
    flat = " ".join(text.split())
    assert "Coverage: 0.9 jointly" in flat
    assert made.results[0].promise in flat
    for tau, estimate, (low, high) in zip(made.taus, made.estimates, made.intervals, strict=True):
        assert f"{tau:.6g} {made.format(estimate)} {made.format(low)} {made.format(high)}" in flat
    plain = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    assert [row["tau"] for row in plain["joint"]] == TAUS
    assert plain["level"] == 0.9
    assert plain["private"] is False
    assert [(row["low"], row["high"]) for row in plain["joint"]] == [tuple(ends) for ends in made.intervals]
    assert len(plain["results"]) == 3
    assert made.private is False


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"taus": 0.5}, "sequence of levels, not 0.5"),
        ({"taus": "0.5"}, "sequence of levels"),
        ({"taus": []}, "different levels"),
        ({"taus": [0.5, 0.5]}, "different levels"),
        ({"taus": [0.0, 0.5]}, "strictly between 0 and 1"),
        ({"taus": [0.5, 0.25]}, "must ascend"),
        ({"taus": ["a"]}, "tau must be a number"),
        ({"level": 1.0}, "level must lie"),
        ({"split": [0.5, 0.5]}, "3 positive parts that sum to 1"),
        ({"split": [0.5, 0.6, -0.1]}, "3 positive parts"),
        ({"split": [0.5, 0.3, 0.3]}, "sum to 1"),
        ({"split": 0.5}, "split must be a sequence"),
        ({"split": [0.9998, 0.0001, 0.0001]}, "0.5 quantile needs about"),
        ({"split": [0.9, 0.0999, 0.0001]}, "0.75 quantile needs about"),
        ({"epsilon": 0.05}, "quantile needs about"),
        ({"epsilon": -1.0}, "epsilon must be positive"),
        ({"bounds": (1, 0)}, "low < high"),
    ],
    ids=str,
)
def test_bad_input_spends_nothing(change: dict[str, Any], sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("a record answered")

    monkeypatch.setattr(Site, "tally", refuse)
    options: dict[str, Any] = {"taus": TAUS, "epsilon": 3.0, **change}
    with pytest.raises(sv.BadInput, match=sentence):
        sv.federated_quantiles(SITES, options.pop("taus"), options.pop("epsilon"), **options)


@pytest.mark.parametrize("shares", ["pooled", "equal", "custom"])
@pytest.mark.parametrize("size", [2, 59])
def test_a_site_too_small_for_all_levels_is_left_out_before_anything_is_asked(size: int, shares: str) -> None:
    sites = {**SITES, "tiny": SITES["b"][:size] + 1e-7}
    given: Any = {"a": 0.5, "b": 0.3, "tiny": 0.2} if shares == "custom" else shares
    budgets = dict.fromkeys(sites, 3.0)
    with pytest.warns(UserWarning, match="site 'tiny' has too few records .* over the 2 sites left"):
        made = sv.federated_quantiles(sites, TAUS, budgets, shares=given, randomness=dice(1))
    sizes = [len(SITES[name]) for name in "ab"]
    wanted = {"pooled": sizes[0] / sum(sizes), "equal": 0.5, "custom": 0.625}
    for result in made.results:
        assert result.left_out == ("tiny",)
        assert result.shares == pytest.approx({"a": wanted[shares], "b": 1 - wanted[shares]})
        assert "the 2 sites left" in result.estimand
    assert made.to_dict()["results"][0]["sites_left_out"] == ["tiny"]
    assert made.summary().count("is left out") == 1


def test_sites_that_are_all_too_small_are_refused_before_anything_is_spent() -> None:
    told: list[int] = []
    small = {name: column[:30].copy() for name, column in SITES.items()}
    with pytest.raises(sv.BadInput, match=r"too few to answer for 3 levels|needs about"):
        sv.federated_quantiles(small, TAUS, math.inf, progress=told.append)
    assert told == []


def test_a_site_of_twenty_records_a_level_does_no_harm() -> None:
    made = sv.federated_quantiles({**SITES, "tiny": SITES["b"][:60] + 1e-7}, TAUS, 3.0, randomness=dice(1))
    for result, truth in zip(made.results, TRUTH, strict=True):
        low, high = result.interval_at(1 - 6e-7)
        assert low < truth < high


def test_ties_are_hinted_at_and_never_passed_on() -> None:
    made = sv.federated_quantiles({"a": np.round(SITES["a"])}, [0.4, 0.6], 3.0, randomness=dice(1))
    (hint,) = made.hints
    assert "tied" in hint
    assert "tied" not in made.summary() + repr(made) + made._repr_html_() + json.dumps(made.to_dict())


def test_one_level_is_the_plain_case_and_dates_work() -> None:
    one = sv.federated_quantiles(SITES, [0.5], 3.0, randomness=dice(65))
    assert one.intervals == (one.results[0].interval,)
    days = np.datetime64("2020-01-01", "D") + SITES["a"].astype(np.int64).astype("timedelta64[D]")
    two = sv.federated_quantiles({"a": days}, [0.5, 0.7], 3.0, randomness=dice(66))
    assert "2020-01-" in two.summary()
    assert two.results[0].plan.resolution == 1.0

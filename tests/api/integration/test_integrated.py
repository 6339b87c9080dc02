"""One site helped by others, end to end: names, containers, budgets, and what every method promises of its numbers."""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sottovoce as sv
from sottovoce.api.quantile.planning import plan_study, run_sites
from sottovoce.core.arrays import Words
from sottovoce.inference.integration.weighted import METHODS as PAPER
from sottovoce.server.integration.plan import METHODS
from sottovoce.server.integration.result import IntegratedResult
from sottovoce.server.quantile.method import StagedQuantile
from sottovoce.sim.randomness import SeededSource, dice

compiled = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="whole studies take minutes when not compiled"
)
LEVEL = 0.99  # the highest level that has a table; coverage at 1e-6 is for tests/statistics
DRAWS = dice(41).generator()
OURS, NORTH, SOUTH = (DRAWS.gamma(2.0, 10.0, n) for n in (6000, 9000, 12_000))
SITES: dict[str, Any] = {"ours": OURS, "north": NORTH, "south": SOUTH}
BUDGETS = {"ours": 2.0, "north": 3.0, "south": math.inf}
TOLD = sv.SiteSummary(16.6, 0.4, n=500)


def ask(target: Any = "ours", sources: Any = None, epsilon: Any = 2.0, **options: Any) -> IntegratedResult:
    chosen = dict(SITES) if sources is None else sources
    method = options.get("method", "valid")
    bound = {"bound": 0.5} if method == "known-bound" and "bound" not in options else {}
    return sv.integrated_quantile(target, chosen, 0.5, epsilon, **{"randomness": dice(7), **bound, **options})


def numbers(result: IntegratedResult) -> tuple[float, ...]:
    return (result.estimate, *result.interval, *result.target_interval, *result.weights.values())


def check(result: IntegratedResult) -> None:
    """Check what holds of every result."""
    low, high = result.interval
    assert low <= result.estimate <= high
    assert sum(result.weights.values()) == pytest.approx(1.0, abs=1e-12)
    assert all(0 <= weight <= 1 for weight in result.weights.values())
    own = result.target.measured.estimate
    shifts = {site.name: site.measured.estimate - own for site in result.known}
    moved = sum(result.weights[name] * shift for name, shift in shifts.items())
    assert own + moved == pytest.approx(result.combination.estimate, abs=1e-9 * result.target.measured.std_error)
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["weights"] == dict(result.weights)


@compiled
@pytest.mark.parametrize("method", METHODS)
def test_each_method_with_sites_of_every_kind(method: str) -> None:
    result = ask(sources={**SITES, "told": TOLD}, epsilon=BUDGETS, method=method)
    check(result)
    assert tuple(result.weights) == ("ours", "north", "south", "told")
    kinds = ["private", "private", "open", "summary"]
    assert [site.kind for site in result.known] == (kinds[:1] if method == "target" else kinds)
    assert result.idle == (("north", "south", "told") if method == "target" else ())
    assert (result.tau, result.level, result.method, result.private) == (0.5, 0.95, method, False)
    if method != "target":  # whose sources are not asked
        assert set(result.epsilon) == set(BUDGETS)
        assert result.epsilon["north"] == pytest.approx(3.0, abs=1e-6)
    assert result.reports <= sum(map(len, SITES.values()))
    assert result.uniformly_valid is (method in ("valid", "conservative"))
    assert any("Not uniformly valid" in text for text in result.warnings) is (method in PAPER)
    assert (result.reason is None) is (method == "valid")
    assert 13 < result.interval.low < result.interval.high < 21


@compiled
@pytest.mark.parametrize("epsilon", [2.0, math.inf])
@pytest.mark.parametrize("method", ["valid", "conservative", "known-bound"])
@pytest.mark.parametrize("sources", [{}, [], (), None])
def test_without_sources_it_is_the_targets_own_interval_bit_for_bit(method: str, epsilon: float, sources: Any) -> None:
    options: dict[str, Any] = {"method": method, "bound": 0.5 if method == "known-bound" else None}
    result = sv.integrated_quantile(OURS, sources, 0.5, epsilon, randomness=dice(7), **options)
    check(result)
    assert result.interval == result.target_interval
    assert result.estimate == result.target.measured.estimate
    assert (dict(result.weights), result.length_ratio) == ({"target": 1.0}, 1.0)


@compiled
def test_a_target_alone_is_the_quantile_of_one_site_by_stages_that_do_not_watch() -> None:
    [own] = dice(7).split(1)
    prepared = plan_study({"target": OURS}, 0.5, 2.0).prepared
    alone, _ = run_sites(prepared, StagedQuantile(prepared.plan, watch=False), "staged", own, None)
    result = sv.integrated_quantile(OURS, {}, 0.5, 2.0, randomness=dice(7))
    assert (result.estimate, result.interval, result.reports) == (alone.estimate, alone.interval, alone.reports)


@compiled
@pytest.mark.parametrize("epsilon", [2.0, math.inf])
@pytest.mark.parametrize("far", [1e3, -1e6, 1e12])
def test_far_sources_leave_the_targets_own_interval_as_it_is(epsilon: float, far: float) -> None:
    result = ask(OURS, {"far": sv.SiteSummary(far, 1.0), "as far": sv.SiteSummary(far + 1, 1.0)}, epsilon)
    check(result)
    assert result.interval == result.target_interval
    assert result.length_ratio == 1.0
    assert abs(result.estimate - result.target.measured.estimate) <= 0.2500001 * result.target.measured.std_error


@compiled
def test_the_target_by_name_by_mapping_by_column_and_from_tables(tmp_path: Path) -> None:
    others = {name: values for name, values in SITES.items() if name != "ours"}
    frame = pd.DataFrame(
        {"wait": np.concatenate(list(SITES.values())), "site": np.repeat(list(SITES), list(map(len, SITES.values())))}
    )
    frame.to_csv(tmp_path / "waits.csv", index=False)
    whole = sv.read_frame(frame, value="wait", site="site")
    alone = sv.read_frame(frame[frame.site == "ours"], value="wait", site="site")
    rest = sv.read_frame(frame[frame.site != "ours"], value="wait", site="site")
    by_name = numbers(ask())
    assert numbers(ask({"ours": OURS}, others)) == by_name
    assert numbers(ask(OURS, others)) == by_name
    assert numbers(ask("ours", whole)) == by_name
    assert numbers(ask(alone, rest)) == by_name
    assert numbers(ask(OURS, rest)) == by_name
    assert numbers(ask("ours", sv.read_files(tmp_path / "waits.csv", value="wait", site="site"))) == by_name
    listed = ask(OURS, list(others.values()))
    assert numbers(listed) == by_name
    assert tuple(listed.weights) == ("target", "source 1", "source 2")
    assert ask("ours").estimand.startswith("the value below which 0.5 of the records of ours lie")
    assert ask({7.0: OURS}, {8: NORTH}).weights.keys() == {"7", "8"}


@compiled
@pytest.mark.parametrize(
    "wrap",
    [list, pd.Series, pl.Series, pa.array, lambda values: pa.chunked_array([values[:7], values[7:]])],
    ids=["list", "pandas", "polars", "arrow", "chunked"],
)
def test_every_container_gives_the_same_numbers(wrap: Any) -> None:
    assert numbers(ask(sources={name: wrap(values) for name, values in SITES.items()})) == numbers(ask())


def test_summaries_alone_need_no_records_and_no_budget() -> None:
    told = {"a": {"estimate": 10.2, "se": 0.5, "df": 40}, "b": sv.SiteSummary(10.1, interval=(9.0, 11.4), n=80)}
    result = sv.integrated_quantile(sv.SiteSummary(10.0, 1.0, n=60), told, 0.5, None)
    check(result)
    assert (result.private, result.reports, result.rounds, dict(result.epsilon)) == (True, 0, 0, {})
    assert "No record was read" in result.promise
    named = sv.integrated_quantile("a", told, 0.5, None)
    assert named.target.name == "a"
    assert tuple(named.weights) == ("a", "b")


def test_a_source_without_an_error_helps_by_its_estimate_alone() -> None:
    target = sv.SiteSummary(10.0, 1.0, df=math.inf)
    told: dict[str, Any] = {"a": sv.SiteSummary(10.4, 0.1), "b": {"estimate": 10.2, "trusted": False}}
    result = sv.integrated_quantile(target, told, 0.5, 1.0)
    check(result)
    assert result.length_ratio < 1
    assert result.weights["b"] == result.weights["a"] > 0  # the median of two
    doubtful = sv.SiteSummary(10.4, 55.0, trusted=False)
    assert numbers(sv.integrated_quantile(target, dict(told, a=doubtful), 0.5, 1.0)) == numbers(result)


def test_a_source_whose_error_is_hardly_known_is_left_out_and_named() -> None:
    told = {"few": sv.SiteSummary(10.1, 0.1, n=3), "more": sv.SiteSummary(10.1, 0.1, n=90)}
    result = sv.integrated_quantile(sv.SiteSummary(10.0, 1.0), told, 0.5, 1.0)
    check(result)
    assert result.weights["few"] == 0
    assert result.to_dict()["left_out"] == ["few"]
    assert ["'few'" in text for text in result.warnings] == [True]


@compiled
@pytest.mark.parametrize("level", [0.8, 0.9, LEVEL])
@pytest.mark.parametrize("method", ["valid", "conservative", "known-bound", "ivw"])
def test_other_levels(method: str, level: float) -> None:
    result, usual = (ask(epsilon=BUDGETS, method=method, level=each) for each in (level, 0.95))
    check(result)
    assert result.level == result.to_dict()["interval"]["level"] == level
    lengths = [each.interval.high - each.interval.low for each in (result, usual)]
    assert (lengths[0] > lengths[1]) is (level > 0.95)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("n", [12, 100, 1500])
def test_the_conservative_interval_is_never_longer_than_an_open_targets_own(n: int, level: float) -> None:
    for seed in range(10):
        values = dice(seed).generator().exponential(1.0, n)
        told = {"a": sv.SiteSummary(0.7 + seed / 20, 0.3 / math.sqrt(n), n=900)}
        result = sv.integrated_quantile(values, told, 0.5, math.inf, method="conservative", level=level)
        check(result)
        assert result.length_ratio <= 1 + 1e-12
        assert result.weights["a"] > 0


class Dealt:
    """Dice that give each site the dice that were chosen for it."""

    private = False

    def __init__(self, parts: list[SeededSource]) -> None:
        self._parts = parts

    def words(self, n: int) -> Words:
        raise AssertionError("only sites throw dice")

    def split(self, n: int) -> list[Any]:
        assert n == len(self._parts)
        return self._parts


@compiled
@pytest.mark.parametrize("method", [method for method in METHODS if method != "target"])
def test_the_order_of_the_sources_does_not_matter_if_each_has_its_own_dice(method: str) -> None:
    found = []
    for names in (["north", "south", "told"], ["told", "south", "north"]):
        sources = {name: {**SITES, "told": TOLD}[name] for name in names}
        seeds = {"north": 2, "south": 3, "told": 4}
        parts = Dealt([dice(1), *(dice(seeds[name]) for name in names)])
        found.append(ask(OURS, sources, method=method, randomness=parts))
    one, two = found
    assert two.interval == pytest.approx(one.interval, rel=1e-12)
    assert dict(two.weights) == pytest.approx(dict(one.weights), rel=1e-9)


@compiled
def test_dice_go_by_place_so_the_target_answers_alike_whoever_helps() -> None:
    alone, helped, turned = ask(OURS, {}), ask(OURS, {"a": NORTH, "b": SOUTH}), ask(OURS, {"b": SOUTH, "a": NORTH})
    assert alone.target_interval == helped.target_interval == turned.target_interval
    assert {site.name: site.measured for site in helped.known} != {site.name: site.measured for site in turned.known}


@compiled
def test_a_lost_source_is_left_out_named_and_its_spending_counted() -> None:
    constant = np.full(5000, 5.0)
    constant[0] = 6.0
    told: list[int] = []
    result = ask(sv.SiteSummary(16.0, 0.5), {"flat": constant, "north": NORTH}, progress=told.append)
    check(result)
    assert result.absent == ("flat",)
    assert result.weights["flat"] == 0
    assert any("source 'flat' is left out" in text for text in result.warnings)
    assert set(result.epsilon) == {"flat", "north"}
    assert len(NORTH) < result.reports == sum(told) <= len(NORTH) + len(constant)
    alone = ask(sv.SiteSummary(16.0, 0.5), {"flat": constant})
    assert alone.private is False
    assert "No record was read" not in alone.promise
    assert alone.interval == alone.target_interval


@compiled
def test_progress_hears_of_every_record() -> None:
    told: list[int] = []
    result = ask(epsilon=BUDGETS, progress=told.append)
    assert sum(told) == result.reports == sum(map(len, SITES.values()))


def test_bounds_the_data_contradict_are_named() -> None:
    told = {"a": sv.SiteSummary(14.0, 0.1), "b": sv.SiteSummary(10.0, 0.1)}
    limits: Mapping[str, float] = {"a": 0.1, "b": math.inf}
    result = sv.integrated_quantile(sv.SiteSummary(10.0, 0.5), told, 0.5, 1.0, method="known-bound", bound=limits)
    check(result)
    assert [("'a'" in text, "contradicted" in text) for text in result.warnings] == [(True, True)]
    assert result.to_dict()["bound"] == {"a": 0.1, "b": None}
    assert result.weights["b"] == 0
    assert isinstance(hash(result), int)

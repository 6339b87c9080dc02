"""What a study of groups returns: intervals of every kind that agree, comparisons, help between groups, one picture."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.inference.common.several import adjusted
from sottovoce.server.quantile.difference import Difference
from sottovoce.server.quantile.groups.result import COLUMNS, GroupQuantilesResult
from sottovoce.sim.randomness import dice

SCALES = {"east": 10.0, "north": 10.5, "south": 11.0, "west": 14.0, "isle": 10.2}
SIZES = {"east": 6_000, "north": 9_000, "south": 7_000, "west": 8_000, "isle": 900}


def records(integer: bool = False) -> dict[str, Any]:
    drawn = {name: dice(i).generator().gamma(2.0, scale, SIZES[name]) for i, (name, scale) in enumerate(SCALES.items())}
    return {name: values.round().astype(np.int64) for name, values in drawn.items()} if integer else drawn


def study(**settings: Any) -> GroupQuantilesResult:
    whole = settings.pop("whole", False)
    return sv.group_quantiles(records(whole), 0.5, 3.0, randomness=dice(7), **settings)


@pytest.fixture(scope="module")
def plain() -> GroupQuantilesResult:
    return study()


@pytest.fixture(scope="module")
def helped() -> GroupQuantilesResult:
    return study(shrinkage="each")


@pytest.fixture(scope="module")
def certified() -> GroupQuantilesResult:
    return study(method="certified")


def test_intervals_that_hold_together_hold_those_of_each(plain: GroupQuantilesResult) -> None:
    for name in plain.names:
        own, joint = plain.individual[name], plain.joint[name]
        assert joint.low < own.low < plain.estimates[name] < own.high < joint.high
    assert plain.intervals == plain.joint
    assert study(simultaneous=False).intervals == study(simultaneous=False).individual


def test_each_group_is_a_result_of_its_own(plain: GroupQuantilesResult) -> None:
    west = plain.groups["west"]
    assert west.interval_at(0.95) == plain.individual["west"]
    assert west.interval_at(0.95 ** (1 / 5)) == plain.joint["west"]
    assert west.test(16.0).pvalue < 1e-6
    assert sv.compare(west, plain.groups["east"]).estimate == pytest.approx(
        plain.estimates["west"] - plain.estimates["east"]
    )


def test_intervals_at_other_levels_cost_nothing_and_are_nested(plain: GroupQuantilesResult) -> None:
    wide, usual = plain.intervals_at(0.999), plain.intervals
    assert all(wide[name].low < usual[name].low < usual[name].high < wide[name].high for name in plain.names)
    assert plain.intervals_at(0.95) == usual


def test_the_table_has_a_row_a_group(plain: GroupQuantilesResult) -> None:
    assert tuple(plain.table) == COLUMNS
    assert plain.table["group"] == plain.names
    assert plain.table["records"] == tuple(SIZES[name] for name in plain.names)
    assert plain.table["low"] == tuple(plain.intervals[name].low for name in plain.names)
    assert plain.table["low_individual"] == tuple(plain.individual[name].low for name in plain.names)
    assert plain.table["estimate"] == plain.table["shrunk"]


def test_every_record_answers_once(plain: GroupQuantilesResult) -> None:
    assert plain.reports <= sum(SIZES.values())
    assert all(result.reports <= SIZES[name] for name, result in plain.groups.items())


def test_groups_that_differ_are_found(plain: GroupQuantilesResult) -> None:
    assert plain.equal.pvalue < 1e-9
    assert "west" in plain.compare().differing
    to_east = plain.compare(to="east")
    assert "west" in to_east.differing
    assert [row.group for row in to_east.rows] == ["north", "south", "west", "isle"]


def test_a_comparison_is_the_difference_of_two_results(plain: GroupQuantilesResult) -> None:
    found = plain.compare(to="east")
    joint = 1 - 0.05 / 4
    for row in found.rows:
        two = Difference(plain.groups[row.group], plain.groups["east"], joint)
        assert (row.difference, row.low, row.high) == pytest.approx((two.estimate, *two.interval))
        if two.pvalue > 1e-5:  # between marks ends go on in a line
            assert row.pvalue == pytest.approx(two.pvalue, rel=0.35)
        assert row.pvalue < max(3 * two.pvalue, 1e-8)
    assert tuple(row.adjusted for row in found.rows) == pytest.approx(adjusted([row.pvalue for row in found.rows]))
    assert all(row.differs == (row.adjusted <= 0.05) for row in found.rows)


def test_others_are_weighed_by_their_records(plain: GroupQuantilesResult) -> None:
    [row] = [row for row in plain.compare().rows if row.group == "west"]
    others = {name: size for name, size in SIZES.items() if name != "west"}
    mean = sum(size * plain.groups[name].solution.point for name, size in others.items()) / sum(others.values())
    assert row.difference == pytest.approx(plain.groups["west"].solution.point - mean)


def test_certified_comparisons_are_exact_and_agree_with_their_intervals(certified: GroupQuantilesResult) -> None:
    found = certified.compare(to="east")
    assert found.guarantee == "for every distribution"
    for row in found.rows:
        exact = Difference(certified.groups[row.group], certified.groups["east"], 1 - 0.05 / 4)
        assert (row.low, row.high) == pytest.approx(exact.interval)
        assert row.pvalue >= exact.pvalue - 1e-12
    assert certified.equal.by == "whether all intervals share a point"
    assert certified.equal.pvalue < 0.05


def test_groups_alike_are_not_told_apart() -> None:
    alike = {f"g{i}": dice(i).generator().gamma(2.0, 10.0, 5_000) for i in range(6)}
    for method in ("staged", "certified"):
        found = sv.group_quantiles(alike, 0.5, 3.0, method=method, randomness=dice(3))
        assert found.equal.pvalue > 0.01
        assert found.compare(level=0.999).differing == ()


def test_help_keeps_every_estimate_within_its_interval(helped: GroupQuantilesResult) -> None:
    for name, interval in helped.intervals.items():
        assert interval.low <= helped.shrunk_estimates[name] <= interval.high
    assert helped.estimates == study().estimates
    assert helped.joint == study().joint


def test_help_moves_estimates_towards_the_others(helped: GroupQuantilesResult) -> None:
    assert helped.spread is not None
    north, isle = helped.names.index("north"), helped.names.index("isle")
    assert helped.shrunk_estimates["west"] < helped.estimates["west"]
    rows = [row for row in helped.moved if row is not None]
    assert len(rows) == 5
    assert rows[isle].own < rows[north].own < 1  # who has few records of its own leans on the others most


def test_help_on_average_shortens_more() -> None:
    alike = {f"g{i}": dice(i).generator().gamma(2.0, 10.0, 3_000) for i in range(50)}
    found = sv.group_quantiles(alike, 0.5, 4.0, simultaneous=False, shrinkage="average", randomness=dice(3))
    own = found.individual
    shorter = [
        (interval.high - interval.low) / (own[name].high - own[name].low) for name, interval in found.intervals.items()
    ]
    assert np.median(shorter) < 0.8
    assert max(shorter) <= 1.0
    assert "on average" in found.guarantee
    assert "not for every single one" in found.guarantee


def test_few_groups_do_not_help_each_other_on_average_but_each() -> None:
    with pytest.warns(UserWarning, match="fewer than 10 groups"):
        found = study(simultaneous=False, shrinkage="average")
    assert found.helped == "each"
    assert "every group keeps its own level" in found.guarantee
    assert dict(found.intervals) == dict(study(simultaneous=False, shrinkage="each").intervals)
    assert sum("fewer than 10 groups" in text for text in found.warnings) == 1


def test_certified_groups_are_not_shrunk_and_said_to_be_so() -> None:
    sites = {f"g{i}": dice(i).generator().gamma(2.0, 10.0, 6_000) for i in range(8)}
    sites["zeros"] = np.where(dice(9).generator().random(6_000) < 0.7, 0.0, 5.0) + np.arange(6_000) * 1e-9
    found = sv.group_quantiles(sites, 0.5, 3.0, shrinkage="each", randomness=dice(3))
    assert found.groups["zeros"].method == "certified"
    assert found.moved[-1] is None
    assert found.intervals["zeros"] == found.groups["zeros"].interval_at(1 - 0.05 / 9)
    assert any("'zeros'" in text and "not shrunk" in text for text in found.warnings)


def test_three_groups_are_too_few_to_help_each_other() -> None:
    sites = dict(list(records().items())[:3])
    found = sv.group_quantiles(sites, 0.5, 3.0, shrinkage="each", randomness=dice(3))
    assert found.moved == (None,) * 3
    assert any("no group is shrunk" in text for text in found.warnings)


def test_whole_numbers_stay_whole() -> None:
    found = study(whole=True, shrinkage="each")
    for name in found.names:
        numbers = (found.estimates[name], found.shrunk_estimates[name], *found.intervals[name])
        assert all(float(number).is_integer() for number in numbers)
    comparison = found.compare(to="east")
    assert all(row.low <= row.difference <= row.high for row in comparison.rows)
    assert comparison.rows[2].high - comparison.rows[2].low >= 1  # half a step of each is not known


def test_a_group_may_be_called_others() -> None:
    sites = {name: dice(i).generator().gamma(2.0, 10.0 + 5 * i, 5_000) for i, name in enumerate(["a", "b", "others"])}
    found = sv.group_quantiles(sites, 0.5, 3.0, randomness=dice(3))
    mean, one = found.compare(), found.compare(to="others")
    assert [row.group for row in mean.rows] == ["a", "b", "others"]
    assert [row.group for row in one.rows] == ["a", "b"]
    assert "the mean of the others" in mean.summary()
    assert "compared with others" in one.summary()
    assert [row["group"] for row in found.to_dict()["compared"]["groups"]] == ["a", "b", "others"]


def test_levels_as_near_to_one_as_numbers_go(plain: GroupQuantilesResult) -> None:
    for level in (1 - 1e-16, 1 - 1e-15, 1e-300):
        assert len(plain.intervals_at(level)) == len(plain.compare(level=level).rows) == len(plain.names)
    nearly_one = sv.group_quantiles(records(), 0.5, 3.0, level=1 - 1e-16, randomness=dice(7))
    assert nearly_one.summary()


def test_a_summary_names_groups_and_what_is_promised(plain: GroupQuantilesResult) -> None:
    text = plain.summary()
    assert all(name in text for name in plain.names)
    for said in ("95% all together", "All equal:", "Differ:", "by site, which is public", "each once"):
        assert said in text
    assert plain.headline.startswith("0.5 quantile of 5 groups: ")
    assert "Groups compared with the mean of the others" in plain.compare().summary()


def test_json_is_strict_and_whole(plain: GroupQuantilesResult, tmp_path: Path) -> None:
    found = json.loads(plain.save(tmp_path / "groups.json").read_text(encoding="utf-8"))
    assert [row["group"] for row in found["groups"]] == list(plain.names)
    assert found["equal"]["pvalue"] == plain.equal.pvalue
    assert found["compared"]["to"] is None
    again = sv.load(tmp_path / "groups.json")
    assert again.summary() == plain.summary()
    assert again.intervals_at(0.8) == plain.intervals_at(0.8)


def test_a_stored_result_that_is_not_whole_is_refused(plain: GroupQuantilesResult) -> None:
    values = json.loads(json.dumps(plain.to_dict()))
    values["stored"]["state"][0] = values["stored"]["state"][0][:-1]
    with pytest.raises(sv.BadInput, match="not a whole stored result"):
        GroupQuantilesResult.from_dict(values)


@pytest.mark.parametrize("settings", [{}, {"shrinkage": "each"}, {"shrinkage": "each", "simultaneous": False}])
def test_the_picture_stands_in_the_order_of_the_estimates(settings: dict[str, Any]) -> None:
    pytest.importorskip("matplotlib")
    found = study(**settings)
    figure = found.draw()
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == sorted(found.names, key=lambda name: -found.shrunk_estimates[name])
    low, high = figure.axes[0].get_xlim()
    assert all(low <= end <= high for interval in found.intervals.values() for end in interval)


def test_an_endless_interval_does_not_stretch_the_picture() -> None:
    pytest.importorskip("matplotlib")
    far = {f"g{i}": dice(i).generator().gamma(2.0, 10.0, 3_000) for i in range(5)}
    far["far"] = 1e7 + dice(8).generator().gamma(2.0, 10.0, 3_000)
    found = sv.group_quantiles(far, 0.5, 3.0, method="certified", randomness=dice(3))
    assert math.isinf(found.intervals["far"].high)
    low, high = found.draw().axes[0].get_xlim()
    assert high - low < 1e3


def test_an_unknown_group_is_refused_with_the_nearest(plain: GroupQuantilesResult) -> None:
    with pytest.raises(sv.BadInput, match=r"no group 'wst' \(did you mean 'west'"):
        plain.compare(to="wst")
    with pytest.raises(sv.BadInput, match="level"):
        plain.compare(level=2)

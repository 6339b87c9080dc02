"""Quantiles of groups through the public call: sites, columns of groups, frames; costs, limits, plans, privacy."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sottovoce as sv
from sottovoce.client.answered import MEMORY
from sottovoce.client.quantile.site import Site
from sottovoce.sim.randomness import dice

N = 9_000
WAITS = {name: dice(i).generator().gamma(2.0, 10.0 + 2 * i, N) for i, name in enumerate(("north", "south", "west"))}
SEXES = {name: np.array(["f", "m"])[dice(40 + i).generator().integers(0, 2, N)] for i, name in enumerate(WAITS)}
FRAME = pd.DataFrame(
    {
        "wait": np.concatenate(list(WAITS.values())),
        "clinic": np.repeat(list(WAITS), N),
        "sex": np.concatenate(list(SEXES.values())),
    }
)


def ask(sites: Any = WAITS, tau: float = 0.5, epsilon: Any = 2.0, **settings: Any) -> Any:
    return sv.group_quantiles(sites, tau, epsilon, **{"randomness": dice(5), **settings})


def test_every_site_is_a_group() -> None:
    found = ask()
    assert found.names == tuple(WAITS)
    assert found.by == "site"
    for i, name in enumerate(WAITS):
        low, high = found.groups[name].interval_at(1 - 1e-6)
        assert low <= 1.6783469900166605 * (10 + 2 * i) <= high


def test_a_column_of_groups_divides_the_records_of_all_sites() -> None:
    columns = ask(groups=SEXES)
    table = sv.read_frame(FRAME, value="wait", site="clinic", group="sex")
    frame = ask(table)
    assert columns.names == frame.names == ("f", "m")
    assert columns.estimates == frame.estimates
    assert columns.by == "group"
    assert frame.by == "sex"
    assert "by sex, which is public" in " ".join(frame.summary().split())
    for name in ("f", "m"):
        mine = np.concatenate([WAITS[site][SEXES[site] == name] for site in WAITS])
        assert sum(frame.groups[name].plan.roster.sizes) == len(mine)
        low, high = frame.groups[name].interval_at(1 - 1e-6)
        assert low <= float(np.median(mine)) <= high


def test_budgets_of_sites_hold_in_every_group() -> None:
    found = ask(groups=SEXES, epsilon={"north": 1.0, "south": 2.0, "west": 3.0})
    assert {site: round(paid, 6) for site, paid in found.epsilon.items()} == {"north": 1.0, "south": 2.0, "west": 3.0}
    assert found.table["epsilon"] == pytest.approx((3.0, 3.0))


def test_a_group_counts_its_sites_as_wished() -> None:
    pooled, equal = ask(groups=SEXES), ask(groups=SEXES, shares="equal")
    assert pooled.groups["f"].plan.shares_name == "pooled"
    assert set(equal.groups["f"].shares.values()) == {1 / 3}
    given = ask(groups=SEXES, shares={"north": 0.5, "south": 0.25, "west": 0.25})
    assert given.groups["m"].shares == pytest.approx({"north": 0.5, "south": 0.25, "west": 0.25})


def test_a_row_is_counted_once_and_found_again_however_it_is_divided() -> None:
    MEMORY.clear()
    found = sv.group_quantiles(WAITS, 0.5, 2.0, groups=SEXES)
    assert found.private
    assert found.epsilon_in_all == pytest.approx(dict.fromkeys(WAITS, 2.0))
    with pytest.warns(UserWarning, match="have cost epsilon 3 in all"):
        again = sv.federated_quantile(WAITS, 0.5, 1.0)
    assert again.epsilon_in_all == pytest.approx(dict.fromkeys(WAITS, 3.0))
    with pytest.warns(UserWarning, match="have cost epsilon 4 in all"):
        sv.group_quantiles(WAITS, 0.5, 1.0)
    MEMORY.clear()


def test_the_limit_refuses_before_anybody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def answered(*_: object) -> None:
        raise AssertionError("a record answered")

    MEMORY.clear()
    for door in ("answer", "tally", "hand_over"):
        monkeypatch.setattr(Site, door, answered)
    with sv.limit(epsilon=1.5), pytest.raises(sv.BadInput, match=r"the limit is 1\.5"):
        sv.group_quantiles(WAITS, 0.5, 2.0, groups=SEXES)
    MEMORY.clear()


def test_what_is_wrong_is_said_before_anybody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def answered(*_: object) -> None:
        raise AssertionError("a record answered")

    for door in ("answer", "tally", "hand_over"):
        monkeypatch.setattr(Site, door, answered)
    for wrong in (
        {"tau": 1.2},
        {"epsilon": 0},
        {"shrinkage": "much"},
        {"groups": {"north": "x"}},
        {"groups": dict.fromkeys(WAITS, "one")},
        {"weights": {"north": -1.0, "south": 1.0, "west": 1.0}},
        {"bounds": (5, 1)},
        {"kind": "prices"},
        {"progress": 7},
        {"randomness": "dice"},
    ):
        with pytest.raises(sv.BadInput):
            ask(**wrong)


def test_groups_left_out_are_not_asked_and_not_counted() -> None:
    MEMORY.clear()
    sites = {**WAITS, "tiny": np.arange(20.0)}
    with pytest.warns(UserWarning, match="group 'tiny' has too few records"):
        found = sv.group_quantiles(sites, 0.5, 2.0)
    assert [group.name for group in found.left_out] == ["tiny"]
    assert found.epsilon_in_all is not None
    assert set(found.epsilon_in_all) == set(WAITS)
    assert "tiny (20)" in found.summary()
    MEMORY.clear()


def test_a_plan_asks_nobody_and_says_how_wide() -> None:
    plan = sv.explain(sv.group_quantiles, WAITS, 0.5, 2.0, groups=SEXES, scale=15)
    assert set(plan.width) == {"f", "m"}
    found = ask(groups=SEXES)
    for name, width in plan.width.items():
        low, high = found.intervals[name]
        assert width == pytest.approx(high - low, rel=0.6)
    assert "13,6" in str(plan) or "13,4" in str(plan) or "13,5" in str(plan)
    assert plan.to_dict()["groups"][0]["name"] == "f"
    assert "all together" in str(plan)


def test_expected_widths_are_those_obtained() -> None:
    # median over 40 groups alike of one study: within 30 % of the plan, few records and many
    for size, method in ((1_000, "staged"), (6_000, "staged"), (1_500, "certified")):
        sites = {f"g{i}": dice(i).generator().normal(size=size) for i in range(40)}
        plan = sv.explain(sv.group_quantiles, sites, 0.5, 2.0, method=method, scale=1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = ask(sites, method=method, scale=1.0)
        obtained = float(np.median([high - low for low, high in found.intervals.values()]))
        assert obtained == pytest.approx(plan.width["g0"], rel=0.3)


def test_ties_are_hinted_to_whoever_holds_the_records_alone() -> None:
    tied = {name: values.round() for name, values in WAITS.items()}
    found = ask(tied)
    assert any("tied" in hint for hint in found.hints)
    assert "many records are tied" not in str(found.to_dict())


def test_whole_numbers_by_type_are_dithered() -> None:
    counted = {name: values.round().astype(int) for name, values in WAITS.items()}
    found = ask(counted)
    assert all(float(end).is_integer() for interval in found.intervals.values() for end in interval)


def test_seeded_studies_are_the_same_and_not_private() -> None:
    one, two = ask(groups=SEXES), ask(groups=SEXES)
    assert one.to_dict() == two.to_dict()
    assert not one.private
    assert "simulation" in one.groups["f"].promise


def test_no_budget_is_no_privacy() -> None:
    found = ask(epsilon={"north": np.inf, "south": 1.0, "west": 1.0})
    assert not found.private
    assert found.groups["south"].epsilon["south"] == pytest.approx(1.0)


def test_durations_keep_their_unit() -> None:
    sites = {name: pd.Series(pd.to_timedelta(values, unit="min")) for name, values in WAITS.items()}
    found = ask(sites)
    assert "min" in found.summary()
    assert found.groups["north"].value.dtype.kind == "m"


def test_progress_hears_of_every_record() -> None:
    told: list[int] = []
    found = ask(progress=told.append)
    assert sum(told) == found.reports


def test_many_small_sites_of_a_group_answer_together() -> None:
    source = dice(8).generator()
    sites = {f"s{i}": source.gamma(2.0, 10.0, 200) for i in range(120)}
    kinds = {name: "odd" if i % 2 else "even" for i, name in enumerate(sites)}
    found = ask(sites, groups=kinds)
    assert found.names == ("even", "odd")
    for interval in found.intervals_at(1 - 1e-6).values():
        assert interval.low <= 16.783469900166605 <= interval.high


LIMITED = {f"c{i}": dice(60 + i).generator().lognormal(mean, 0.6, 6_000) for i, mean in enumerate((1.0, 1.9, 2.0, 2.9))}


def test_values_beyond_limits_are_symbols() -> None:
    found = ask(LIMITED, censored="<5,>15")
    assert {result.method for result in found.results} == {"certified"}
    assert found.estimates["c0"] == found.intervals["c0"].low == -np.inf
    assert found.estimates["c3"] == found.intervals["c3"].high == np.inf
    assert 5 <= found.intervals["c1"].low <= float(np.exp(1.9)) <= found.intervals["c1"].high <= 15
    text = " ".join(found.summary().split())
    assert "values below 5 and those above 15 are known as <5 and >15 only" in text
    assert "c0 6,000 <5 <5 <5" in text
    assert found.equal.pvalue < 0.05
    again = type(found).from_dict(found.to_dict())
    assert again.summary() == found.summary()
    assert "<5" in found.headline


def test_symbols_have_no_differences() -> None:
    found = ask(LIMITED, censored="<5")
    with pytest.raises(sv.BadInput, match="values below 5 are known as <5 only"):
        found.compare()
    assert found.to_dict()["compared"] is None
    assert "Differ" not in found.summary()


def test_limits_are_said_where_records_are_read() -> None:
    frame = pd.DataFrame({"x": np.concatenate(list(LIMITED.values())), "c": np.repeat(list(LIMITED), 6_000)})
    table = sv.read_frame(frame, value="x", site="c", censored="<5")
    assert ask(table).intervals == ask(LIMITED, censored="<5").intervals
    with pytest.raises(sv.BadInput, match="read already"):
        ask(table, censored="<6")


def test_a_picture_of_symbols_ends_at_the_limits() -> None:
    figure = ask(LIMITED, censored="<5,>15").draw()
    low, high = figure.axes[0].get_xlim()
    assert low < 5 < 15 < high
    assert high - low < 15
    assert {"limit of measurement: <5", "limit of measurement: >15"} <= {
        each.get_text() for each in figure.legends[0].get_texts()
    }


def test_an_odd_group_is_moved_by_one_error_and_not_lengthened_much() -> None:
    waits = {f"c{i}": dice(80 + i).generator().gamma(2.0, 15.0 if i == 7 else 10.0, 8_000) for i in range(8)}
    plain, helped = ask(waits), ask(waits, shrinkage="each")
    low, high = plain.joint["c7"]
    first, last = helped.intervals["c7"]
    assert last - first < 1.12 * (high - low)
    assert first < helped.shrunk_estimates["c7"] < plain.estimates["c7"]
    assert plain.estimates["c7"] - helped.shrunk_estimates["c7"] < (high - low) / 4


def rounded_to(steps: tuple[int, ...], i: int) -> Any:
    generator = dice(200 + i).generator()
    amounts = generator.lognormal(5.7, 0.6, 2_000)
    heap = np.array([*steps, 0.001])[generator.integers(0, len(steps) + 1, 2_000)]
    return np.round(amounts / heap) * heap


def test_amounts_that_people_round_are_seen_by_all_groups_together() -> None:
    heaped = {f"g{i}": rounded_to((50, 50, 50), i) for i in range(12)}
    assert {result.method for result in ask(heaped).results} == {"certified"}
    smooth = {f"g{i}": rounded_to((), i) for i in range(12)}
    methods = [result.method for result in ask(smooth).results]
    assert methods.count("certified") <= 2  # each asks for itself, too; of smooth groups 4 % are certified by chance


def test_zeros_of_all_groups_are_no_grid() -> None:
    zeros = {name: np.where(np.arange(2_000) % 4, column, 0.0) for name, column in (
        (f"g{i}", rounded_to((), i)) for i in range(12)
    )}  # fmt: skip
    found = ask(zeros)
    assert sum(result.method == "staged" for result in found.results) > 8

"""What sites have in common beside their own thresholds, and sites without privacy among private ones."""

import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sottovoce as sv
from sottovoce.server.conformal.coverage.choose import distribution_grid, survival
from sottovoce.server.conformal.plan import chosen
from sottovoce.server.conformal.result import ConformalThreshold
from sottovoce.server.conformal.thresholds import ConformalThresholds


def scores(sizes: dict[str, int], seed: int = 1) -> dict[str, Any]:
    source = sv.sim.dice(seed).generator()
    return {name: abs(source.normal(size=n)) for name, n in sizes.items()}


def common_of(found: ConformalThresholds) -> ConformalThreshold:
    assert isinstance(found.common, ConformalThreshold)
    return found.common


@pytest.mark.parametrize("bins", [10, 100])
def test_the_common_threshold_of_exponential_answers_counts_the_cells_of_their_grid(bins: int) -> None:
    given = scores({f"s{i}": 100 for i in range(10)})
    asked: dict[str, Any] = {"epsilon": 1.0, "maximum": 5.0, "bins": bins, "mechanism": "exponential"}
    common = common_of(sv.conformal_thresholds(given, 0.1, **asked, randomness=sv.sim.dice(2)))
    kinds, _ = chosen((common.facts[0],), (10,), common.settings, bins + 1)
    grid = distribution_grid(kinds, common.choice)
    least = float(grid.mean(survival(kinds, (10,), common.choice, grid.levels)))
    assert common.coverage == pytest.approx(least)
    assert common.coverage >= 0.9


def test_a_common_threshold_that_covers_what_it_promises_where_cells_err_most() -> None:
    """Scores on a grid of 100 cells, a twelfth of them above all but the last: .889 was covered where .9 is due."""
    source, sure = sv.sim.dice(3).generator(), []
    for seed in range(40):
        given = {f"s{i}": np.where(source.random(100) < 0.12, 0.995, source.random(100)) for i in range(10)}
        asked: dict[str, Any] = {"epsilon": 1.0, "maximum": 1.0, "bins": 100, "mechanism": "exponential"}
        value = common_of(sv.conformal_thresholds(given, 0.1, **asked, randomness=sv.sim.dice(seed))).value
        sure.append(1.0 if value >= 0.995 else 0.88 * value)
    assert np.mean(sure) > 0.9 + 3 * np.std(sure) / math.sqrt(len(sure))


@pytest.mark.parametrize("settings", [{}, {"epsilon": 2.0, "maximum": 12.0}])
def test_labels_within_a_site_have_nothing_in_common_with_other_sites(settings: dict[str, Any]) -> None:
    given = scores({"A": 400})
    labels = ["f", "m"] * 200
    found = sv.conformal_thresholds(given, 0.1, by={"A": labels}, **settings, randomness=sv.sim.dice(1))
    assert found.common is None
    with pytest.raises(sv.BadInput, match="site 'B' took no part, and these thresholds have no common one"):
        found.value_at("B")
    labels[:4] = ["x"] * 4
    with pytest.warns(UserWarning, match="one threshold of their own scores together|an infinite threshold"):
        small = sv.conformal_thresholds(given, 0.1, by={"A": labels}, **settings, randomness=sv.sim.dice(1))
    assert small.values["x"] == math.inf
    # labels that part no site: each group is a site, under another name
    two = scores({"A": 400, "B": 300})
    parted = sv.conformal_thresholds(two, 0.1, by={"A": ["f"] * 400, "B": "m"}, **settings, randomness=sv.sim.dice(1))
    assert common_of(parted).names == ("A", "B")


@pytest.mark.parametrize("mechanism", ["auto", "exponential", "counts"])
def test_a_site_without_privacy_among_private_ones(mechanism: str) -> None:
    given = scores({"open": 150, "second": 300, "third": 400, "tiny": 4})
    epsilon = {"open": math.inf, "second": 1.0, "third": 2.0, "tiny": math.inf}
    asked: dict[str, Any] = {"epsilon": epsilon, "maximum": 5.0, "mechanism": mechanism, "randomness": sv.sim.dice(4)}
    with pytest.warns(UserWarning, match="'tiny' \\(4 scores\\)"):
        found = sv.conformal_thresholds(given, 0.1, **asked)
    alone = sv.conformal_threshold({"open": given["open"]}, 0.1)
    assert (found["open"].value, found["open"].coverage) == (alone.value, alone.coverage)
    paid = found.epsilon
    assert paid is not None
    assert paid["open"] == math.inf
    assert paid["second"] <= 1.0
    assert paid["third"] <= 2.0
    assert not found.private
    assert "Not so at open, which sent what was asked as it is" in found.privacy_statement
    assert ConformalThresholds.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    if mechanism == "counts":  # counts of one edge and a score have no rank in common
        assert found.common is None
    else:
        common = common_of(found)
        assert common.epsilon is not None
        assert common.epsilon["open"] == math.inf
        assert common.coverage >= 0.9


def test_no_privacy_anywhere_is_still_refused() -> None:
    given = scores({"a": 100, "b": 100})
    with pytest.raises(sv.BadInput, match="epsilon is infinite everywhere"):
        sv.conformal_thresholds(given, 0.1, epsilon=math.inf, maximum=5.0)
    with pytest.raises(sv.BadInput, match="epsilon of site 'b' must be positive and at most 100, not -1"):
        sv.conformal_thresholds(given, 0.1, epsilon={"a": 1.0, "b": -1}, maximum=5.0)


def test_a_model_says_what_small_groups_have_and_whether_all_hold_at_once() -> None:
    source = sv.sim.dice(5).generator()

    def patients(n: int) -> tuple[Any, Any]:
        x = source.uniform(0, 10, (n, 1))
        return x, x[:, 0] + source.normal(size=n)

    sites = {"north": patients(300), "south": patients(400), "tiny": patients(4)}
    model = sv.FederatedConformalRegressor(alpha=0.1, guarantee="training-conditional").fit(*patients(300))
    asked: dict[str, Any] = {"by": "site", "small": "infinite", "simultaneous": True}
    plan = " ".join(str(sv.explain(model.conformalize, sites, **asked)).split())
    assert "all of them at once" in plan
    with pytest.warns(UserWarning, match="an infinite threshold"):
        found = model.conformalize(sites, **asked).thresholds_
    assert (found.rest, found.simultaneous, found.values["tiny"]) == ("infinite", True, math.inf)
    with pytest.raises(sv.Infeasible, match="'tiny' has too few scores"):
        model.conformalize(sites, by="site", small="refuse")
    for given in ({"small": "infinite"}, {"simultaneous": True}):
        with pytest.raises(sv.BadInput, match="about thresholds by group: give by=, or leave both out"):
            model.conformalize(sites, **given)
    with pytest.raises(sv.BadInput, match="small 'pool' is unknown"):
        model.conformalize(sites, by="site", small="pool")


def test_groups_of_a_column_are_the_labels_of_its_rows() -> None:
    source = sv.sim.dice(6).generator()
    site, ward = source.choice(["a", "b"], 800), source.choice(["f", "m"], 800)
    ward[:4] = "x"
    frame = pa.table({"score": abs(source.normal(size=800)), "site": site, "ward": ward})
    table = sv.read_frame(frame, value="score", site="site", group="ward")
    values = frame["score"].to_numpy()
    given = {name: values[site == name] for name in "ab"}
    labels = {name: ward[site == name].tolist() for name in "ab"}
    private: dict[str, Any] = {"epsilon": 3.0, "maximum": 5.0}
    for settings in ({}, private):
        with pytest.warns(UserWarning, match="too few scores"):
            found = sv.conformal_thresholds(table, by="group", **settings, randomness=sv.sim.dice(7))
        with pytest.warns(UserWarning, match="too few scores"):
            same = sv.conformal_thresholds(given, by=labels, **settings, randomness=sv.sim.dice(7))
        assert found.sizes == same.sizes
        assert set(found.groups) == {"f", "m", "x"}
        if not settings:
            assert found.values == same.values
    for other in (given, sv.read_frame(frame, value="score", site="site")):
        with pytest.raises(sv.BadInput, match="is for scores that were read with group="):
            sv.conformal_thresholds(other, by="group")
    with pytest.raises(sv.BadInput, match="these scores were read with their groups: give by="):
        sv.conformal_thresholds(table)

"""The paper's recursion on a panel: every norm and graph covers, and what cannot run is refused before it starts."""

import os
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.client.quantile.site import Site
from sottovoce.inference.self_normalised.critical_values import critical_value
from sottovoce.sim.randomness import dice

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="whole studies take minutes when not compiled"
)


VALUES = list(dice(81).generator().normal(2.0, 3.0, (4, 8_000)))
RING = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])


@pytest.mark.parametrize("norm", ["l2", "sup", "l1"])
def test_every_norm_gives_an_interval_around_the_same_average(norm: str) -> None:
    made = sv.federated_quantile(VALUES, 0.5, 3.0, method="self-normalised", norm=norm, randomness=dice(1))
    plain = sv.federated_quantile(VALUES, 0.5, 3.0, method="self-normalised", randomness=dice(1))
    assert made.estimate == pytest.approx(plain.estimate, rel=1e-12)
    low, high = made.interval_at(0.9999)
    assert low < 2.0 < high
    assert (low + high) / 2 == pytest.approx(made.estimate)
    ratio = (made.interval.high - made.interval.low) / (plain.interval.high - plain.interval.low)
    assert 0.5 < ratio < 2.0
    assert (norm == "l2") == (ratio == 1.0)
    assert made.test(made.interval.low).pvalue == pytest.approx(0.05, rel=1e-3)
    assert critical_value(0.95, norm=norm) > 0


@pytest.mark.parametrize("graph", ["ring", RING, RING.tolist()], ids=["name", "array", "list"])
@pytest.mark.parametrize("method", ["regression", "self-normalised"])
def test_sites_may_talk_over_a_graph(method: str, graph: Any) -> None:
    made = sv.federated_quantile(VALUES, 0.5, 3.0, method=method, graph=graph, randomness=dice(2))
    named = sv.federated_quantile(VALUES, 0.5, 3.0, method=method, graph="ring", randomness=dice(2))
    low, high = made.interval_at(0.9999)
    assert low < 2.0 < high
    assert made.interval == named.interval
    served = sv.federated_quantile(VALUES, 0.5, 3.0, method=method, randomness=dice(2))
    assert made.estimate != served.estimate


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"method": "regression", "norm": "sup"}, "norm 'sup' does not go with method 'regression'"),
        ({"method": "self-normalised", "norm": "max"}, "norm 'max'"),
        ({"method": "regression", "graph": "star"}, "graph must be 'ring' or a matrix"),
        ({"method": "regression", "graph": np.ones((3, 3))}, "graph|site"),
        ({"method": "regression", "graph": "ring", "participation": 0.5}, "leave graph out"),
        ({"method": "regression", "participation": "half"}, "participation must be a number"),
        ({"method": "staged", "graph": "ring"}, "graph and norm belong to"),
        ({"method": "staged", "norm": "sup"}, "graph and norm belong to"),
    ],
    ids=str,
)
def test_what_cannot_run_is_refused_before_anything_is_spent(
    options: dict[str, Any], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("a record answered")

    monkeypatch.setattr(Site, "tally", refuse)
    with pytest.raises(sv.BadInput, match=sentence):
        sv.federated_quantile(VALUES, 0.5, 3.0, **options)


def test_sites_of_unequal_size_keep_their_shares() -> None:
    # sites at 0 and 4 with equal shares: the median of the mixture is 2, whatever the sizes
    source = dice(82).generator()
    sites = [source.normal(0.0, 3.0, 64_000), source.normal(4.0, 3.0, 16_000)]
    for method in ("regression", "self-normalised"):
        made = sv.federated_quantile(sites, 0.5, 4.0, shares="equal", method=method, randomness=dice(3))
        low, high = made.interval_at(0.9999)
        assert low < 2.0 < high
        assert high < 3.0
        assert low > 1.0


def test_an_array_as_schedule_of_the_staged_method_is_refused() -> None:
    with pytest.raises(sv.BadInput, match="schedule, participation, graph and norm belong to"):
        sv.federated_quantile(VALUES, 0.5, 2.0, schedule=np.array([1, 2]))  # type: ignore[arg-type]


WALKS = pytest.mark.parametrize("method", ["regression", "self-normalised"])


@WALKS
@pytest.mark.parametrize("lengths", [[1] * 8_000, [5] * 1_600, [1] * 3_000 + [40] * 125], ids=["1", "5", "1, 40"])
def test_a_schedule_as_long_as_the_site_is_cut_to_what_the_search_left(method: str, lengths: list[int]) -> None:
    told: list[int] = []
    result = sv.federated_quantile(
        VALUES, 0.5, 2.0, method=method, schedule=lengths, randomness=dice(1), progress=told.append
    )
    columns = result.trajectory
    searched = int(columns["round"][0]) - 1
    walked = lengths[: result.rounds - searched]
    assert len(walked) < len(lengths)
    assert result.reports == sum(told) == columns["reports"][-1]
    spent = result.reports - 4 * sum(walked)
    assert 0 < spent < 3_200
    assert 4 * lengths[len(walked)] > 32_000 - result.reports >= 0  # one round more would not have had its records
    low, high = result.interval_at(0.9999)
    assert low < 2.0 < high


@WALKS
def test_a_schedule_longer_than_the_site_is_refused_before_anything_is_spent(method: str) -> None:
    told: list[int] = []
    with pytest.raises(sv.BadInput, match="shorten it"):
        sv.federated_quantile(VALUES, 0.5, 2.0, method=method, schedule=[1] * 8_001, progress=told.append)
    assert told == []


@WALKS
def test_a_short_schedule_reports_what_it_asked(method: str) -> None:
    told: list[int] = []
    result = sv.federated_quantile(
        VALUES, 0.5, 2.0, method=method, schedule=[1] * 500, randomness=dice(1), progress=told.append
    )
    assert result.reports == sum(told)
    assert 2_000 < result.reports < 2_000 + 3_200  # the walk's own, and at most a tenth of the records for the search


@pytest.mark.parametrize(
    ("method", "norm"),
    [("regression", "l2"), ("self-normalised", "l2"), ("self-normalised", "sup"), ("self-normalised", "l1")],
)
def test_the_trajectory_starts_after_the_search_and_ends_with_everything(method: str, norm: str) -> None:
    asked: list[int] = []
    result = sv.federated_quantile(
        VALUES, 0.5, 2.0, method=method, norm=norm, randomness=dice(1), progress=asked.append
    )
    columns = result.trajectory
    search = asked[:-1]  # the walk tells its reports at once
    assert int(columns["round"][0]) > len(search)
    assert int(columns["reports"][0]) > sum(search) > 0
    assert (columns["round"][-1], columns["reports"][-1]) == (result.rounds, result.reports)


@pytest.mark.parametrize("options", [{"schedule": "every:5"}, {"schedule": "log"}, {"participation": 0.5}], ids=str)
@pytest.mark.parametrize("method", ["regression", "self-normalised"])
def test_the_papers_schedules_cover(method: str, options: dict[str, Any]) -> None:
    result = sv.federated_quantile(VALUES, 0.5, 3.0, method=method, randomness=dice(9), **options)
    low, high = result.interval_at(0.9999)  # the recursion is asymptotic: no more is claimed this far out
    assert low < 2.0 < high

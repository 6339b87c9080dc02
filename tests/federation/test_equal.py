"""A study over resident sites and through bytes is, bit for bit, that of one process on the same seeded source."""

from pathlib import Path
from typing import Any

import pytest
from tests.federation.network import WAITS, DirectPost, Network, conduct, terms

import sottovoce as sv
from sottovoce.api.quantile.levels import plan_levels
from sottovoce.api.quantile.planning import coin_of, doors_of, plan_study
from sottovoce.client.quantile.site import Site
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import parts_of
from sottovoce.local.runner import run
from sottovoce.server.quantile.method import StagedQuantile
from sottovoce.server.quantile.sequence import SequenceQuantile
from sottovoce.sim import dice

pytestmark = pytest.mark.filterwarnings("ignore:the .* quantile is barely supported:UserWarning")
SEED = 7


def federated(
    folder: Path, method: str, asked: dict[str, Any], coin: bytes = b"c" * 16, target: str = "", waits: Any = WAITS
) -> Any:
    names = sorted(WAITS, key=lambda name: name != target)  # the target of an integration comes first
    parts = parts_of(dice(SEED), len(names))
    own = {name: part.split(1)[0] if target else part for name, part in zip(names, parts, strict=True)}
    network = Network(folder, own, waits)
    try:
        return conduct(terms(method, asked, WAITS), DirectPost(network), folder / "log", coin)
    finally:
        network.shut()


def plain(result: Any) -> Any:
    """Return what a result says, without what only the process of the records knows."""
    found = result.to_dict()
    for name in ("in_all", "hints", "column", "epsilon_in_all"):
        found.pop(name, None)
    return found


@pytest.mark.parametrize(
    "asked",
    [
        {"method": "staged"},
        {"method": "staged", "shares": "equal", "bounds": [0.0, 100.0]},
        {"method": "certified"},
        {"method": "sequence", "until": 9.0},
        {"method": "regression", "schedule": [1] * 20 + [100] * 50},
        {"method": "self-normalised", "schedule": [5] * 20 + [200] * 20},
    ],
    ids=["staged", "equal", "certified", "sequence", "regression", "self-normalised"],
)
def test_a_quantile(asked: dict[str, Any], tmp_path: Path) -> None:
    known = {"tau": 0.5, "epsilon": {"north": 2.0, "south": 3.0, "west": 2.5}}
    planned = plan_study(WAITS, known["tau"], known["epsilon"], **asked)
    found = federated(tmp_path, "quantile", {**known, **asked}, coin_of(planned.plan, dice(SEED)))
    expected = sv.federated_quantile(WAITS, known["tau"], known["epsilon"], **asked, randomness=dice(SEED))
    assert (found.estimate, found.interval) == (expected.estimate, expected.interval)
    assert found.private is False
    assert (found.rounds, found.reports) == (expected.rounds, expected.reports)


def test_several_levels(tmp_path: Path) -> None:
    plan = plan_levels(WAITS, [0.25, 0.5, 0.75], 4.0).plan
    asked = {"taus": [0.25, 0.5, 0.75], "epsilon": 4.0}
    found = federated(tmp_path, "quantiles", asked, coin_of(plan.whole, dice(SEED)))
    expected = sv.federated_quantiles(WAITS, [0.25, 0.5, 0.75], 4.0, randomness=dice(SEED))
    assert found.intervals == expected.intervals
    assert [each.private for each in found.results] == [False] * 3


@pytest.mark.parametrize("how", ["staged", "certified", "sequence"])
def test_a_difference(how: str, tmp_path: Path) -> None:
    budgets = {"north": 2.0, "south": 3.0, "west": 2.5}
    coin, groups = b"c" * 16, (["north", "west"], ["south"])
    network = Network(tmp_path, dict(zip(["north", "west", "south"], parts_of(dice(SEED), 3), strict=True)))
    asked = {"first": groups[0], "second": groups[1], "tau": 0.5, "epsilon": budgets, "method": how}
    try:
        found = conduct(terms("difference", asked, WAITS), DirectPost(network), tmp_path / "log", coin)
    finally:
        network.shut()
    parts = parts_of(dice(SEED), 3)
    for k, (group, own, told) in enumerate(
        zip(groups, (parts[:2], parts[2:]), (found.first, found.second), strict=True)
    ):
        planned = plan_study(
            {name: WAITS[name] for name in group}, 0.5, {name: budgets[name] for name in group}, method=how
        )
        plan = planned.plan
        talk = (
            SequenceQuantile(plan, 0.95, coin + bytes([k]))
            if how == "sequence"
            else StagedQuantile(plan, 0.95, coin + bytes([k]), how == "certified")
        )
        sites = [
            Site(records, plan.study_of(i), own[i], plan.channels[i])
            for i, records in enumerate(planned.prepared.table.records)
        ]
        expected = run(talk, doors_of(plan, sites, how), None)
        assert (told.estimate, told.interval) == (expected.estimate, expected.interval)
        assert (told.rounds, told.reports) == (expected.rounds, expected.reports)
    low, high = found.interval
    assert low < found.estimate == found.first.estimate - found.second.estimate < high
    assert found.private is False


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"first": ["north"], "second": ["west"]}, "must name every site of the study once"),
        ({"first": ["north", "west"], "second": ["west", "south"]}, "must name every site of the study once"),
        ({"first": ["north", "west"], "second": ["east"]}, "second of .difference. must be a list of sites"),
        ({"first": ["north", "west"]}, "second of .difference. must be a list of sites"),
        ({"method": "regression"}, "'regression'"),
        (
            {"epsilon": {"north": 1.0, "south": 1.0, "west": 1.0, "east": 1.0}},
            "'east', which is a site of neither group",
        ),
    ],
)
def test_a_difference_that_is_none(asked: dict[str, Any], said: str, tmp_path: Path) -> None:
    network = Network(tmp_path, dict(zip(WAITS, parts_of(dice(SEED), 3), strict=True)))
    whole = {"first": ["north", "west"], "second": ["south"], "tau": 0.5, "epsilon": 2.0, **asked}
    if "second" not in asked and "first" in asked:
        whole.pop("second")
    try:
        with pytest.raises(BadInput, match=said):
            conduct(terms("difference", whole, WAITS), DirectPost(network), tmp_path / "log")
    finally:
        network.shut()


@pytest.mark.parametrize(
    "asked",
    [
        {"epsilon": 4.0},
        {"epsilon": {"north": 4.0, "south": float("inf"), "west": 4.0}, "method": "conservative"},
        {"epsilon": 8.0, "method": "adaptive", "chains": 10},
    ],
    ids=["valid", "open", "chains"],
)
def test_an_integration(asked: dict[str, Any], tmp_path: Path) -> None:
    most = 1_300 if "chains" in asked else 6_000  # chains take many rounds
    sources = {name: WAITS[name][:most] for name in ("south", "north", "west")}
    found = federated(tmp_path, "integration", {"target": "south", "tau": 0.5, **asked}, target="south", waits=sources)
    expected = sv.integrated_quantile("south", sources, 0.5, **asked, randomness=dice(SEED))
    assert (found.estimate, found.interval, found.weights) == (expected.estimate, expected.interval, expected.weights)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"epsilon": 2.0, "maximum": 100.0},
        {"epsilon": 2.0, "maximum": 100.0, "mechanism": "exponential"},
        {"epsilon": 2.0, "maximum": 100.0, "mechanism": "counts"},
        {"epsilon": 4.0, "maximum": 100.0, "mechanism": "local"},
    ],
    ids=["open", "auto", "exponential", "counts", "local"],
)
def test_a_threshold(asked: dict[str, Any], tmp_path: Path) -> None:
    found = federated(tmp_path, "conformal", {"alpha": 0.1, **asked})
    expected = sv.conformal_threshold(WAITS, 0.1, **asked, randomness=dice(SEED))
    assert (found.value, found.coverage) == (expected.value, expected.coverage)
    assert found.private is False


@pytest.mark.parametrize("epsilon", [None, 2.0])
def test_a_coverage_report(epsilon: float | None, tmp_path: Path) -> None:
    asked = {"threshold": 45.0, "alpha": 0.1} | ({} if epsilon is None else {"epsilon": epsilon})
    found = federated(tmp_path, "coverage", asked)
    expected = sv.coverage_report(45.0, WAITS, alpha=0.1, epsilon=epsilon, randomness=dice(SEED))
    assert (found.mixture, found.sites) == (expected.mixture, expected.sites)

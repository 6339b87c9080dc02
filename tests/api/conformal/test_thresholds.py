"""Thresholds by site and by public group: each its own, each score used once, what small groups share, what is kept."""

import importlib
import math
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.api.conformal.threshold import plan_threshold
from sottovoce.api.conformal.thresholds import plan_thresholds
from sottovoce.client.conformal.site import OneMessageSite
from sottovoce.server.conformal.coverage.voters import Kind, below
from sottovoce.server.conformal.result import ConformalThreshold
from sottovoce.server.conformal.thresholds import ConformalThresholds

pickle: Any = importlib.import_module("pickle")
PRIVATE: dict[str, Any] = {"epsilon": 2.0, "maximum": 20.0}


def scores(sizes: dict[str, int] | None = None, seed: int = 1) -> dict[str, Any]:
    """Return scores whose scale differs from site to site."""
    source = sv.sim.dice(seed).generator()
    sizes = sizes or {f"h{i}": 120 + 10 * i for i in range(6)}
    return {name: (1 + place) * abs(source.normal(size=n)) for place, (name, n) in enumerate(sizes.items())}


SMALL = {"large": 200, "second": 150, "third": 90, "tiny": 4, "few": 6}


def quiet(given: Any, alpha: float = 0.1, **settings: Any) -> ConformalThresholds:
    """Ask for thresholds, and do without what is said before."""
    with pytest.warns(UserWarning, match="too few scores for a threshold of their own"):
        return sv.conformal_thresholds(given, alpha, **settings)


@pytest.mark.parametrize("settings", [{}, PRIVATE, {"guarantee": "training-conditional", **PRIVATE}, {"statistics": 1}])
def test_each_site_has_what_it_would_have_alone(settings: dict[str, Any]) -> None:
    given = scores()
    found = sv.conformal_thresholds(given, 0.1, **settings, randomness=sv.sim.dice(3))
    assert list(found) == list(given)
    for place, (name, each) in enumerate(given.items()):
        own = sv.sim.dice(3).split(len(given))[place]
        alone = sv.conformal_threshold({name: each}, 0.1, **settings, randomness=own)
        assert found[name].to_dict()["value"] == alone.to_dict()["value"] == found.values[name]
        assert (found[name].coverage, found[name].orders) == (alone.coverage, alone.orders)
    assert found.small == ()
    assert found.private is False  # seeded


def test_without_privacy_it_is_split_conformal_at_each_site() -> None:
    given = scores()
    found = sv.conformal_thresholds(given, 0.2)
    for name, each in given.items():
        rank = math.ceil(0.8 * (len(each) + 1) * (1 - 1e-12))
        assert found.value_at(name) == sorted(each)[rank - 1]


@pytest.mark.parametrize("settings", [{}, PRIVATE, {"statistics": 2}, {"mechanism": "counts", **PRIVATE}])
def test_sites_of_a_group_share_a_threshold(settings: dict[str, Any]) -> None:
    given = scores({f"h{i}": 60 for i in range(12)})
    by = {name: "coast" if place % 2 else 7 for place, name in enumerate(given)}
    found = sv.conformal_thresholds(given, 0.1, by=by, **settings, randomness=sv.sim.dice(4))
    assert found.groups == ("7", "coast")
    assert found.members["coast"] == tuple(name for place, name in enumerate(given) if place % 2)
    for place, group in enumerate(found):
        own = {name: given[name] for name in found.members[group]}
        alone = sv.conformal_threshold(own, 0.1, **settings, randomness=sv.sim.dice(4).split(2)[place])
        assert found[group].value == alone.value
        assert {found.value_at(name) for name in own} == {alone.value}
    assert found["coast"] == found["coast"]
    assert 7 in found
    assert found[7].value == found["7"].value
    assert found.common is None  # of groups of several sites


def test_scores_of_a_site_may_belong_to_several_groups() -> None:
    given, source = scores({"north": 300, "south": 240}), sv.sim.dice(5).generator()
    labels = {name: source.choice(["f", "m"], size=len(each)) for name, each in given.items()}
    found = sv.conformal_thresholds(given, 0.1, by=labels, randomness=sv.sim.dice(6))
    for place, group in enumerate(found):
        own = {name: np.ascontiguousarray(each[labels[name] == group]) for name, each in given.items()}
        alone = sv.conformal_threshold(own, 0.1, randomness=sv.sim.dice(6).split(2)[place])
        assert found[group].value == alone.value
        assert found.sizes[group] == sum(len(each) for each in own.values())
    with pytest.raises(sv.BadInput, match="site 'north' has scores of several groups; name the group"):
        found.value_at("north")


@pytest.mark.parametrize("by", ["site", "group", "labels"])
@pytest.mark.parametrize("settings", [{}, PRIVATE])
def test_each_score_is_used_once(by: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    given = scores({f"h{i}": 80 + i for i in range(4)})
    source = sv.sim.dice(7).generator()
    groups: Any = {
        "site": "site",
        "group": dict(zip(given, "abab", strict=True)),
        "labels": {name: source.choice(["f", "m"], size=len(each)).tolist() for name, each in given.items()},
    }[by]
    held: list[Any] = []
    once = OneMessageSite._once

    def counted(self: Any, *args: Any) -> Any:
        held.append(self._scores.values().copy())
        return once(self, *args)

    monkeypatch.setattr(OneMessageSite, "_once", counted)
    sv.conformal_thresholds(given, 0.1, by=groups, **settings)
    assert sorted(np.concatenate(held).tolist()) == sorted(np.concatenate(list(given.values())).tolist())


def test_small_groups_share_the_common_threshold_and_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    once = OneMessageSite._once

    def counted(self: Any, *args: Any) -> Any:
        asked.append(self.size)
        return once(self, *args)

    monkeypatch.setattr(OneMessageSite, "_once", counted)
    given = scores(SMALL)
    found = quiet(given, **PRIVATE)
    assert sorted(asked) == [90, 150, 200]
    assert found.small == ("tiny", "few")
    assert found.common is not None
    assert found["tiny"] is found["few"] is found.common
    assert found.values["tiny"] == found.value_at("a site that was not there") == found.common.value
    assert found.epsilon is not None
    assert set(found.epsilon) == {"large", "second", "third"}
    assert set(found.epsilon_in_all or ()) == {"large", "second", "third"}
    # what was not asked is not spent: the same small sites may answer elsewhere for the first time
    with sv.limit(2.0):
        sv.coverage_report(3.0, {"tiny": given["tiny"]}, alpha=0.1, epsilon=2.0)


def test_what_small_groups_have_is_said_before_anybody_is_asked() -> None:
    given = scores(SMALL)
    for small, words in (
        ("common", "'tiny' (4 scores), 'few' (6 scores); of 5 groups they have the common threshold of all sites"),
        ("together", "one threshold of their own scores together; the shared threshold holds for a score drawn from"),
        ("infinite", "an infinite threshold: every set holds everything"),
    ):
        plan = str(sv.explain(sv.conformal_thresholds, given, small=small))
        assert words in " ".join(plan.split())
        assert "nobody so far" in plan
    with pytest.raises(sv.Infeasible, match=r"'tiny', 'few' have too few scores .*; join groups, or say by small="):
        sv.conformal_thresholds(given, small="refuse")


def test_small_groups_together_or_infinite() -> None:
    given = scores(SMALL)
    together = quiet(given, small="together")
    assert together.together is not None
    assert together["tiny"] is together.together
    assert together.values["few"] == sv.conformal_threshold({name: given[name] for name in ("tiny", "few")}).value
    infinite = quiet(given, small="infinite")
    assert infinite.values["tiny"] == math.inf
    with pytest.raises(sv.BadInput, match="'tiny' has too few scores for a threshold, and shares none"):
        infinite["tiny"]
    # four scores are not enough together either, and groups of several sites have no common threshold
    few = {name: given[name] for name in ("large", "second", "tiny")}
    assert quiet(few, small="together").values["tiny"] == math.inf
    by = {"large": "a", "second": "a", "third": "b", "tiny": "c", "few": "d"}
    grouped = quiet(given, by=by)
    assert (grouped.rest, grouped.common) == ("together", None)
    assert grouped.values["c"] == grouped.values["d"] < math.inf


def test_no_group_is_large_enough() -> None:
    with pytest.raises(sv.Infeasible, match=r"no group has scores enough .*conformal_threshold\): no finite set"):
        sv.conformal_thresholds({"a": [1.0, 2.0], "b": [3.0]})


@pytest.mark.parametrize("settings", [{}, {"guarantee": "training-conditional", "delta": 0.2}])
def test_the_common_threshold_covers_what_it_says(settings: dict[str, Any]) -> None:
    """Uniform scores: a value is its own coverage. 4,000 calibrations, false alarm 1e-6 for each figure."""
    source, sizes, runs = sv.sim.dice(8).generator(), [20, 35, 60, 150, 40, 90], 4_000
    first = sv.conformal_thresholds([source.random(n) for n in sizes], 0.1, **settings)
    common = first.common
    assert isinstance(common, ConformalThreshold)
    sent = np.column_stack(
        [
            np.sort(source.random((runs, n)))[:, first[f"site {i}"].orders[f"site {i}"][0] - 1]
            for i, n in enumerate(sizes, start=1)
        ]
    )
    votes = np.array([common.votes[name] for name in common.votes])
    order = np.argsort(sent, axis=1)
    place = np.argmax(np.cumsum(votes[order], axis=1) >= (common.rank or 0), axis=1)
    values = sent[np.arange(runs), order[np.arange(runs), place]]
    assert abs(values.mean() - common.coverage) < 4.9 * values.std() / math.sqrt(runs)
    assert values.std() == pytest.approx(common.spread, rel=0.07)
    assert abs(np.mean(values >= 0.9) - common.confidence) < 4.9 * 0.5 / math.sqrt(runs)
    assert common.coverage >= 0.9
    if settings:
        assert common.confidence >= 0.8


def test_all_thresholds_hold_at_once() -> None:
    given = scores()
    one = sv.conformal_thresholds(given, 0.1, guarantee="training-conditional", delta=0.1)
    all_ = sv.conformal_thresholds(given, 0.1, guarantee="training-conditional", delta=0.1, simultaneous=True)
    for name, each in given.items():
        # P(coverage < .9) of a split-conformal threshold is the chance that so few scores lie below the level
        (order,) = all_[name].orders[name]
        short = 1 - float(below([Kind(len(each))], np.array([[order]]), np.array([0.9]))[0, 0, 0])
        assert short >= 1 - 0.1 / (len(given) + 1)
        assert all_.values[name] >= one.values[name]
    assert all_.common is not None
    assert all_.common.confidence >= 1 - 0.1 / (len(given) + 1)
    assert "all of them at once in 0.9 of calibrations" in all_.summary().replace("\n               ", " ")


@pytest.mark.parametrize("settings", [{}, PRIVATE, {"small": "together"}, {"small": "infinite"}])
def test_thresholds_are_kept_and_read_back(settings: dict[str, Any], tmp_path: Any) -> None:
    found = quiet(scores(SMALL), **settings)
    again = sv.load(found.save(tmp_path / "thresholds.json"))
    assert type(again) is ConformalThresholds
    assert again == found
    assert again.summary() == found.summary()
    assert again.to_dict() == found.to_dict()
    assert again.hints == ()
    assert pickle.loads(pickle.dumps(found)) == found
    assert found.plot(tmp_path / "thresholds.png").stat().st_size > 10_000
    page = found.report(tmp_path / "page.html").read_text()
    assert "in each of 5 groups" in page
    broken = found.to_dict()
    broken["stored"]["state"][2] = broken["stored"]["state"][2][:-1]
    with pytest.raises(sv.BadInput, match="store"):
        ConformalThresholds.from_dict(broken)


def test_coverage_is_judged_by_each_sites_own_threshold() -> None:
    given, fresh = scores(), scores({f"h{i}": 1_000 for i in range(6)}, seed=2)
    found, one = sv.conformal_thresholds(given), sv.conformal_threshold(given)
    own, common = found.coverage_by_site(fresh), one.coverage_by_site(fresh)
    assert own.worst.coverage > common.worst.coverage + 0.05
    for site in own.sites:
        assert site.covered == int(np.sum(fresh[site.name] <= found.values[site.name]))
    assert "of each site its own" in own.summary()
    assert own.to_dict()["sites"][0]["threshold"] == found.values[own.worst.name]
    private = sv.coverage_report(found, fresh, epsilon=1.0)
    assert private.private
    again = sv.coverage_report(found, fresh)
    assert type(again).from_dict(again.to_dict()) == again


def test_a_model_with_a_threshold_for_each_site_or_group() -> None:
    source = sv.sim.dice(9).generator()

    def patients(n: int, scale: float) -> tuple[Any, Any]:
        x = source.uniform(0, 10, (n, 1))
        return x, x[:, 0] + scale * source.normal(size=n)

    sites = {"calm": patients(300, 0.5), "wild": patients(300, 3.0), "tiny": patients(3, 1.0)}
    m = sv.FederatedConformalRegressor(alpha=0.1).fit(*patients(500, 1.0))
    with pytest.warns(UserWarning, match="too few scores"):
        m.conformalize(sites, by="site")
    assert not hasattr(m, "threshold_")
    rows = [[2.0], [5.0], [8.0]]
    lengths = np.diff(m.predict_interval(rows, site=["calm", "wild", "tiny"]), axis=1)[:, 0]
    assert lengths / 2 == pytest.approx([m.thresholds_.values[name] for name in ("calm", "wild", "tiny")])
    assert np.diff(m.predict_interval(rows, site="wild"), axis=1) == pytest.approx(2 * m.thresholds_.values["wild"])
    for words, given in (
        ("say with site= or group=", {}),
        ("say with site= or group=", {"site": "calm", "group": "calm"}),
        ("there is no group 'mild'", {"group": "mild"}),
        ("X has 3 rows and 2 labels were given", {"site": ["calm", "wild"]}),
    ):
        with pytest.raises(sv.BadInput, match=words):
            m.predict_interval(rows, **given)
    # one table with a public label a row
    x, y = (np.concatenate([sites[name][part] for name in ("calm", "wild")]) for part in (0, 1))
    site, ward = np.arange(600) % 3, np.repeat(["a", "b"], 300)
    m.conformalize(x, y, site=site, by=ward)
    assert m.thresholds_.groups == ("a", "b")
    assert m.thresholds_.values["a"] < m.thresholds_.values["b"]
    assert m.predict_interval(rows, group=["a", "b", "a"]).shape == (3, 2)
    m.conformalize(x, y, site=site)
    assert not hasattr(m, "thresholds_")
    with pytest.raises(sv.BadInput, match="there is one threshold for all"):
        m.predict_interval(rows, site="calm")


def test_label_sets_by_site() -> None:
    source = sv.sim.dice(10).generator()
    x = source.normal(size=(900, 2))
    y = np.where(x[:, 0] + np.repeat([0.2, 2.0, 0.2], 300) * source.normal(size=900) > 0, "ill", "well")
    c = sv.FederatedConformalClassifier(alpha=0.1).fit(x[600:], y[600:])
    c.conformalize({"calm": (x[:300], y[:300]), "wild": (x[300:600], y[300:600])}, by="site")
    sizes = {name: c.predict_set(x[600:], site=name).sum(axis=1).mean() for name in ("calm", "wild")}
    assert sizes["calm"] < sizes["wild"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"by": "sites"}, 'by is \'sites\'; give "site", "group" for a table'),
        ({"by": 3}, "by is an int; give"),
        ({"by": {"h0": "a"}}, "by says nothing of site 'h1'"),
        ({"by": {f"h{i}": [1, 2] for i in range(6)}}, "by gives 2 labels for the 120 scores of site 'h0'"),
        ({"by": {f"h{i}": None for i in range(6)}}, "is neither the name of a group nor one label for each score"),
        ({"small": "pool"}, "small 'pool' is unknown; choose one of 'common', 'together', 'infinite', 'refuse'"),
        ({"simultaneous": True}, "a marginal guarantee about the average of many"),
        ({"simultaneous": 1}, "simultaneous must be True or False, not 1"),
        ({"epsilon": 1.0}, "a public maximum of the scores is needed"),
        ({"epsilon": {"h0": 1.0}, "maximum": 9.0}, "epsilon says nothing of site 'h1'"),
    ],
)
def test_refusals(given: dict[str, Any], said: str) -> None:
    with pytest.raises(sv.BadInput, match=said):
        sv.conformal_thresholds(scores(), **given)


def test_warnings_of_many_groups_are_said_once() -> None:
    given = {f"h{i}": abs(sv.sim.dice(i).generator().normal(size=30)) for i in range(12)}
    planned = plan_thresholds(given, 0.1, epsilon=1.3, maximum=10.0)
    assert len(planned.warnings) == 1
    assert "and so, more or less, of 11 more" in planned.warnings[0]
    assert "noise alone makes the set infinite" in planned.warnings[0]


def test_budgets_by_site_reach_their_groups() -> None:
    given = scores({f"h{i}": 200 for i in range(4)})
    epsilon = {name: 1.0 + place for place, name in enumerate(given)}
    found = sv.conformal_thresholds(given, by=dict(zip(given, "abab", strict=True)), epsilon=epsilon, maximum=30.0)
    assert found.private
    assert found.epsilon == pytest.approx(epsilon)
    assert "epsilon 4, computed from integers" in found.privacy_statement


def test_groups_that_are_too_small_for_the_same_reason_are_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[int, ...]] = []

    def plan(table: Any, *given: Any, **asked: Any) -> Any:
        tried.append(tuple(records.size for records in table.records))
        return plan_threshold(table, *given, **asked)

    monkeypatch.setattr("sottovoce.api.conformal.thresholds.plan_threshold", plan)
    draw = sv.sim.dice(3).generator()
    small = {f"s{i}": abs(draw.normal(size=5 + i % 2)) for i in range(300)}
    with pytest.raises(sv.Infeasible, match="no group has scores enough"):
        sv.conformal_thresholds(small, 0.1, epsilon=2.0, maximum=5.0)
    assert sorted(tried) == [(5,), (6,)]
    found = quiet({**small, "large": abs(draw.normal(size=400))}, 0.1)
    assert len(found.small) == 300


@pytest.mark.parametrize(
    ("label", "said"),
    [("", "blank"), (" ", "blank"), ("x" * 201, "201 characters"), ("a\nb", "control"), ("a\u202eb", "control")],
)
def test_names_of_groups_are_checked_as_names_of_groups(label: str, said: str) -> None:
    scores = {name: [1.0, 2.0, 3.0] * 20 for name in "abc"}
    with pytest.raises(sv.BadInput, match=f"^group 1 has .*{said}"):
        sv.conformal_thresholds(scores, 0.1, by={"a": label, "b": "x", "c": "x"})

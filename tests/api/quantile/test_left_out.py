"""A small site does not end a study: it is left out before anything is asked, and the result says so."""

import json
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.core.errors import Infeasible
from sottovoce.sim.randomness import dice

SOURCE = dice(9).generator()
SITES = {name: SOURCE.gamma(2.0, 10.0, size) for name, size in {"a": 9_000, "b": 8_000, "tiny": 30}.items()}


@pytest.mark.parametrize("shares", ["equal", {"a": 0.3, "b": 0.3, "tiny": 0.4}], ids=["equal", "custom"])
def test_a_site_whose_noise_would_end_the_study_is_left_out(shares: Any) -> None:
    with pytest.warns(UserWarning, match="site 'tiny' has too few records .* over the 2 sites left"):
        found = sv.federated_quantile(SITES, 0.5, dict.fromkeys(SITES, 1.0), shares=shares, randomness=dice(1))
    assert found.left_out == ("tiny",)
    assert found.shares == pytest.approx({"a": 0.5, "b": 0.5})
    assert "the 2 sites left" in found.estimand
    assert found.reports == 17_000
    kept = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert kept["sites_left_out"] == ["tiny"]
    assert type(found).from_dict(kept).left_out == ("tiny",)
    assert any("is left out" in text for text in found.warnings)


def test_nobody_is_left_out_where_everybody_can_answer() -> None:
    found = sv.federated_quantile(SITES, 0.5, 1.0, randomness=dice(1))
    assert found.left_out == ()
    assert found.reports == 17_030
    assert "sites left" not in found.estimand


def test_both_groups_of_a_difference_may_lose_a_small_site() -> None:
    other = {"c": SOURCE.gamma(2.0, 10.0, 9_000), "small": SOURCE.gamma(2.0, 10.0, 25)}
    with pytest.warns(UserWarning, match="is left out") as said:
        found = sv.quantile_difference(SITES, other, 0.5, 1.0, shares="equal", randomness=dice(2))
    assert len(said) == 2
    assert (found.first.left_out, found.second.left_out) == (("tiny",), ("small",))


@pytest.mark.parametrize(("tau", "nearer"), [(0.5, False), (0.98, True)])
def test_a_refusal_advises_a_level_nearer_the_median_only_far_from_it(tau: float, nearer: bool) -> None:
    with pytest.raises(Infeasible, match="add records") as refused:
        sv.federated_quantile([SITES["tiny"]], tau, 0.1)
    assert ("nearer 0.5" in str(refused.value)) is nearer


def test_one_level_for_all_sites_is_shown_as_it_was_given() -> None:
    sites = [SOURCE.normal(size=3_000 + 7 * i) for i in range(7)]
    for tau in (0.9, 1 - 0.1, 0.7):
        plan = sv.explain(sv.federated_quantile, sites, tau, 4.0)
        assert plan.to_dict()["tau"] == tau
    assert sv.explain(sv.conformal_threshold, {"a": SITES["a"]}, 0.7, exact=True).to_dict()["coverage"] == 0.3

"""The plan of groups: levels of each, who is left out and told so, what is looked at, and what is refused."""

from typing import Any

import pytest

from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.core.roster import Roster, Strata
from sottovoce.core.unit import NUMBER
from sottovoce.server.quantile.groups.plan import GroupsPlan, plan_groups


def by_site(**sizes: int) -> Roster:
    return Roster(tuple(sizes), tuple(sizes.values()), NUMBER)


def by_kind(sizes: dict[tuple[str, str], int]) -> Roster:
    names = tuple(f"{site}, {kind}" for site, kind in sizes)
    strata = Strata(tuple(site for site, _ in sizes), tuple(kind for _, kind in sizes), by="kind")
    return Roster(names, tuple(sizes.values()), NUMBER, strata=strata)


KINDS = by_kind({("a", "x"): 9_000, ("a", "y"): 6_000, ("b", "x"): 3_000, ("b", "y"): 9_000})


def plan(roster: Roster, tau: Any = 0.5, epsilon: Any = 2.0, **settings: Any) -> GroupsPlan:
    return plan_groups(roster, tau, epsilon, **settings)


def test_every_site_is_a_group_unless_groups_are_named() -> None:
    found = plan(by_site(a=5_000, b=9_000))
    assert found.names == ("a", "b")
    assert found.by == "site"
    assert [study.names for study in found.plans] == [("a",), ("b",)]


def test_a_group_has_its_records_at_several_sites() -> None:
    found = plan(KINDS, epsilon={"a": 1.0, "b": 3.0})
    assert found.names == ("x", "y")
    assert found.by == "kind"
    assert [study.names for study in found.plans] == [("a, x", "b, x"), ("a, y", "b, y")]
    assert found.plans[0].crowd.shares.tolist() == [0.75, 0.25]
    assert found.plans[1].budgets == (1.0, 3.0)
    assert [own.tolist() for own in found.members] == [[0, 2], [1, 3]]


def test_shares_of_sites_hold_within_every_group() -> None:
    equal = plan(KINDS, shares="equal")
    assert [study.crowd.shares.tolist() for study in equal.plans] == [[0.5, 0.5]] * 2
    given = plan(KINDS, shares={"a": 0.8, "b": 0.2})
    assert [study.crowd.shares.tolist() for study in given.plans] == [[0.8, 0.2]] * 2


def test_intervals_that_hold_together_are_of_independent_groups() -> None:
    found = plan(by_site(a=5_000, b=9_000, c=9_000))
    assert found.each**3 == pytest.approx(0.95)
    assert plan(by_site(a=5_000, b=9_000), simultaneous=False).each == 0.95


def test_groups_too_small_are_left_out_and_named() -> None:
    found = plan(by_site(a=20_000, b=9_000, tiny=12, small=40))
    assert found.names == ("a", "b")
    assert [(group.name, group.records) for group in found.left_out] == [("tiny", 12), ("small", 40)]
    assert found.each**2 == pytest.approx(0.95)
    [said] = [text for text in found.warnings if "too few records for an answer" in text]
    assert "2 groups ('tiny', 'small')" in said
    assert "12 records" in said
    assert "nobody there is asked" in said
    assert set(found.whole.names) == {"a", "b"}


def test_where_every_group_is_too_small_it_is_refused() -> None:
    with pytest.raises(Infeasible, match="every group is too small"):
        plan(by_site(a=30, b=30))


def test_small_groups_are_said_to_be_certified() -> None:
    for many, simultaneous in ((40, False), (3, True)):
        found = plan(by_site(**{f"g{i}": 600 for i in range(many)}), simultaneous=simultaneous)
        assert set(found.expects.values()) == {"certified"}
        [said] = [text for text in found.warnings if "is certified" in text]
        assert f"{many} groups" in said
        assert "expect one from" in said
    large = plan(by_site(a=50_000, b=60_000))
    assert large.exact == frozenset()
    assert large.warnings == ()


def test_one_small_group_among_large_ones_is_certified() -> None:
    found = plan(by_site(a=50_000, b=60_000, small=900))
    assert found.exact == {"small"}
    assert found.expects == {"a": "staged", "b": "staged", "small": "certified"}


def test_a_certified_study_of_groups_searches_together() -> None:
    found = plan(by_site(**{f"g{i}": 1_000 for i in range(40)}), method="certified")
    low, high = found.reaches["g0"]
    assert 0.3 < low < high < 0.7
    assert found.certified


def test_a_site_that_makes_all_together_noisy_stays_in_its_group() -> None:
    roster = by_kind({("s0", "g0"): 2_416, ("s0", "g1"): 870, ("s1", "g0"): 161, ("s1", "g1"): 178})
    shares = {"s0": 0.985, "s1": 0.015}
    found = plan(roster, tau=0.9, epsilon={"s0": 4.0, "s1": 0.1}, method="certified", shares=shares)
    assert [len(own) for own in found.members] == [len(each.names) for each in found.plans] == [2, 2]
    assert found.whole.left_out == ()


def test_one_group_that_is_left_is_compared_with_nobody() -> None:
    found = plan(by_site(a=20_000, tiny=12))
    with pytest.raises(BadInput, match="only one group to compare"):
        found.check_group("others")


def test_names_that_differ_in_case_alone_are_said() -> None:
    found = plan(by_kind({("s", "North"): 9_000, ("s", "north "): 9_000}))
    assert any("groups 'North' and 'north '" in text and "one group" in text for text in found.warnings)


REFUSED: dict[str, tuple[Any, str]] = {
    "one group": ({"roster": by_site(a=9_000)}, "only one group, 'a'"),
    "a level a site": ({"tau": {"a": 0.5, "b": 0.6}}, "one level for all groups"),
    "several levels": ({"tau": [0.5, 0.9]}, "one level for all groups"),
    "no level": ({"tau": 1.5}, "strictly between 0 and 1"),
    "a method for others": ({"method": "sequence"}, "'sequence'"),
    "no truth value": ({"simultaneous": "no"}, "simultaneous must be True or False, not 'no'"),
    "an unknown shrinkage": ({"shrinkage": "shrunk"}, "'shrunk'"),
    "on average, and together": ({"shrinkage": "average"}, "simultaneous=False"),
    "certified, and shrunk": ({"shrinkage": "each", "method": "certified"}, "both their sides"),
    "an unknown site": ({"epsilon": {"a": 1.0, "b": 1.0, "c": 1.0}}, "'c', which is not a site"),
    "a site without a budget": ({"epsilon": {"a": 1.0}}, "says nothing of site 'b'"),
    "shares that do not sum to one": ({"shares": {"a": 0.5, "b": 0.4}}, "sum to 0.9"),
    "a level of confidence": ({"level": 1.0}, "level"),
    "too many groups": ({"roster": by_site(**{f"g{i}": 100 for i in range(501)})}, "at most 500"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_asked_is_refused_in_one_sentence(case: str) -> None:
    given, said = REFUSED[case]
    settings: dict[str, Any] = {"roster": KINDS, "tau": 0.5, "epsilon": 2.0, **given}
    with pytest.raises(BadInput, match=said) as caught:
        plan(**settings)
    assert "\n" not in str(caught.value)

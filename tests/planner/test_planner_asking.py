"""Two of width, epsilon and people give the third; what cannot be had is refused with what it would need."""

import math
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.core.errors import BadInput, Infeasible

SD: dict[str, Any] = {"sd": 15.0}
QUESTIONS: dict[str, dict[str, Any]] = {
    "quantile": {**SD},
    "difference": {**SD},
    "regression": {"features": {"age": (18, 90)}, "sd": 10.0},
    "integration": {**SD, "target": "ours", "sites": ["ours", "north"]},
    "conformal": {"sites": 10},
}
WISHES = {"quantile": 1.0, "difference": 1.5, "regression": 0.02, "integration": 1.0, "conformal": 0.05}


@pytest.mark.parametrize("question", QUESTIONS)
def test_there_and_back(question: str) -> None:
    known, wish = QUESTIONS[question], WISHES[question]
    enough = sv.plan(question, epsilon=2.0, width=wish, **known)
    chief = enough.widths[enough.chief].value
    assert 0.9 * wish < chief <= wish  # three digits of people, and for a threshold whole ranks
    given = {name: value for name, value in known.items() if name != "sites"} | {"people": enough.people_by_site}
    again = sv.plan(question, epsilon=2.0, **given)
    assert again.widths[again.chief].value == chief
    budget = sv.plan(question, width=wish, **given)
    assert budget.epsilon <= 2.0 + 1e-9
    assert sv.plan(question, epsilon=budget.epsilon, **given).widths[again.chief].value <= wish


@pytest.mark.parametrize("question", [name for name in QUESTIONS if name != "conformal"])
def test_more_people_and_more_epsilon_never_widen(question: str) -> None:
    table = sv.plan(question, epsilon=1.0, width=WISHES[question], **QUESTIONS[question]).table
    for row in table.widths:
        assert list(row) == sorted(row, reverse=True)
    for column in zip(*table.widths, strict=True):
        assert list(column) == sorted(column, reverse=True)


def test_the_forward_direction_is_what_a_study_is_told() -> None:
    waits = sv.sim.dice(1).generator().gamma(2.0, 10.0, 60_000)
    told = sv.explain(sv.federated_quantile, [waits], 0.9, 1.0, scale=15.0)
    found = sv.plan(tau=0.9, epsilon=1.0, people=60_000, sd=15.0)
    assert found.width == pytest.approx(told.width, rel=1e-12)
    assert (found.widths[0].low, found.widths[0].high) == (told.widths[0].low, told.widths[0].high)


def test_an_impossible_wish_is_told_what_it_needs_and_that_is_enough() -> None:
    with pytest.raises(Infeasible, match=r"people at epsilon 1, or epsilon .* with 10,000 people; ") as no:
        sv.plan(epsilon=1.0, people=10_000, width=1.0, sd=15.0)
    words = str(no.value).replace(",", "").split()
    people, budget = int(words[words.index("people") - 1]), float(words[words.index("or") + 2])
    assert sv.plan(epsilon=1.0, people=people, width=1.0, sd=15.0).width <= 1.0
    assert sv.plan(epsilon=budget, people=10_000, width=1.0, sd=15.0).width <= 1.0
    with pytest.raises(Infeasible, match="no epsilon up to 10"):
        sv.plan(people=500, width=0.5, sd=15.0)
    with pytest.raises(Infeasible, match="no number of people"):
        sv.plan(epsilon=1.0, width=1e-6, sd=15.0)


def test_a_threshold_without_privacy_has_no_other_model() -> None:
    found = sv.plan("conformal", epsilon=math.inf, people=500, sites=5)
    assert found.yardsticks == ()
    assert found.width < sv.plan("conformal", epsilon=1.0, people=500, sites=5).width


def test_a_wish_that_is_met_is_a_plan() -> None:
    found = sv.plan(epsilon=1.0, people=100_000, width=1.0, sd=15.0)
    assert (found.wanted, found.width <= 1.0) == ("nothing", True)


def test_sites_groups_and_levels_have_their_own() -> None:
    one = sv.plan(epsilon={"north": 0.5, "south": 2.0}, people={"north": 40_000, "south": 60_000}, **SD)
    both = [sv.plan(epsilon=each, people={"north": 40_000, "south": 60_000}, **SD).width for each in (2.0, 0.5)]
    assert both[0] < one.width < both[1]
    each = sv.plan(epsilon=1.0, people={"men": 20_000, "women": {"north": 10_000, "south": 30_000}}, groups=True, **SD)
    assert [wide.of for wide in each.widths] == ["men", "women"]
    assert each.width["men"] > each.width["women"]
    several = sv.plan(tau=[0.5, 0.9], epsilon=2.0, people=200_000, **SD)
    assert [wide.of for wide in several.widths] == ["0.5", "0.9"]
    named = sv.plan(tau=[0.5, 0.9], epsilon=2.0, width={"0.9": 1.0}, **SD)
    assert named.width["0.9"] <= 1.0
    assert sv.plan(epsilon={"north": 1.0, "south": 2.0}, width=1.0, **SD).crowd.sites == 2


def test_a_difference_is_as_wide_as_both_together() -> None:
    found = sv.plan("difference", epsilon=1.0, people={"men": 20_000, "women": 30_000}, **SD)
    own = [sv.plan(epsilon=1.0, people=people, **SD).width for people in (20_000, 30_000)]
    assert found.width == pytest.approx(math.hypot(*own))


def test_functions_of_the_package_name_their_question() -> None:
    for function, kind in ((sv.federated_quantile, "quantile"), (sv.conformal_threshold, "conformal")):
        assert sv.plan(function, epsilon=2.0, people=20_000).kind == kind


@pytest.mark.parametrize("method", ["staged", "certified", "sequence"])
def test_a_method_that_holds_more_is_wider(method: str) -> None:
    found = sv.plan(epsilon=1.0, people=100_000, method=method, **SD)
    assert found.width >= sv.plan(epsilon=1.0, people=100_000, **SD).width


def test_a_tail_that_is_far_out_is_told_open() -> None:
    found = sv.plan(tau=0.99, epsilon=2.0, people=100_000, method="certified", **SD)
    assert math.isinf(found.width)
    assert "open" in repr(found)
    assert found.to_dict()["widths"][0]["value"] is None


BAD = {
    "give two of epsilon, people and width": {"epsilon": 1.0},
    "target says nothing of question 'quantile'": {"epsilon": 1.0, "people": 9_000, "target": "ours"},
    "sd and iqr|iqr and sd": {"epsilon": 1.0, "people": 9_000, "sd": 1.0, "iqr": 1.0},
    "shape needs a number": {"epsilon": 1.0, "people": 9_000, "shape": "normal"},
    r"shape 'normel' \(did you mean 'normal'\?\)": {"epsilon": 1.0, "people": 9_000, "shape": "normel", "sd": 1.0},
    "width must be positive": {"epsilon": 1.0, "width": -1.0},
    "epsilon must be positive": {"epsilon": 0.0, "people": 9_000},
    "epsilon names 'west', which is neither": {"epsilon": {"west": 1.0}, "people": {"north": 9_000}},
    "people must be a whole number": {"epsilon": 1.0, "people": 0.5},
    "bounds must be finite with low < high": {"epsilon": 1.0, "people": 9_000, "bounds": (3, 2)},
    "people names the sites already": {"epsilon": 1.0, "people": {"north": 9_000}, "sites": 3},
    "several levels are asked in stages": {"tau": [0.1, 0.5], "epsilon": 1.0, "people": 99_000, "method": "sequence"},
    "groups are not named": {"epsilon": 1.0, "width": 1.0, "groups": True},
    "the 0.99 quantile needs about": {"tau": 0.99, "epsilon": 0.5, "people": 500},
}


@pytest.mark.parametrize(("sentence", "given"), BAD.items(), ids=list(BAD))
def test_bad_input_is_one_sentence(sentence: str, given: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=sentence) as no:
        sv.plan(**given)
    assert "\n" not in str(no.value)


BAD_QUESTIONS = {
    "question 'quantle'": ("quantle", {}),
    "a difference is told in values": ("difference", {"people": {"a": 9_000, "b": 9_000}}),
    "between two groups, and people names 3": ("difference", {"people": dict.fromkeys("abc", 9_000), "sd": 1.0}),
    "a regression needs features=": ("regression", {"people": 90_000}),
    "name it with target=": ("integration", {"people": 9_000}),
    "target 'west' is none of the sites": ("integration", {"people": {"north": 9_000}, "target": "west"}),
    "sd says nothing of question 'conformal'": ("conformal", {"people": 900, "sd": 1.0}),
    "has no groups": ("conformal", {"people": {"a": {"x": 900}, "b": 900}}),
}


@pytest.mark.parametrize(("sentence", "asked"), BAD_QUESTIONS.items(), ids=list(BAD_QUESTIONS))
def test_a_question_knows_what_it_needs(sentence: str, asked: tuple[str, dict[str, Any]]) -> None:
    with pytest.raises(BadInput, match=sentence):
        sv.plan(asked[0], epsilon=1.0, **asked[1])

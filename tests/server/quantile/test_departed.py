"""A study that goes on without a site: another estimand, said so, over records that were not asked before."""

from typing import Any

import numpy as np
import pytest
from scipy import special

from sottovoce.core import codec
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.core.roster import Roster
from sottovoce.core.unit import Unit
from sottovoce.protocol.messages import Query, Tally
from sottovoce.server.method import Absent
from sottovoce.server.quantile.departed import plan_rest
from sottovoce.server.quantile.feasibility import CERTIFIED
from sottovoce.server.quantile.levels import StagedQuantiles
from sottovoce.server.quantile.method import StagedQuantile
from sottovoce.server.quantile.plan import Departure, QuantilePlan, plan_quantile
from sottovoce.server.quantile.sequence import SequenceQuantile

NAMES, SIZES, PLACES = ("north", "east", "south"), (20_000, 10_000, 30_000), {"north": 0.0, "east": 9.0, "south": 1.0}


def plan_of(tau: float = 0.5, shares: Any = "pooled", sizes: tuple[int, ...] = SIZES) -> QuantilePlan:
    return plan_quantile(Roster(NAMES, sizes, Unit("number")), tau, 2.0, shares=shares, limits=CERTIFIED)


def run(method: Any, rounds: int, spent: dict[str, int], names: tuple[str, ...], state: Any = None) -> Any:
    """Answer some rounds, and add up what each site has spent."""
    state = method.init() if state is None else state
    for _ in range(rounds):
        if (queries := method.query(state)) is None:
            break
        replies: list[Tally | None] = []
        for name, query in zip(names, queries.messages, strict=True):
            if not isinstance(query, Query):
                replies.append(None)
                continue
            counts, points = np.array(query.counts), np.array(query.points)
            above = np.full(len(points), 0.5) if query.periods else special.ndtr(PLACES[name] - points)
            rate = np.tanh(1.0)
            noise = 0.25 * np.sqrt(counts) * np.sin(1e3 * points)
            ones = np.clip(np.rint(counts * ((1 - rate) / 2 + rate * above) + noise), 0, counts)
            replies.append(Tally(query.round, tuple(ones.astype(int).tolist())))
            spent[name] += int(counts.sum())
        state = method.step(state, replies)
    return state


@pytest.mark.parametrize(
    "method",
    [
        StagedQuantile(plan_of()),
        StagedQuantile(plan_of(), coin=b"coin", certified=True),
        SequenceQuantile(plan_of(), coin=b"coin"),
    ],
    ids=["staged", "certified", "sequence"],
)
def test_the_rest_answers_for_itself_with_what_it_has_not_said(method: Any) -> None:
    spent = dict.fromkeys(NAMES, 0)
    state = run(method, 9, spent, NAMES)
    before = dict(spent)
    rest = method.without(state, ["east"])
    first = rest.query(rest.init())
    assert first.round == 11  # the tenth is open, and may have been heard
    end = run(rest, 10_000, spent, ("north", "south"))
    result = rest.outcome(end)
    assert spent["east"] == before["east"]
    assert 0 < spent["north"] <= SIZES[0]
    assert 0 < spent["south"] <= SIZES[2]
    low, high = result.interval
    assert 2 / 5 * special.ndtr(low) + 3 / 5 * special.ndtr(low - 1) < 0.5
    assert 2 / 5 * special.ndtr(high) + 3 / 5 * special.ndtr(high - 1) > 0.5
    assert high - low < 0.5
    assert result.shares == pytest.approx({"north": 0.4, "south": 0.6})
    assert result.estimand == (
        "the value below which 0.5 of all records of north and south lie (pooled); east left the study in round 10"
    )
    said = "east left the study in round 10: the answer is over north and south, from the "
    assert [text for text in result.warnings if text.startswith(said)]
    assert type(result).from_state(codec.to_plain(result.to_state())).estimand == result.estimand


def test_several_levels_go_on_too() -> None:
    method = StagedQuantiles([plan_of(tau) for tau in (0.3, 0.6)], (0.5, 0.5), coin=b"coin")
    spent = dict.fromkeys(NAMES, 0)
    rest = method.without(run(method, 5, spent, NAMES), ["east"])
    result = rest.outcome(run(rest, 10_000, spent, ("north", "south")))
    assert all(spent[name] <= size for name, size in zip(NAMES, SIZES, strict=True))
    assert all("east left the study in round 6" in each.estimand for each in result.results)


def test_what_an_open_round_may_have_taken_is_not_asked_again() -> None:
    method = StagedQuantile(plan_of())
    state = run(method, 3, dict.fromkeys(NAMES, 0), NAMES)
    queries = method.query(state)
    assert queries is not None
    asked = [sum(message.counts) for message in queries.messages if isinstance(message, Query)]
    absent = method.step(state, [Absent(queries.round), None, None])
    whole, less = method.without(state, ["east"]).plan, method.without(absent, ["east"]).plan
    assert (less.crowd.sizes - whole.crowd.sizes).tolist() == [asked[0], 0]
    assert (SIZES[2] - whole.crowd.sizes)[1] == state.spent[2] + asked[2]


def test_two_sites_may_leave_one_after_the_other() -> None:
    method = StagedQuantile(plan_of())
    spent = dict.fromkeys(NAMES, 0)
    second = method.without(run(method, 2, spent, NAMES), ["east"])
    third = second.without(run(second, 2, spent, ("north", "south")), ["north"])
    assert third.plan.departed == (Departure("east", 3), Departure("north", 6))
    assert third.plan.departures == "east left the study in round 3, north left the study in round 6"
    assert third.plan.sites == "south"


def test_shares_are_divided_between_those_who_stay() -> None:
    plan = plan_of(shares={"north": 0.2, "east": 0.5, "south": 0.3})
    rest = plan_rest(plan, np.array([100, 100, 100]), 7, ["east"])
    assert rest.crowd.shares.tolist() == pytest.approx([0.4, 0.6])
    assert rest.crowd.sizes.tolist() == [19_900, 29_900]
    assert rest.budgets == (2.0, 2.0)
    assert rest.names == ("north", "south")


@pytest.mark.parametrize(
    ("asked", "gone", "kind", "match"),
    [
        ([0, 0, 0], ["west"], BadInput, "west"),
        ([0, 0, 0], [], BadInput, "name those that are gone"),
        ([0, 0, 0], list(NAMES), BadInput, "name those that are gone"),
        ([20_000, 0, 0], ["east"], BadInput, "'north' has no records left"),
        ([19_990, 0, 29_990], ["east"], Infeasible, "needs about"),
    ],
)
def test_what_cannot_go_on_is_refused(asked: list[int], gone: list[str], kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        plan_rest(plan_of(), np.array(asked), 5, gone)


def test_few_records_left_are_said_to_be_few() -> None:
    rest = plan_rest(plan_of(0.9), np.array([19_000, 0, 29_000]), 5, ["east"])
    assert [text for text in rest.warnings if "is barely supported" in text]
    assert not plan_of(0.9).warnings


def test_nobody_leaves_a_study_that_is_over() -> None:
    method = StagedQuantile(plan_of())
    with pytest.raises(BadInput, match="is over"):
        method.without(run(method, 10_000, dict.fromkeys(NAMES, 0), NAMES), ["east"])

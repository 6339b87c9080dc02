"""A regression over sites: what a site says is checked and repeated, letter by letter."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.server.regression.plans import WAYS, over_sites, plan_of, rows_of

from sottovoce.client.regression.rows import Rows
from sottovoce.core import codec
from sottovoce.core.errors import BadInput, Infeasible, SearchFailed
from sottovoce.local.runner import run, run_to_end
from sottovoce.protocol.messages import LoopQuery, PeopleReport, PilotQuery, Reports, Tally
from sottovoce.server.method import Absent
from sottovoce.server.regression.sites import SitesRegression, large_enough, people_alone
from sottovoce.sim.randomness import dice

KEY = b"c" * 16


def made(way: str, *sizes: int) -> tuple[SitesRegression, list[Any]]:
    rows = [rows_of(n, seed) for seed, n in enumerate(sizes)]
    return over_sites(plan_of(**WAYS[way]), rows, dice(9).split(len(sizes)))


def test_without_a_pilot_every_site_has_one_message() -> None:
    method, doors = made("dithered", 300, 100, 200)
    state, asked = method.init(), []
    while (queries := method.query(state)) is not None:
        asked.append([type(message).__name__ if message else "" for message in queries.messages])
        replies = [m and door.ask(queries.round, m) for m, door in zip(queries.messages, doors, strict=True)]
        state = method.step(state, replies)
    assert asked == [["LoopQuery"] * 3]
    assert method.outcome(state).people == 600


def test_a_pilot_asks_sites_by_their_size_and_nobody_twice() -> None:
    method, doors = made("pilot", 900, 300)
    queries = method.query(method.init())
    assert queries is not None
    asked = [sum(message.counts) for message in queries.messages if isinstance(message, PilotQuery)]
    assert len(asked) == 2
    assert asked[0] == pytest.approx(3 * asked[1], abs=3)
    result = run(method, doors)
    assert result.people == 1_200
    assert all(" 0 answered" not in repr(door) for door in doors)


def test_levels_that_are_split_reach_everybody_once() -> None:
    method, doors = made("split", 900, 500)
    result = run(method, doors)
    assert result.people == 1_400
    assert sum(each.people for each in result.fits) < 1_400  # some answered the pilot
    assert min(each.people for each in result.fits) > 300


def test_people_too_few_for_the_pilot_are_said_so() -> None:
    method, doors = made("pilot", 30, 20)
    with pytest.raises(SearchFailed, match="did not end"):
        method.outcome(run_to_end(method, doors))


def test_a_site_of_several_messages_goes_on_from_where_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, doors = made("dithered", 300, 100)
    expected = run(whole, doors)
    for side in ("server.regression.sites", "client.regression.site_people"):
        monkeypatch.setattr(f"sottovoce.{side}.most_people", lambda letters: 128)
    method, doors = made("dithered", 300, 100)
    state = run_to_end(method, doors)
    assert state.round == 3
    np.testing.assert_array_equal(method.outcome(state).raw, expected.raw)


WRONG: dict[str, Callable[[Reports], Any]] = {
    "too few": lambda said: Reports(1, said.letters[:-2]),
    "too many": lambda said: Reports(1, said.letters + said.letters[:2]),
    "none": lambda said: Reports(1, b""),
    "beyond the alphabet": lambda said: Reports(1, b"\xff" * len(said.letters)),
    "another round": lambda said: Reports(2, said.letters),
    "another kind": lambda said: PeopleReport(1, tuple(said.letters)),
    "sums": lambda said: Tally(1, (3,)),
    "absent": lambda said: Absent(1),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_what_no_site_can_have_said_is_refused_and_the_state_stays(change: Callable[[Reports], Any]) -> None:
    method, doors = made("dithered", 300, 100)
    state = method.init()
    queries = method.query(state)
    assert queries is not None
    query = queries.messages[0]
    assert isinstance(query, LoopQuery)
    said: Any = doors[0].ask(1, query)
    before = codec.to_bytes(state)
    with pytest.raises(BadInput):
        method.step(state, [change(said), None])
    assert codec.to_bytes(state) == before
    after = method.step(state, [said, None])
    assert (after.turned, after.round, after.open) == ((300, 0), 0, (True, False))
    with pytest.raises(BadInput, match="not asked"):
        method.step(after, [said, None])


def test_a_method_needs_people_everywhere_and_a_key() -> None:
    plan = plan_of(**WAYS["dithered"])
    with pytest.raises(BadInput, match="people at every site"):
        SitesRegression(plan, [100, 0], KEY)
    with pytest.raises(BadInput, match="people at every site"):
        SitesRegression(plan, [100], b"short")
    with pytest.raises(BadInput, match="leave inference out"):
        SitesRegression(plan_of(**WAYS["groups"]), [100], KEY)


def test_unlike_sites_make_the_mean_of_their_coefficients() -> None:
    source, rows = dice(4).generator(), []
    for n, shift in ((10_000, -0.5), (20_000, 0.5)):
        features = source.uniform(-1, 1, (n, 2))
        response = 1.0 + shift + features[:, 0] - 0.5 * features[:, 1] + source.logistic(0.0, 0.5, n)
        rows.append(Rows(features, response))
    plan = plan_of(**{**WAYS["dithered"], "epsilon": 4.0, "channel": "box"})
    result = run(*over_sites(plan, rows, dice(9).split(2)))
    np.testing.assert_allclose(result.raw[0], [1.0 + 0.5 / 3, 1.0, -0.5], atol=0.08)
    intervals, missing = result.intervals(0, 0.95)
    assert not missing
    assert np.diff(intervals).max() < 0.1  # as of one site
    assert result.facts.sites == 2
    assert "the mean of the sites' own" in result.summary()


def test_sites_too_small_for_a_loop_of_their_own_are_left_out_and_said() -> None:
    plan = plan_of(**WAYS["dithered"])
    least = people_alone(plan)
    assert 1_000 < least < 10_000
    assert large_enough(plan, ["a"], [10]) == ((True,), ())
    assert large_enough(plan, ["a", "b"], [least, least]) == ((True, True), ())
    stay, [said] = large_enough(plan, ["a", "b", "c"], [least, least - 1, 5])
    assert stay == (True, False, False)
    assert said.startswith("each of 2 sites ('b', 'c') has too few people and is left out, not asked")
    assert f"about {least:,} people at epsilon 2" in said
    with pytest.raises(Infeasible, match="no site has them"):
        large_enough(plan, ["a", "b"], [least - 1, 5])
    assert people_alone(plan_of(epsilon=1.0)) > people_alone(plan_of(epsilon=4.0))
    large = {**WAYS["dithered"], "size": 100.0}  # a guess too large buys nothing
    assert people_alone(plan_of(**large)) >= people_alone(plan_of(epsilon=2.0))
